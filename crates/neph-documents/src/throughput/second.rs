//! A second of one direction, all streams together: a line while it is measured, a row of CSV.

use neph_load::throughput::Second;
use neph_model::{BitRate, Span};

use super::direction::direction_word;

crate::rows! {
    /// A second of one direction, all streams together.
    pub struct SecondRow {
        /// `up` (the client sends) or `down` (the server sends).
        direction: &'static str,
        /// Number of the second, from 0.
        second: u32,
        /// End of the second, since the receiver's first data.
        end_ns: Span,
        /// Rate of payload that the sender's kernel accepted.
        sent_bit_s: BitRate,
        /// Rate of payload that the receiver received.
        goodput_bit_s: BitRate,
        /// TCP segments retransmitted.
        retransmissions: u64,
        /// Sum of TCP congestion windows at the end of the second; null for UDP.
        cwnd_bytes: Option<u64>,
        /// Largest smoothed round-trip time of a TCP stream; null for UDP.
        srtt_ns: Option<Span>,
        /// UDP datagrams received, without duplicates.
        datagrams: u64,
        /// UDP datagrams missing in the sequence.
        lost: u64,
        /// Lost datagrams that the receiver's socket dropped; an estimate if the kernel merges
        /// datagrams.
        socket_drops: u64,
        /// UDP datagrams that arrived after one with a higher sequence number (RFC 4737).
        reordered: u64,
        /// Largest interarrival jitter of a stream (RFC 3550); null for TCP.
        jitter_ns: Option<Span>,
        /// Largest 95th percentile of a stream's packet delay variation (RFC 5481); null for TCP.
        pdv_p95_ns: Option<Span>,
        /// CPU time of the busiest sending thread, percent of a core.
        sender_thread_percent: f64,
        /// Utilisation of the core of the busiest sending thread, percent; null if not known.
        sender_core_percent: Option<f64>,
        /// CPU time of the busiest receiving thread, percent of a core.
        receiver_thread_percent: f64,
        /// Utilisation of the core of the busiest receiving thread, percent; null if not known.
        receiver_core_percent: Option<f64>,
    }
}

impl From<&Second> for SecondRow {
    fn from(second: &Second) -> Self {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        Self {
            direction: second.direction.map_or("up", direction_word),
            second: second.index,
            end_ns: second.to,
            sent_bit_s: second.sent,
            goodput_bit_s: second.goodput,
            retransmissions: second.retransmissions,
            cwnd_bytes: second.cwnd_bytes,
            srtt_ns: second.srtt,
            datagrams: second.datagrams,
            lost: second.lost,
            socket_drops: second.socket_drops,
            reordered: second.reordered,
            jitter_ns: second.jitter,
            pdv_p95_ns: second.pdv_p95,
            sender_thread_percent: percent(second.sender_thread),
            sender_core_percent: second.sender_core.map(percent),
            receiver_thread_percent: percent(second.receiver_thread),
            receiver_core_percent: second.receiver_core.map(percent),
        }
    }
}
