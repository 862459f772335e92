//! Why media cannot be served or measured.

use std::io;
use std::net::SocketAddr;

use neph_model::{LocalFault, failed_call};
use neph_wire::rtsp::RtspError;

use super::trace::TraceError;

/// Names what was tried, on what.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The server has no socket.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// What is asked for cannot be meant.
    #[error("{0}")]
    Ask(String),
    /// The frames of a video cannot be read.
    #[error("frame sizes: {0}")]
    Trace(#[from] TraceError),
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
    /// The server refuses a request.
    #[error("{peer} refuses {method}: {status} {reason}{}", remedy(*status))]
    Refused {
        /// The server.
        peer: SocketAddr,
        /// The request.
        method: String,
        /// The status of RTSP.
        status: u16,
        /// The status in words.
        reason: String,
    },
    /// The server sent something else than RTSP.
    #[error("{peer} does not speak RTSP ({source}); is it a media server?")]
    Foreign {
        /// The server.
        peer: SocketAddr,
        /// What came.
        source: RtspError,
    },
    /// The server's answer lacks what is needed.
    #[error("{peer} answered {method} without {lacks}")]
    Lacking {
        /// The server.
        peer: SocketAddr,
        /// The request.
        method: String,
        /// What is missing in the answer.
        lacks: &'static str,
    },
    /// The server closed the connection.
    #[error("{peer} closed the RTSP connection where the answer to {awaited} was due")]
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
    /// The streams were set up, and no packet came.
    #[error("no RTP packet came from {peer} within 5 s; do firewalls let UDP from it through?")]
    NoPacket {
        /// The server.
        peer: SocketAddr,
    },
    /// A stream broke off before anything was measured.
    #[error("{0}")]
    Broken(String),
    /// A thread cannot be had.
    #[error("start a thread: {0}")]
    Thread(io::Error),
    /// It was stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

/// What to do about a status of RTSP.
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
    /// A call on a socket to this peer.
    pub(super) fn socket(operation: &'static str, peer: SocketAddr) -> impl Fn(io::Error) -> Self {
        move |source| Self::Socket {
            operation,
            peer,
            source,
        }
    }
}
