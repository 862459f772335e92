//! Errors of transfers.

use std::io;
use std::net::SocketAddr;

use neph_model::{LocalFault, failed_call};
use neph_sys::place::PlaceError;

/// The failed operation and its object.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The site cannot be entered.
    #[error(transparent)]
    Site(#[from] PlaceError),
    /// The connection failed.
    #[error("{}", failed_call(&format!("{operation} {address}"), source, LocalFault::of(source)))]
    Socket {
        /// The operation: connect to, upload to ...
        operation: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The reflector refused a bulk upload.
    #[error("bulk upload to {target}: {reason}")]
    Refused {
        /// The target.
        target: String,
        /// Its answer.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// An external program failed.
    #[error("{program} {reason}")]
    Program {
        /// Its name.
        program: &'static str,
        /// The reason.
        reason: String,
    },
}
