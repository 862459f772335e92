//! One passive round trip: its duration, its part of the path, and what it measures.

use neph_model::{Span, Wall};

/// A round trip between the capture point and one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When the answer passed the capture point.
    pub at: Wall,
    /// From the passage of a segment towards `half` to the passage of its answer.
    pub round_trip: Span,
    /// The part of the path.
    pub half: Half,
    /// How segment and answer were matched.
    pub method: Method,
    /// The kind of answer.
    pub answer: Answer,
    /// Bytes in flight to that end when the segment passed, including its own.
    pub in_flight: u32,
    /// Segments that it represents, including its own: more than 1 where not all of a large window are
    /// followed.
    pub weight: u32,
}

impl Sample {
    /// Whether segment and answer have one timestamp.
    pub(crate) fn is_zero(&self) -> bool {
        self.round_trip == Span::ZERO
    }
}

/// A part of a connection's path. For a capture at one end, the other end's half is the whole path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Half {
    /// From the capture point to the client and back.
    Client,
    /// From the capture point to the server and back.
    Server,
}

/// How a segment is matched with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// The answer echoes the segment's timestamp option (RFC 7323). Valid for retransmissions too.
    Echo,
    /// The answer acknowledges the segment's last byte. Not valid for retransmissions, as the answer may be
    /// to either transmission (RFC 6298, section 3).
    Acknowledgement,
    /// The answer is the first data after the last segment of the request: path and server application, even
    /// if an acknowledgement without data came before.
    Response,
}

impl Method {
    /// In the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Echo, Self::Acknowledgement, Self::Response];
}

/// The kind of answer. Only the first two measure the path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// The answer to a SYN or SYN-ACK, without data.
    Handshake,
    /// An acknowledgement without data.
    Bare,
    /// An acknowledgement with data: includes the time of the application.
    WithData,
    /// An acknowledgement that was not due at once, and later than the path by the time of a timer: its
    /// sender probably delayed it (RFC 9293, 3.8.6.3).
    Delayed,
}

impl Answer {
    /// In the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Handshake, Self::Bare, Self::WithData, Self::Delayed];

    /// Whether it measures the path, without an application or a timer.
    pub const fn measures_path(self) -> bool {
        matches!(self, Self::Handshake | Self::Bare)
    }
}
