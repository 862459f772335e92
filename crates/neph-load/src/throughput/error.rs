//! Why a throughput test could not be made.

use std::io;
use std::net::SocketAddr;

use neph_model::{LocalFault, failed_call};
use neph_wire::throughput::{AskError, LineError};

/// Names what was tried, on what.
#[derive(Debug, thiserror::Error)]
pub enum ThroughputError {
    /// The server has no socket.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// What is asked for cannot be meant.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A call on a socket failed.
    #[error("{}", failed_call(&format!("{operation} {peer}"), source, LocalFault::of(source)))]
    Socket {
        /// The verb: connect to, write to ...
        operation: &'static str,
        /// The other end.
        peer: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The server does not serve the test.
    #[error("{peer} refuses the test: {reason}")]
    Refused {
        /// The server.
        peer: SocketAddr,
        /// One sentence of the server's.
        reason: String,
    },
    /// The other end sent something else.
    #[error(
        "{peer} does not speak neph's throughput protocol ({source}); is it neph throughput serve?"
    )]
    Foreign {
        /// The other end.
        peer: SocketAddr,
        /// What came.
        source: LineError,
    },
    /// The other end sent another message than the one awaited.
    #[error("{peer} sent another message where {awaited} was due")]
    Unexpected {
        /// The other end.
        peer: SocketAddr,
        /// What was due.
        awaited: &'static str,
    },
    /// The other end closed the connection.
    #[error("{peer} closed the connection where {awaited} was due")]
    Closed {
        /// The other end.
        peer: SocketAddr,
        /// What was due.
        awaited: &'static str,
    },
    /// The other end sent nothing.
    #[error("{peer} sent nothing where {awaited} was due{}", remedy(awaited))]
    Silent {
        /// The other end.
        peer: SocketAddr,
        /// What was due.
        awaited: &'static str,
    },
    /// The test broke off at the other end.
    #[error("the test broke off at {peer}: {reason}")]
    Failed {
        /// The other end.
        peer: SocketAddr,
        /// One sentence of its.
        reason: String,
    },
    /// A thread cannot be had.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// It was stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

/// What to do where streams do not come through.
fn remedy(awaited: &str) -> &'static str {
    if awaited == READY {
        "; do firewalls let TCP and UDP of its port through?"
    } else {
        ""
    }
}

/// What is due once the streams are open.
pub(super) const READY: &str = "the message that all streams are open";

impl ThroughputError {
    /// A call on a socket to this peer.
    pub(super) fn socket(operation: &'static str, peer: SocketAddr) -> impl Fn(io::Error) -> Self {
        move |source| Self::Socket {
            operation,
            peer,
            source,
        }
    }
}
