//! A second of one stream, and of all streams of a client.

use neph_model::{BitRate, Span};

/// A second of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSecond {
    /// Received packets, without duplicates.
    pub packets: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Packets that became missing.
    pub missing: u64,
    /// Missing packets, also of earlier seconds, that arrived.
    pub filled: u64,
    /// Packets that arrived after one with a higher sequence number.
    pub reordered: u64,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Packets that arrived after their frame was due.
    pub late: u64,
    /// Interarrival jitter by RTP timestamps after the last packet, nanoseconds.
    pub jitter_ns: u64,
    /// Interarrival jitter by transmission times after the last packet, nanoseconds.
    pub network_jitter_ns: Option<u64>,
}

impl StreamSecond {
    /// Bit rate of the payload.
    pub const fn rate(&self) -> BitRate {
        BitRate(self.bytes * 8)
    }

    /// Packets that became missing, minus those that arrived late.
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
    /// The streams, in order.
    pub streams: Vec<StreamSecond>,
}

impl MediaSecond {
    /// Bit rate of all streams together.
    pub fn rate(&self) -> BitRate {
        BitRate(self.sum(|stream_second| stream_second.bytes) * 8)
    }

    /// Lowest bit rate of a stream.
    pub fn rate_min(&self) -> BitRate {
        let rates = self.streams.iter().map(StreamSecond::rate);
        rates.min().unwrap_or(BitRate(0))
    }

    /// Highest bit rate of a stream.
    pub fn rate_max(&self) -> BitRate {
        let rates = self.streams.iter().map(StreamSecond::rate);
        rates.max().unwrap_or(BitRate(0))
    }

    /// Sum of a count over all streams.
    pub fn sum(&self, of: impl Fn(&StreamSecond) -> u64) -> u64 {
        self.streams.iter().map(of).sum()
    }

    /// Whether [`jitter`](Self::jitter) is that of the network for every stream.
    pub fn has_network_jitter(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.all(|stream| stream.network_jitter_ns.is_some())
    }

    /// Largest jitter of a stream: that of the network if the server sends transmission times.
    pub fn jitter(&self) -> Span {
        let jitters = self.streams.iter();
        let jitters = jitters.map(|stream_second| {
            stream_second
                .network_jitter_ns
                .unwrap_or(stream_second.jitter_ns)
        });
        let nanos = i64::try_from(jitters.max().unwrap_or(0));
        Span::from_nanos(nanos.unwrap_or(i64::MAX))
    }
}
