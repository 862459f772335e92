//! Totals of one direction of a test from both ends.
//!
//! Sums saturate: a peer may send any value.

use std::collections::BTreeSet;

use neph_model::{BitRate, Span};
use neph_wire::throughput::{Protocol, ReceivedInterval, SentInterval, TestRequest, Variation};

use super::ends::DirectionEnds;
use super::rates::{nanos, rate, ratio};
use super::usage::{Usage, usage};

/// Totals of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpTotals {
    /// Sent segments, including retransmissions.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Mean of the smoothed RTTs of all seconds.
    pub srtt_mean: Span,
    /// Largest smoothed RTT of a second.
    pub srtt_max: Span,
    /// Minimum RTT.
    pub min_rtt: Span,
    /// Mean over the seconds of the congestion windows, all streams together, bytes.
    pub cwnd_mean_bytes: u64,
    /// Share of the busy time that the receive window was the limit.
    pub rwnd_limited: f64,
    /// Share of the busy time that the send buffer was the limit.
    pub sndbuf_limited: f64,
}

/// Totals of UDP datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UdpTotals {
    /// Accepted by the sender's kernel.
    pub sent: u64,
    /// Refused by the sender's kernel.
    pub refused: u64,
    /// Received, without duplicates.
    pub received: u64,
    /// Sent but not received.
    pub lost: u64,
    /// Dropped at the receiver's socket, included in `lost`; an estimate if the kernel joins
    /// datagrams.
    pub socket_drops: u64,
    /// Reordered (RFC 4737).
    pub reordered: u64,
    /// Largest reordering extent (RFC 4737).
    pub reordering_extent: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Mean interarrival jitter of the seconds, of the stream with the largest one (RFC 3550).
    pub jitter: Span,
    /// Delay variation of the stream with the largest 95th percentile (RFC 5481).
    pub variation: Variation,
}

impl UdpTotals {
    /// Lost share of the sent datagrams.
    pub fn loss(&self) -> f64 {
        ratio(self.lost, self.sent)
    }

    /// Lost before the receiver's socket.
    pub fn lost_on_the_path(&self) -> u64 {
        self.lost.saturating_sub(self.socket_drops)
    }
}

/// One direction, all streams together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// The requested rate.
    pub requested: Option<BitRate>,
    /// How long the sender sent and the receiver received.
    pub lasted: Span,
    /// Payload that the sender's kernel accepted.
    pub sent_bytes: u64,
    /// Payload that the receiver received in its time.
    pub received_bytes: u64,
    /// Rate of the sent payload.
    pub sent: BitRate,
    /// Rate of the received payload.
    pub goodput: BitRate,
    /// Use of the sending end.
    pub sender: Usage,
    /// Use of the receiving end.
    pub receiver: Usage,
    /// Only for TCP.
    pub tcp: Option<TcpTotals>,
    /// Only for UDP.
    pub udp: Option<UdpTotals>,
}

impl Totals {
    /// Adds up the counts of both ends.
    pub(super) fn of(ends: DirectionEnds<'_>, test_request: &TestRequest) -> Self {
        let (sent, received) = (&ends.sender.sent, &ends.receiver.received);
        let in_time: Vec<_> = received
            .iter()
            .filter(|interval| !interval.is_late)
            .collect();
        let bytes_of = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
        let streams = |stream: u16| test_request.all_streams() > stream;
        let mut totals = Self {
            requested: test_request.rate_bit_s.map(BitRate),
            sent_bytes: bytes_of(&mut sent.iter().map(|interval| interval.bytes)),
            received_bytes: bytes_of(&mut in_time.iter().map(|interval| interval.bytes)),
            sender: usage(sent, &ends.sender.cpu),
            receiver: usage(in_time.iter().copied(), &ends.receiver.cpu),
            ..Self::default()
        };
        for stream in (0..).take_while(|stream| streams(*stream)) {
            let of_stream = sent.iter().filter(|interval| interval.stream == stream);
            totals.sent = add(totals.sent, over_all(of_stream.map(ByteCounts::of_sent)).0);
            let of_stream = in_time.iter().filter(|interval| interval.stream == stream);
            let (rate, lasted) =
                over_all(of_stream.map(|interval| ByteCounts::of_received(interval)));
            totals.goodput = add(totals.goodput, rate);
            totals.lasted = totals.lasted.max(lasted);
        }
        match test_request.protocol {
            Protocol::Tcp => totals.tcp = Some(tcp(sent)),
            Protocol::Udp => totals.udp = Some(udp(ends)),
        }
        totals
    }
}

/// Bytes between two moments.
#[derive(Clone, Copy)]
struct ByteCounts {
    bytes: u64,
    from_ns: u64,
    to_ns: u64,
}

impl ByteCounts {
    const fn of_sent(interval: &SentInterval) -> Self {
        Self {
            bytes: interval.bytes,
            from_ns: interval.from_ns,
            to_ns: interval.to_ns,
        }
    }

    const fn of_received(interval: &ReceivedInterval) -> Self {
        Self {
            bytes: interval.bytes,
            from_ns: interval.from_ns,
            to_ns: interval.to_ns,
        }
    }
}

/// Rate over all intervals of one stream, and their total length.
fn over_all(intervals: impl Iterator<Item = ByteCounts>) -> (BitRate, Span) {
    let (mut bytes, mut from, mut to) = (0_u64, u64::MAX, 0);
    for counted in intervals {
        bytes = bytes.saturating_add(counted.bytes);
        from = from.min(counted.from_ns);
        to = to.max(counted.to_ns);
    }
    let from = from.min(to);
    (rate(bytes, from, to), nanos(to - from))
}

fn add(rate: BitRate, other: BitRate) -> BitRate {
    BitRate(rate.0.saturating_add(other.0))
}

fn tcp(sent: &[SentInterval]) -> TcpTotals {
    let counters: Vec<_> = sent
        .iter()
        .filter_map(|interval| Some((interval.index, interval.tcp?)))
        .collect();
    let sum = |of: fn(&neph_wire::throughput::TcpCounters) -> u64| {
        counters
            .iter()
            .map(|(_, tcp_counters)| of(tcp_counters))
            .fold(0, u64::saturating_add)
    };
    let count = counters.len() as u64;
    let micros = |count: u64| Span::from_micros(i64::try_from(count).unwrap_or(i64::MAX));
    let seconds = counters
        .iter()
        .map(|(index, _)| u64::from(*index) + 1)
        .max();
    let busy = sum(|tcp_counters| tcp_counters.busy_us);
    let window = sum(|tcp_counters| {
        u64::from(tcp_counters.cwnd_segments) * u64::from(tcp_counters.mss_bytes)
    });
    let longest = counters
        .iter()
        .map(|(_, tcp_counters)| tcp_counters.srtt_us)
        .max()
        .unwrap_or(0);
    let rtts = counters
        .iter()
        .map(|(_, tcp_counters)| tcp_counters.min_rtt_us);
    let min = rtts.filter(|rtt| *rtt < u32::MAX).min().unwrap_or(0);
    TcpTotals {
        segments: sum(|tcp_counters| tcp_counters.segments),
        retransmissions: sum(|tcp_counters| tcp_counters.retransmissions),
        srtt_mean: micros(sum(|tcp_counters| tcp_counters.srtt_us.into()) / count.max(1)),
        srtt_max: micros(longest.into()),
        min_rtt: micros(min.into()),
        cwnd_mean_bytes: window / seconds.unwrap_or(1).clamp(1, count.max(1)),
        rwnd_limited: ratio(sum(|tcp_counters| tcp_counters.rwnd_limited_us), busy),
        sndbuf_limited: ratio(sum(|tcp_counters| tcp_counters.sndbuf_limited_us), busy),
    }
}

fn udp(ends: DirectionEnds<'_>) -> UdpTotals {
    let sent =
        |of: fn(&SentInterval) -> u64| ends.sender.sent.iter().map(of).fold(0, u64::saturating_add);
    let counters: Vec<_> = ends
        .receiver
        .received
        .iter()
        .filter_map(|interval| Some((interval, interval.udp?)))
        .collect();
    let sum = |of: fn(&neph_wire::throughput::UdpCounters) -> u64| {
        counters
            .iter()
            .map(|(_, udp_counters)| of(udp_counters))
            .fold(0, u64::saturating_add)
    };
    let extents = counters
        .iter()
        .map(|(_, udp_counters)| udp_counters.reordering_extent);
    let (sent_count, received) = (
        sent(|interval| interval.datagrams),
        sum(|udp_counters| udp_counters.datagrams),
    );
    let streams = counters.iter().map(|(interval, _)| interval.stream);
    let streams: BTreeSet<u16> = streams.collect();
    let jitter = streams.into_iter().map(|stream| {
        let of_stream = counters
            .iter()
            .filter(|(interval, _)| interval.stream == stream && !interval.is_late);
        let (count, sum) = of_stream.fold((0_u64, 0_u64), |(count, sum), (_, udp_counters)| {
            (count + 1, sum.saturating_add(udp_counters.jitter_ns))
        });
        sum / count.max(1)
    });
    let variations = ends
        .receiver
        .variation
        .iter()
        .map(|stream_variation| stream_variation.variation);
    let worst = variations.max_by_key(|variation| variation.pdv_p95_ns.or(variation.pdv_max_ns));
    UdpTotals {
        sent: sent_count,
        refused: sent(|interval| interval.refused),
        received,
        // Includes the last ones, whose loss the receiver cannot detect.
        lost: sent_count.saturating_sub(received),
        socket_drops: sum(|udp_counters| udp_counters.socket_drops)
            .min(sent_count.saturating_sub(received)),
        reordered: sum(|udp_counters| udp_counters.reordered),
        reordering_extent: extents.max().unwrap_or(0),
        duplicates: sum(|udp_counters| udp_counters.duplicates),
        jitter: nanos(jitter.max().unwrap_or(0)),
        variation: worst.unwrap_or_default(),
    }
}
