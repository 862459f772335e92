//! Why a transfer could not be made.

use std::io;
use std::net::SocketAddr;

use neph_model::{LocalFault, failed_call};
use neph_sys::place::PlaceError;

/// Names what was tried, on what.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The site cannot be entered.
    #[error(transparent)]
    Site(#[from] PlaceError),
    /// The connection failed.
    #[error("{}", failed_call(&format!("{operation} {address}"), source, LocalFault::of(source)))]
    Socket {
        /// The verb: connect to, upload to ...
        operation: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The reflector does not serve a bulk upload.
    #[error("bulk upload to {target}: {reason}")]
    Refused {
        /// The target.
        target: String,
        /// What it answered.
        reason: String,
    },
    /// No thread can be had.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// A program that does the work for us could not do it.
    #[error("{program} {reason}")]
    Program {
        /// Its name.
        program: &'static str,
        /// What became of it.
        reason: String,
    },
}
