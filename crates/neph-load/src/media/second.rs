//! A second of one stream, and of all streams of a client.

use neph_model::{BitRate, Span};

/// A second of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSecond {
    /// Packets that came, duplicates not counted.
    pub packets: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Packets that became missing.
    pub missing: u64,
    /// Packets that were missing, also in a second before, and came.
    pub filled: u64,
    /// Packets that came after one with a higher number.
    pub reordered: u64,
    /// Packets that came once more.
    pub duplicates: u64,
    /// Packets that came after their frame was due.
    pub late: u64,
    /// Interarrival jitter by RTP timestamps after its last packet, nanoseconds.
    pub jitter_ns: u64,
    /// Interarrival jitter by the moments of sending after its last packet, nanoseconds.
    pub network_jitter_ns: Option<u64>,
}

impl StreamSecond {
    /// The bit rate of the payload.
    pub const fn rate(&self) -> BitRate {
        BitRate(self.bytes * 8)
    }

    /// More became missing than came late.
    pub const fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.filled)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.missing += other.missing;
        self.filled += other.filled;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.late += other.late;
    }
}

/// A second of all streams of a client. Each stream's seconds count from its first packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaSecond {
    /// Its number, from 0.
    pub index: u32,
    /// The streams, in their order.
    pub streams: Vec<StreamSecond>,
}

impl MediaSecond {
    /// All streams together.
    pub fn rate(&self) -> BitRate {
        BitRate(self.sum(|one| one.bytes) * 8)
    }

    /// The lowest rate of a stream.
    pub fn rate_min(&self) -> BitRate {
        let rates = self.streams.iter().map(StreamSecond::rate);
        rates.min().unwrap_or(BitRate(0))
    }

    /// The highest rate of a stream.
    pub fn rate_max(&self) -> BitRate {
        let rates = self.streams.iter().map(StreamSecond::rate);
        rates.max().unwrap_or(BitRate(0))
    }

    /// The sum of a count over all streams.
    pub fn sum(&self, of: impl Fn(&StreamSecond) -> u64) -> u64 {
        self.streams.iter().map(of).sum()
    }

    /// The largest jitter of a stream: of the network where the server sends what it takes.
    pub fn jitter(&self) -> Span {
        let jitters = self.streams.iter();
        let jitters = jitters.map(|one| one.network_jitter_ns.unwrap_or(one.jitter_ns));
        let nanos = i64::try_from(jitters.max().unwrap_or(0));
        Span::from_nanos(nanos.unwrap_or(i64::MAX))
    }
}
