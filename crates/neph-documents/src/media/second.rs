//! A second of one stream: a line while it is measured, a row of CSV.

use neph_load::media::{MediaSecond, StreamSecond};
use neph_model::{BitRate, Span};

crate::rows! {
    /// A second of one stream, counted from its first packet.
    pub struct SecondRow {
        /// The number of the second, from 0.
        second: u32,
        /// The number of the stream, from 1.
        stream: u32,
        /// Rate of RTP payload received.
        rate_bit_s: BitRate,
        /// Packets received, without duplicates.
        packets: u64,
        /// Packets missing in the sequence.
        lost: u64,
        /// Packets that arrived after one with a higher sequence number (RFC 4737).
        reordered: u64,
        /// Duplicate packets.
        duplicates: u64,
        /// Packets that arrived after their frame was due.
        late_packets: u64,
        /// Interarrival jitter by RTP timestamps, after the last packet (RFC 3550).
        jitter_ns: Span,
        /// Interarrival jitter by send times, after the last packet (RFC 5450); null if the server
        /// does not report send times.
        network_jitter_ns: Option<Span>,
    }
}

impl SecondRow {
    /// The row of a stream, with its number from 1.
    pub fn new(index: u32, stream: u32, second: &StreamSecond) -> Self {
        let span = |nanos: u64| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        Self {
            second: index,
            stream,
            rate_bit_s: second.rate(),
            packets: second.packets,
            lost: second.lost(),
            reordered: second.reordered,
            duplicates: second.duplicates,
            late_packets: second.late,
            jitter_ns: span(second.jitter_ns),
            network_jitter_ns: second.network_jitter_ns.map(span),
        }
    }

    /// The rows of all streams.
    pub fn all(second: &MediaSecond) -> impl Iterator<Item = Self> {
        let streams = (1..).zip(&second.streams);
        streams.map(|(number, stream)| Self::new(second.index, number, stream))
    }
}
