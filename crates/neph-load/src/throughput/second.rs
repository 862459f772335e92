//! A second of one direction, all streams together, for live output.

use neph_model::{BitRate, Span};
use neph_wire::throughput::{Direction, ReceivedInterval, SentInterval};

use super::ends::DirectionEnds;
use super::measured::Measured;
use super::rates::{nanos, rate};
use super::usage::{Threaded, busiest, core_busy};

/// A second of one direction, all streams together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Its number, from 0.
    pub index: u32,
    /// Up or down; absent if there is none.
    pub direction: Option<Direction>,
    /// Its end.
    pub to: Span,
    /// Payload that the sender's kernel accepted.
    pub sent: BitRate,
    /// Payload that the receiver received.
    pub goodput: BitRate,
    /// Retransmitted TCP segments.
    pub retransmissions: u64,
    /// Sum of the TCP congestion windows, bytes.
    pub cwnd_bytes: Option<u64>,
    /// Largest smoothed RTT of TCP.
    pub srtt: Option<Span>,
    /// Received UDP datagrams.
    pub datagrams: u64,
    /// Missing UDP datagrams.
    pub lost: u64,
    /// Datagrams among them that the receiver's socket dropped.
    pub socket_drops: u64,
    /// Reordered UDP datagrams.
    pub reordered: u64,
    /// Largest interarrival jitter of a stream (RFC 3550).
    pub jitter: Option<Span>,
    /// Largest 95th percentile of a stream's PDV.
    pub pdv_p95: Option<Span>,
    /// The busiest sending thread, as a share of a core.
    pub sender_thread: f64,
    /// Busy share of that thread's core.
    pub sender_core: Option<f64>,
    /// The busiest receiving thread, as a share of a core.
    pub receiver_thread: f64,
    /// Busy share of that thread's core.
    pub receiver_core: Option<f64>,
}

/// Which seconds were returned.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    next: u32,
}

impl Seconds {
    /// Seconds that both ends have counted on all streams, each once. An incomplete one is returned
    /// when the second after the next exists.
    pub(super) fn complete(&mut self, measured: &Measured) -> Vec<Second> {
        let mut seconds = Vec::new();
        while is_complete(measured, self.next) || is_passed(measured, self.next) {
            seconds.extend(of(measured, self.next));
            self.next += 1;
        }
        seconds
    }

    /// The remaining seconds at the end. An interval below 100 ms is no second.
    pub(super) fn remaining(&mut self, measured: &Measured) -> Vec<Second> {
        const MIN_LENGTH_NANOS: u64 = 100_000_000;
        let intervals = [&measured.client, &measured.server];
        let lasting = intervals.into_iter().flat_map(|end| &end.received);
        let lasting = lasting.filter(|interval| {
            !interval.is_late && interval.to_ns >= interval.from_ns + MIN_LENGTH_NANOS
        });
        let end = lasting
            .map(|interval| interval.index + 1)
            .max()
            .unwrap_or(0);
        let seconds = (self.next..end).flat_map(|index| of(measured, index));
        let seconds = seconds.collect();
        self.next = self.next.max(end);
        seconds
    }
}

fn is_complete(measured: &Measured, index: u32) -> bool {
    let streams = usize::from(measured.test_request.streams);
    measured.directions().all(|direction| {
        let (sent, received) = of_second(measured.ends(direction), index);
        let has_cpu = |cpu: &[neph_wire::throughput::CpuInterval]| {
            cpu.iter().any(|interval| interval.index == index)
        };
        let ends = measured.ends(direction);
        sent.len() >= streams
            && received.len() >= streams
            && has_cpu(&ends.sender.cpu)
            && has_cpu(&ends.receiver.cpu)
    })
}

fn is_passed(measured: &Measured, index: u32) -> bool {
    let intervals = [&measured.client, &measured.server];
    let mut received = intervals.into_iter().flat_map(|end| &end.received);
    received.any(|interval| !interval.is_late && interval.index >= index + 2)
}

fn of_second(ends: DirectionEnds<'_>, index: u32) -> (Vec<&SentInterval>, Vec<&ReceivedInterval>) {
    let sent = ends
        .sender
        .sent
        .iter()
        .filter(|interval| interval.index == index);
    let received = ends.receiver.received.iter();
    let received = received.filter(|interval| interval.index == index && !interval.is_late);
    (sent.collect(), received.collect())
}

/// The second of each direction.
fn of(measured: &Measured, index: u32) -> Vec<Second> {
    let seconds = measured.directions().filter_map(|direction| {
        let ends = measured.ends(direction);
        let (sent, received) = of_second(ends, index);
        if sent.is_empty() && received.is_empty() {
            return None;
        }
        let mut second = Second {
            index,
            direction: Some(direction),
            ..Second::default()
        };
        add_sent(&mut second, &sent, ends);
        add_received(&mut second, &received, ends);
        Some(second)
    });
    seconds.collect()
}

fn add_sent(second: &mut Second, sent: &[&SentInterval], ends: DirectionEnds<'_>) {
    second.sent = sum(sent
        .iter()
        .map(|interval| rate(interval.bytes, interval.from_ns, interval.to_ns)));
    let tcp = sent.iter().filter_map(|interval| interval.tcp);
    for tcp_counters in tcp {
        second.retransmissions += tcp_counters.retransmissions;
        let window = u64::from(tcp_counters.cwnd_segments) * u64::from(tcp_counters.mss_bytes);
        second.cwnd_bytes = Some(second.cwnd_bytes.unwrap_or(0).saturating_add(window));
        let srtt = Span::from_micros(i64::from(tcp_counters.srtt_us));
        second.srtt = second.srtt.max(Some(srtt));
    }
    let threads = sent.iter().map(Threaded::thread);
    if let Some(busiest) = busiest(threads) {
        second.sender_thread = busiest.share;
        second.sender_core = core_busy(&ends.sender.cpu, second.index, busiest.core);
    }
}

fn add_received(second: &mut Second, received: &[&ReceivedInterval], ends: DirectionEnds<'_>) {
    let goodput = received
        .iter()
        .map(|interval| rate(interval.bytes, interval.from_ns, interval.to_ns));
    second.goodput = sum(goodput);
    let to = received
        .iter()
        .map(|interval| interval.to_ns)
        .max()
        .unwrap_or(0);
    second.to = Span::from_nanos(i64::try_from(to).unwrap_or(i64::MAX));
    for udp_counters in received.iter().filter_map(|interval| interval.udp) {
        second.datagrams = second.datagrams.saturating_add(udp_counters.datagrams);
        second.lost = second.lost.saturating_add(udp_counters.lost);
        second.socket_drops = second
            .socket_drops
            .saturating_add(udp_counters.socket_drops);
        second.reordered = second.reordered.saturating_add(udp_counters.reordered);
        second.jitter = second.jitter.max(Some(nanos(udp_counters.jitter_ns)));
        second.pdv_p95 = second
            .pdv_p95
            .max(udp_counters.variation.pdv_p95_ns.map(nanos));
    }
    let threads = received.iter().map(Threaded::thread);
    if let Some(busiest) = busiest(threads) {
        second.receiver_thread = busiest.share;
        second.receiver_core = core_busy(&ends.receiver.cpu, second.index, busiest.core);
    }
}

fn sum(rates: impl Iterator<Item = BitRate>) -> BitRate {
    BitRate(rates.fold(0, |sum, bit_rate| {
        bit_rate.bits_per_second().saturating_add(sum)
    }))
}
