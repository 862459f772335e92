//! Why a request has no response.

use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

/// The reason for which a request has no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestFailure {
    /// No complete response within the time limit.
    TimedOut,
    /// The peer refused the connection.
    Refused,
    /// The peer cannot be reached.
    Unreachable,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before the end of the response.
    Closed,
    /// TLS: the handshake failed, the certificate is not accepted, or a record is broken.
    Tls,
    /// What arrived is no HTTP response.
    Invalid,
    /// This host has no free port for another connection.
    NoPort,
    /// This process may not open another socket.
    NoSocket,
    /// All allowed connections were in use until the time limit.
    NoConnection,
    /// Another error of a socket.
    Other,
}

impl RequestFailure {
    /// All, in the order of output.
    pub const ALL: [Self; 11] = [
        Self::TimedOut,
        Self::Refused,
        Self::Unreachable,
        Self::Reset,
        Self::Closed,
        Self::Tls,
        Self::Invalid,
        Self::NoPort,
        Self::NoSocket,
        Self::NoConnection,
        Self::Other,
    ];

    /// The end of a sentence that begins with a number of requests.
    pub const fn text(self) -> &'static str {
        match self {
            Self::TimedOut => "timed out",
            Self::Refused => "connection refused",
            Self::Unreachable => "peer not reachable",
            Self::Reset => "connection reset",
            Self::Closed => "connection closed early",
            Self::Tls => "TLS failed",
            Self::Invalid => "response not valid",
            Self::NoPort => "no local port free",
            Self::NoSocket => "no file descriptor free",
            Self::NoConnection => "no connection free",
            Self::Other => "other socket errors",
        }
    }

    /// Whether this host caused it, and not the peer.
    pub const fn is_local(self) -> bool {
        matches!(self, Self::NoPort | Self::NoSocket | Self::NoConnection)
    }

    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                Self::Reset
            }
            ErrorKind::UnexpectedEof => Self::Closed,
            ErrorKind::InvalidData => Self::Tls,
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Self::Unreachable,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse => Self::NoPort,
            _ if neph_sys::files::is_limit(error) => Self::NoSocket,
            _ => Self::Other,
        }
    }
}
