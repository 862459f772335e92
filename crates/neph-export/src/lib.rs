//! Exports of a running neph: metrics for Prometheus and OTLP receivers, and a POST for each alarm.
//!
//! Owns metrics as values, their export formats, the limit on labels, the HTTP port for Prometheus,
//! and the threads that post. Does not own the counters.

mod exposition;
mod histogram;
mod http;
mod metric;
mod metrics_server;
mod otlp;
mod protobuf;
mod push;
mod webhook;

pub use exposition::{Histograms, Page};
pub use histogram::Histogram;
pub use http::{Url, url};
pub use metric::{Definition, Kind, Metric, MetricSource, Sample, Unit, Value};
pub use metrics_server::{BoundPort, MetricsServer, address};
pub use otlp::Resource;
pub use push::{Push, Pushing, otlp_url};
pub use webhook::Webhook;
