//! One TCP connection as a capture shows it: samples of round trips and what went wrong.
//!
//! Owns which segment answers which, and what was sent again and why. Does not own the table of
//! connections. Reads no clock: each segment comes with the time at which it passed.

mod answer;
mod half;
mod order;
mod segment;

#[cfg(test)]
mod tests;

use neph_model::Wall;

use crate::sample::{Half, Sample};
use half::Sender;
pub use order::Event;
pub use segment::Segment;

/// Who sent a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Who opened the connection.
    Client,
    /// Who answered.
    Server,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The part of the path behind which this side is.
    pub const fn half(self) -> Half {
        match self {
            Self::Client => Half::Client,
            Self::Server => Half::Server,
        }
    }
}

/// Takes what a connection shows.
pub trait Sink {
    /// A round trip.
    fn sample(&mut self, sample: Sample);
    /// Something else than the next segment, sent by `side`.
    fn event(&mut self, at: Wall, side: Side, event: Event);
}

/// A connection.
#[derive(Debug, Default)]
pub struct Connection {
    client: Sender,
    server: Sender,
}

impl Connection {
    /// A segment that `side` sent passed at `at`.
    pub fn see(&mut self, at: Wall, side: Side, segment: &Segment, sink: &mut impl Sink) {
        if segment.is_syn() {
            self.forget_predecessor(side, segment);
        }
        let (sender, receiver) = match side {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        if let Some(ack) = segment.ack {
            answer::look(at, (side, segment), ack, receiver, sink);
        }
        let placed = order::look(at, (side, segment), (sender, receiver), sink);
        // The byte of a probe is not taken, and sent with others once the window is open.
        if placed != Some(Event::WindowProbe) {
            sender.sent(at, segment);
        }
    }

    /// A SYN with another number than the connection began with opens a new one on the same ports.
    fn forget_predecessor(&mut self, side: Side, segment: &Segment) {
        let sender = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        let is_other = sender.first.is_some_and(|first| first != segment.seq);
        if is_other && segment.ack.is_none() {
            *self = Self::default();
        }
    }
}
