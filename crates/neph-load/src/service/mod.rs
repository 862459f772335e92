//! An HTTP service of known speed: a system under test whose truth is known.
//!
//! Owns the queue (pure), the connections and the thread. The model's terms are in neph-model
//! ([`neph_model::ServiceModel`]), its formulas in neph-analysis.

mod connection;
mod queue;
mod server;
#[cfg(test)]
mod tests;

pub use server::{ServiceError, ServiceServer};
