//! One passive round trip: how long, between which points, and what it speaks of.

use neph_model::{Span, Wall};

/// A round trip between the point of capture and one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When the answer passed the point of capture.
    pub at: Wall,
    /// From the moment a segment passed towards `half` until its answer passed.
    pub round_trip: Span,
    /// Which part of the path.
    pub half: Half,
    /// How segment and answer were matched.
    pub method: Method,
    /// What the answer was.
    pub answer: Answer,
    /// Bytes on their way to that end when the segment passed, its own included.
    pub in_flight: u32,
    /// Segments that it stands for, itself included: more than 1 where not all of a large window are
    /// followed.
    pub weight: u32,
}

impl Sample {
    /// Whether segment and answer have one stamp.
    pub(crate) fn is_of_no_time(&self) -> bool {
        self.round_trip == Span::ZERO
    }
}

/// Which part of a connection's path: captured at one end, the other end's half is all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Half {
    /// From the point of capture to the client and back.
    Client,
    /// From the point of capture to the server and back.
    Server,
}

/// How a segment is matched with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// The answer echoes the segment's time stamp (RFC 7323). Holds for what was sent again too.
    Echo,
    /// The answer acknowledges the segment's last byte. Not for what was sent again: whose answer it
    /// is cannot be told (RFC 6298, section 3).
    Acknowledgement,
    /// The answer is the first data after the last segment of what was asked: path and program, also
    /// where an acknowledgement without data came before it.
    Response,
}

impl Method {
    /// In the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Echo, Self::Acknowledgement, Self::Response];
}

/// What answered. Only the first two speak of the path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// To a SYN or SYN-ACK, without data.
    Handshake,
    /// An acknowledgement without data.
    Bare,
    /// An acknowledgement that came with data: includes what the program took to answer.
    WithData,
    /// An acknowledgement that nothing forced, later than the path by what a timer takes: its sender
    /// probably held it back (RFC 9293, 3.8.6.3).
    Delayed,
}

impl Answer {
    /// In the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Handshake, Self::Bare, Self::WithData, Self::Delayed];

    /// Whether it speaks of the path, and not of a program or of a timer.
    pub const fn speaks_of_path(self) -> bool {
        matches!(self, Self::Handshake | Self::Bare)
    }
}
