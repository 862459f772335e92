//! A second of one direction, all streams together: a line while it is measured, a row of CSV.

use neph_load::throughput::Second;
use neph_model::{BitRate, Span};

use super::direction::word;

crate::rows! {
    /// A second of one direction, all streams together.
    pub struct SecondRow {
        /// `up`: the client sends; `down`: the server sends.
        direction: &'static str,
        /// The number of the second, from 0.
        second: u32,
        /// When it ended in nanoseconds since the receiver's first data.
        end_ns: Span,
        /// Payload that the sender's kernel took, in bit/s.
        sent_bit_s: BitRate,
        /// Payload that the receiver received, in bit/s.
        goodput_bit_s: BitRate,
        /// TCP segments that were retransmitted.
        retransmissions: u64,
        /// TCP's congestion windows at the end of the second, together, in bytes; null of UDP.
        cwnd_bytes: Option<u64>,
        /// The longest smoothed round-trip time of a TCP stream in nanoseconds; null of UDP.
        srtt_ns: Option<Span>,
        /// UDP datagrams that came, duplicates not counted.
        datagrams: u64,
        /// UDP datagrams that are missing in the sequence.
        lost: u64,
        /// Of these, dropped at the receiver's socket; an estimate where the kernel joins datagrams.
        socket_drops: u64,
        /// UDP datagrams that came out of order (RFC 4737).
        reordered: u64,
        /// The largest interarrival jitter of a stream in nanoseconds (RFC 3550); null of TCP.
        jitter_ns: Option<Span>,
        /// The largest 95th percentile of a stream's packet delay variation in nanoseconds (RFC 5481);
        /// null of TCP.
        pdv_p95_ns: Option<Span>,
        /// CPU time of the busiest sending thread, percent of a core.
        sender_thread_percent: f64,
        /// How busy the core of that thread was, percent; null where it is not known.
        sender_core_percent: Option<f64>,
        /// CPU time of the busiest receiving thread, percent of a core.
        receiver_thread_percent: f64,
        /// How busy the core of that thread was, percent; null where it is not known.
        receiver_core_percent: Option<f64>,
    }
}

impl From<&Second> for SecondRow {
    fn from(one: &Second) -> Self {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        Self {
            direction: one.direction.map_or("up", word),
            second: one.index,
            end_ns: one.to,
            sent_bit_s: one.sent,
            goodput_bit_s: one.goodput,
            retransmissions: one.retransmissions,
            cwnd_bytes: one.cwnd_bytes,
            srtt_ns: one.srtt,
            datagrams: one.datagrams,
            lost: one.lost,
            socket_drops: one.socket_drops,
            reordered: one.reordered,
            jitter_ns: one.jitter,
            pdv_p95_ns: one.pdv_p95,
            sender_thread_percent: percent(one.sender_thread),
            sender_core_percent: one.sender_core.map(percent),
            receiver_thread_percent: percent(one.receiver_thread),
            receiver_core_percent: one.receiver_core.map(percent),
        }
    }
}
