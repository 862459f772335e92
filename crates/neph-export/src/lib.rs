//! What leaves neph while it runs: metrics for Prometheus, and a POST for each alarm.
//!
//! Owns the text format, the bound on labels, the door at which Prometheus asks, and the thread that
//! posts. Does not own what is counted.

mod door;
mod page;
mod webhook;

pub use door::{Door, address};
pub use page::{Histograms, Kind, Page};
pub use webhook::{Url, Webhook, url};
