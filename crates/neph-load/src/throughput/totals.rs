//! One direction of a test as a whole: what both ends counted, added up.
//!
//! What a peer sent may be anything: sums saturate.

use std::collections::BTreeSet;

use neph_model::{BitRate, Span};
use neph_wire::throughput::{Ask, Protocol, ReceivedInterval, SentInterval, Variation};

use super::ends::Ends;
use super::rates::{nanos, rate, ratio};
use super::usage::{Usage, usage};

/// What TCP did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpTotals {
    /// Segments that were sent, retransmissions included.
    pub segments: u64,
    /// Segments that were retransmitted.
    pub retransmissions: u64,
    /// The mean of the seconds' smoothed round-trip times.
    pub srtt_mean: Span,
    /// The longest smoothed round-trip time of a second.
    pub srtt_max: Span,
    /// The least round-trip time.
    pub min_rtt: Span,
    /// The mean of the seconds' congestion windows, all streams together, bytes.
    pub cwnd_mean_bytes: u64,
    /// Share of the busy time that the receive window was the limit.
    pub rwnd_limited: f64,
    /// Share of the busy time that the send buffer was the limit.
    pub sndbuf_limited: f64,
}

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UdpTotals {
    /// That the sender's kernel took.
    pub sent: u64,
    /// That the sender's kernel refused.
    pub refused: u64,
    /// That came, duplicates not counted.
    pub received: u64,
    /// That were sent and did not come.
    pub lost: u64,
    /// Of these, dropped at the receiver's socket; an estimate where the kernel joins datagrams.
    pub socket_drops: u64,
    /// That came out of order (RFC 4737).
    pub reordered: u64,
    /// The largest reordering extent (RFC 4737).
    pub reordering_extent: u64,
    /// That came more than once.
    pub duplicates: u64,
    /// The mean of the seconds' interarrival jitter, of the stream with the most (RFC 3550).
    pub jitter: Span,
    /// Delay variation of the stream with the largest 95th percentile (RFC 5481).
    pub variation: Variation,
}

impl UdpTotals {
    /// Share of what was sent that did not come.
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
    /// The rate that was asked for.
    pub asked: Option<BitRate>,
    /// How long the sender sent, and the receiver received.
    pub lasted: Span,
    /// Payload that the sender's kernel took.
    pub sent_bytes: u64,
    /// Payload that the receiver received in its time.
    pub received_bytes: u64,
    /// The rate of what was sent.
    pub sent: BitRate,
    /// The rate of what was received.
    pub goodput: BitRate,
    /// The sending end.
    pub sender: Usage,
    /// The receiving end.
    pub receiver: Usage,
    /// Of TCP only.
    pub tcp: Option<TcpTotals>,
    /// Of UDP only.
    pub udp: Option<UdpTotals>,
}

impl Totals {
    /// Adds up what both ends counted.
    pub(super) fn of(ends: Ends<'_>, ask: &Ask) -> Self {
        let (sent, received) = (&ends.sender.sent, &ends.receiver.received);
        let in_time: Vec<_> = received.iter().filter(|one| !one.is_late).collect();
        let bytes_of = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
        let streams = |stream: u16| ask.all_streams() > stream;
        let mut totals = Self {
            asked: ask.rate_bit_s.map(BitRate),
            sent_bytes: bytes_of(&mut sent.iter().map(|one| one.bytes)),
            received_bytes: bytes_of(&mut in_time.iter().map(|one| one.bytes)),
            sender: usage(sent, &ends.sender.cpu),
            receiver: usage(in_time.iter().copied(), &ends.receiver.cpu),
            ..Self::default()
        };
        for stream in (0..).take_while(|stream| streams(*stream)) {
            let own = sent.iter().filter(|one| one.stream == stream);
            totals.sent = add(totals.sent, over_all(own.map(Counted::of_sent)).0);
            let own = in_time.iter().filter(|one| one.stream == stream);
            let (rate, lasted) = over_all(own.map(|one| Counted::of_received(one)));
            totals.goodput = add(totals.goodput, rate);
            totals.lasted = totals.lasted.max(lasted);
        }
        match ask.protocol {
            Protocol::Tcp => totals.tcp = Some(tcp(sent)),
            Protocol::Udp => totals.udp = Some(udp(ends)),
        }
        totals
    }
}

/// Bytes between two moments.
#[derive(Clone, Copy)]
struct Counted {
    bytes: u64,
    from_ns: u64,
    to_ns: u64,
}

impl Counted {
    const fn of_sent(one: &SentInterval) -> Self {
        Self {
            bytes: one.bytes,
            from_ns: one.from_ns,
            to_ns: one.to_ns,
        }
    }

    const fn of_received(one: &ReceivedInterval) -> Self {
        Self {
            bytes: one.bytes,
            from_ns: one.from_ns,
            to_ns: one.to_ns,
        }
    }
}

/// The rate over all intervals of one stream, and how long they last together.
fn over_all(intervals: impl Iterator<Item = Counted>) -> (BitRate, Span) {
    let (mut bytes, mut from, mut to) = (0_u64, u64::MAX, 0);
    for one in intervals {
        bytes = bytes.saturating_add(one.bytes);
        from = from.min(one.from_ns);
        to = to.max(one.to_ns);
    }
    let from = from.min(to);
    (rate(bytes, from, to), nanos(to - from))
}

fn add(one: BitRate, other: BitRate) -> BitRate {
    BitRate(one.0.saturating_add(other.0))
}

fn tcp(sent: &[SentInterval]) -> TcpTotals {
    let all: Vec<_> = sent
        .iter()
        .filter_map(|one| Some((one.index, one.tcp?)))
        .collect();
    let sum = |of: fn(&neph_wire::throughput::TcpCounters) -> u64| {
        all.iter()
            .map(|(_, one)| of(one))
            .fold(0, u64::saturating_add)
    };
    let count = all.len() as u64;
    let micros = |count: u64| Span::from_micros(i64::try_from(count).unwrap_or(i64::MAX));
    let seconds = all.iter().map(|(index, _)| u64::from(*index) + 1).max();
    let busy = sum(|one| one.busy_us);
    let window = sum(|one| u64::from(one.cwnd_segments) * u64::from(one.mss_bytes));
    let longest = all.iter().map(|(_, one)| one.srtt_us).max().unwrap_or(0);
    let rtts = all.iter().map(|(_, one)| one.min_rtt_us);
    let least = rtts.filter(|rtt| *rtt < u32::MAX).min().unwrap_or(0);
    TcpTotals {
        segments: sum(|one| one.segments),
        retransmissions: sum(|one| one.retransmissions),
        srtt_mean: micros(sum(|one| one.srtt_us.into()) / count.max(1)),
        srtt_max: micros(longest.into()),
        min_rtt: micros(least.into()),
        cwnd_mean_bytes: window / seconds.unwrap_or(1).clamp(1, count.max(1)),
        rwnd_limited: ratio(sum(|one| one.rwnd_limited_us), busy),
        sndbuf_limited: ratio(sum(|one| one.sndbuf_limited_us), busy),
    }
}

fn udp(ends: Ends<'_>) -> UdpTotals {
    let sent =
        |of: fn(&SentInterval) -> u64| ends.sender.sent.iter().map(of).fold(0, u64::saturating_add);
    let all: Vec<_> = ends
        .receiver
        .received
        .iter()
        .filter_map(|one| Some((one, one.udp?)))
        .collect();
    let sum = |of: fn(&neph_wire::throughput::UdpCounters) -> u64| {
        all.iter()
            .map(|(_, one)| of(one))
            .fold(0, u64::saturating_add)
    };
    let extents = all.iter().map(|(_, one)| one.reordering_extent);
    let (sent_count, received) = (sent(|one| one.datagrams), sum(|one| one.datagrams));
    let streams = all.iter().map(|(one, _)| one.stream);
    let streams: BTreeSet<u16> = streams.collect();
    let jitter = streams.into_iter().map(|stream| {
        let own = all
            .iter()
            .filter(|(one, _)| one.stream == stream && !one.is_late);
        let (count, sum) = own.fold((0_u64, 0_u64), |(count, sum), (_, one)| {
            (count + 1, sum.saturating_add(one.jitter_ns))
        });
        sum / count.max(1)
    });
    let variations = ends.receiver.variation.iter().map(|one| one.variation);
    let worst = variations.max_by_key(|one| one.pdv_p95_ns.or(one.pdv_max_ns));
    UdpTotals {
        sent: sent_count,
        refused: sent(|one| one.refused),
        received,
        // Also the last ones, of which the receiver cannot know.
        lost: sent_count.saturating_sub(received),
        socket_drops: sum(|one| one.socket_drops).min(sent_count.saturating_sub(received)),
        reordered: sum(|one| one.reordered),
        reordering_extent: extents.max().unwrap_or(0),
        duplicates: sum(|one| one.duplicates),
        jitter: nanos(jitter.max().unwrap_or(0)),
        variation: worst.unwrap_or_default(),
    }
}
