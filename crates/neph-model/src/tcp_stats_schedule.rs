//! When all that the kernel reports of a TCP connection is read.

use std::fmt;
use std::str::FromStr;

use crate::Span;

/// When all that the kernel reports of a TCP connection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpStatsSchedule {
    /// When a message was sent, and when its reply came.
    Message,
    /// Each time this interval has passed; at least 1 ms.
    Every(Span),
}

impl TcpStatsSchedule {
    /// The word for each message.
    pub const MESSAGE: &'static str = "message";
    /// The shortest interval.
    pub const MIN_INTERVAL: Span = Span::from_millis(1);
}

/// `message`, or the interval.
impl fmt::Display for TcpStatsSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => f.pad(Self::MESSAGE),
            Self::Every(interval) => f.pad(&interval.unrounded()),
        }
    }
}

/// A text that is neither `message` nor an interval of a millisecond at least.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no time to read TCP statistics: write message, or an interval of at least 1 ms")]
pub struct ParseTcpStatsError(String);

impl FromStr for TcpStatsSchedule {
    type Err = ParseTcpStatsError;

    fn from_str(text: &str) -> Result<Self, ParseTcpStatsError> {
        if text == Self::MESSAGE {
            return Ok(Self::Message);
        }
        let interval = text.parse().ok().filter(|span| *span >= Self::MIN_INTERVAL);
        interval
            .map(Self::Every)
            .ok_or_else(|| ParseTcpStatsError(text.to_owned()))
    }
}
