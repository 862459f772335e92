//! Errors of media servers and clients.

use std::io;
use std::net::SocketAddr;

use neph_model::{LocalFault, failed_call};
use neph_wire::rtsp::RtspError;

use super::trace::TraceError;

/// The failed operation and its object.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The server cannot open its port.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Invalid parameters.
    #[error("{0}")]
    InvalidRequest(String),
    /// The frames of a video cannot be read.
    #[error("frame sizes: {0}")]
    Trace(#[from] TraceError),
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
    /// The server refused a request.
    #[error("{peer} refuses {method}: {status} {reason}{}", remedy(*status))]
    Refused {
        /// The server.
        peer: SocketAddr,
        /// The request.
        method: String,
        /// The RTSP status code.
        status: u16,
        /// The reason phrase.
        reason: String,
    },
    /// The server sent data that is no RTSP.
    #[error("{peer} does not speak RTSP ({source}); is it a media server?")]
    InvalidMessage {
        /// The server.
        peer: SocketAddr,
        /// The parser's error.
        source: RtspError,
    },
    /// The server's answer lacks a required part.
    #[error("{peer} answered {method} without {lacks}")]
    MissingPart {
        /// The server.
        peer: SocketAddr,
        /// The request.
        method: String,
        /// The missing part.
        lacks: &'static str,
    },
    /// The server closed the connection.
    #[error("{peer} closed the RTSP connection before the answer to {awaited}")]
    Closed {
        /// The server.
        peer: SocketAddr,
        /// The request.
        awaited: String,
    },
    /// The server did not answer.
    #[error("{peer} did not answer {awaited} within 10 s")]
    Silent {
        /// The server.
        peer: SocketAddr,
        /// The request.
        awaited: String,
    },
    /// The streams were set up, but no packet arrived.
    #[error("no RTP packet came from {peer} within 5 s; do firewalls let UDP from it through?")]
    NoPacket {
        /// The server.
        peer: SocketAddr,
    },
    /// A stream broke off before anything was measured.
    #[error("{0}")]
    Broken(String),
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// Stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

/// The remedy for an RTSP status.
const fn remedy(status: u16) -> &'static str {
    match status {
        404 => "; name the path that the server has, rtsp://host:port/path",
        453 => "; ask for fewer streams, or raise the server's --max-streams or --max-rate",
        461 => "; the server does not send RTP over UDP",
        401 => "; neph media does not log in",
        _ => "",
    }
}

impl MediaError {
    /// A failed call on a socket to this peer.
    pub(super) fn socket(operation: &'static str, peer: SocketAddr) -> impl Fn(io::Error) -> Self {
        move |source| Self::Socket {
            operation,
            peer,
            source,
        }
    }
}
