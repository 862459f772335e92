//! Why a connection of a fleet ended, as a message with the side that ended it and a remedy. Owns no
//! connection.

use std::{fmt, io};

/// Why the connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionFailure {
    /// It was not established in time.
    Unanswered,
    /// The reflector refused the request.
    Refused,
    /// The reflector closed it.
    Closed,
    /// The other side, or a device on the path, reset it.
    Reset,
    /// The reflector did not read for so long that the buffers are full.
    Unread,
    /// The received bytes are no answer of a reflector.
    Unexpected,
    /// Another system error, by its number.
    System(Option<i32>),
}

/// Why one message could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No room for it at the moment; the connection continues.
    Full,
    /// The connection is over.
    ConnectionFailure(ConnectionFailure),
}

impl From<ConnectionFailure> for Fault {
    fn from(failure: ConnectionFailure) -> Self {
        Self::ConnectionFailure(failure)
    }
}

impl From<Fault> for ConnectionFailure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Full => Self::Unread,
            Fault::ConnectionFailure(failure) => failure,
        }
    }
}

impl From<&io::Error> for ConnectionFailure {
    fn from(error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, TimedOut};
        match error.kind() {
            ConnectionReset | ConnectionRefused => Self::Reset,
            BrokenPipe => Self::Closed,
            TimedOut => Self::Unanswered,
            _ => Self::System(error.raw_os_error()),
        }
    }
}

impl fmt::Display for ConnectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str(
                "the reflector did not answer on its connection in time; free a core at the \
                 reflector, or use fewer flows",
            ),
            Self::Refused => f.write_str(
                "the reflector refused the request; its caps are options of 'neph reflect'",
            ),
            Self::Closed => f.write_str(
                "the reflector closed its connection: it was stopped, or refuses more ('neph reflect' prints the reason when it ends); neph reconnects each second",
            ),
            Self::Reset => f.write_str(
                "the reflector's host, or a device on the path, reset its connection; neph reconnects each second",
            ),
            Self::Unread => f.write_str(
                "the reflector reads too slowly, and its connection is full; free a core at the \
                 reflector, or use fewer or slower flows",
            ),
            Self::Unexpected => f.write_str("what came on its connection is no reflector's answer"),
            Self::System(Some(number)) => {
                write!(
                    f,
                    "its connection broke: {}",
                    io::Error::from_raw_os_error(*number)
                )
            }
            Self::System(None) => f.write_str("its connection broke"),
        }
    }
}

impl From<ConnectionFailure> for io::Error {
    fn from(failure: ConnectionFailure) -> Self {
        Self::new(io::ErrorKind::NotConnected, failure.to_string())
    }
}
