//! What leaves neph while it runs: metrics for Prometheus and for receivers of OTLP, and a POST for each alarm.
//!
//! Owns metrics as values, the forms in which they leave, the bound on labels, the port at which Prometheus asks,
//! and the threads that post. Does not own what is counted.

mod histogram;
mod http;
mod metric;
mod metrics_server;
mod otlp;
mod page;
mod protobuf;
mod push;
mod webhook;

pub use histogram::Histogram;
pub use http::{Url, url};
pub use metric::{Definition, Exported, Kind, Metric, Sample, Unit, Value};
pub use metrics_server::{BoundPort, MetricsServer, address};
pub use otlp::Resource;
pub use page::{Histograms, Page};
pub use push::{Push, Pushing, otlp_url};
pub use webhook::Webhook;
