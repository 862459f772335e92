//! Errors of a load.

use std::io;

use neph_wire::http::HttpError;

/// Why a load could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The request cannot be written.
    #[error("write the request: {0}")]
    Request(HttpError),
    /// Threads, or the descriptors to watch connections.
    #[error("begin the threads of the load: {0}")]
    Threads(io::Error),
}
