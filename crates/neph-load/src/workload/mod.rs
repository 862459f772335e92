//! A load of requests to a service: closed loop (workers) or open loop (arrivals), with intended and actual
//! times, so that a slow service cannot hide its delays.
//!
//! Owns the generator and its judgement of itself. The state of requests (`http`, `source`, `tally`,
//! `validity`) is without input and output; `engine` moves the bytes. Analyses no results.

mod arrival_times;
mod connection;
mod demand;
mod engine;
mod error;
mod failure;
mod generate;
mod http;
mod measured;
mod pool;
mod recorder;
mod second;
mod source;
mod spec;
mod tally;
#[cfg(test)]
mod tests;
mod threshold;
mod time_sampler;
mod transport;
mod validity;

pub use demand::{Demand, Share, Workers};
pub use error::WorkloadError;
pub use failure::RequestFailure;
pub use generate::generate;
pub use http::HttpRequest;
pub use measured::WorkloadMeasured;
pub use second::WorkloadSecond;
pub use spec::WorkloadSpec;
pub use tally::Tally;
pub use threshold::{NoThreshold, Threshold, ThresholdResult};
pub use transport::TlsTarget;
pub use validity::{GeneratorLimit, Validity};

#[cfg(test)]
pub(crate) use arrival_times::ArrivalTimes;
pub(crate) use time_sampler::TimeSampler;
