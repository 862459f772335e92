//! Errors of throughput tests.

use std::io;
use std::net::SocketAddr;

use neph_model::{LocalFault, failed_call};
use neph_wire::throughput::{LineError, TestRequestError};

/// The failed operation and its object.
#[derive(Debug, thiserror::Error)]
pub enum ThroughputError {
    /// The server cannot open its port.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Invalid parameters.
    #[error(transparent)]
    InvalidRequest(#[from] TestRequestError),
    /// A call on a socket failed.
    #[error("{}", failed_call(&format!("{operation} {peer}"), source, LocalFault::of(source)))]
    Socket {
        /// The operation: connect to, write to ...
        operation: &'static str,
        /// The peer.
        peer: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The server refused the test.
    #[error("{peer} refuses the test: {reason}")]
    Refused {
        /// The server.
        peer: SocketAddr,
        /// The server's reason, one sentence.
        reason: String,
    },
    /// The peer sent data of another protocol.
    #[error(
        "{peer} does not use neph's throughput protocol ({source}); is it neph throughput serve?"
    )]
    InvalidMessage {
        /// The peer.
        peer: SocketAddr,
        /// The parser's error.
        source: LineError,
    },
    /// The peer sent another message than the awaited one.
    #[error("{peer} sent another message in place of {awaited}")]
    Unexpected {
        /// The peer.
        peer: SocketAddr,
        /// The awaited message.
        awaited: &'static str,
    },
    /// The peer closed the connection.
    #[error("{peer} closed the connection before {awaited}")]
    Closed {
        /// The peer.
        peer: SocketAddr,
        /// The awaited message.
        awaited: &'static str,
    },
    /// The peer sent nothing in time.
    #[error("{peer} did not send {awaited} in time{}", remedy(awaited))]
    Silent {
        /// The peer.
        peer: SocketAddr,
        /// The awaited message.
        awaited: &'static str,
    },
    /// The test broke off at the peer.
    #[error("the test broke off at {peer}: {reason}")]
    Failed {
        /// The peer.
        peer: SocketAddr,
        /// The peer's reason, one sentence.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// Stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

/// The remedy if streams do not reach the server.
fn remedy(awaited: &str) -> &'static str {
    if awaited == AWAITED_READY {
        "; do firewalls let TCP and UDP of its port through?"
    } else {
        ""
    }
}

/// The message that is awaited after the streams are open.
pub(super) const AWAITED_READY: &str = "the message that all streams are open";

impl ThroughputError {
    /// A failed call on a socket to this peer.
    pub(super) fn socket(operation: &'static str, peer: SocketAddr) -> impl Fn(io::Error) -> Self {
        move |source| Self::Socket {
            operation,
            peer,
            source,
        }
    }
}
