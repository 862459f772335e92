//! Packets over a link, with the timestamps at both ends.
//!
//! Owns the schedules: small packets (probes) with intervals that avoid waiting, and a stream of
//! full-size packets that fills a queue and keeps it full.

use std::sync::atomic::{AtomicBool, Ordering};

use neph_model::Span;
use neph_sys::clock::{self, RawNanos, Spin};

use super::end::{LinkEnd, PROBE_BYTES};
use super::max_delay;
use crate::gate::{ETHERNET_HEADER_BYTES, FULL_FRAME_BYTES, Shape, Wire, transmission_time};

/// Duration of probing without and with jitter: a distribution needs more packets.
const PROBING: Span = Span::from_millis(600);
const JITTER_PROBING: Span = Span::from_secs(2);
/// Maximum interval of probes.
const MAX_PROBE_INTERVAL: Span = Span::from_millis(10);
/// Duration of a stream after its queue is full, and minimum number of frames.
const STREAM_DURATION: Span = Span::from_millis(150);
const MIN_FRAMES: i64 = 60;
/// Minimum number of frames with loss: each random loss changes the rate by its share.
const MIN_FRAMES_WITH_LOSS: i64 = 1_000;
/// Ratio of a stream's rate to that of its link: 13 to 10.
const STREAM_RATE_RATIO: (i64, i64) = (13, 10);
/// Number of packets that a sender here can send in about a second.
const MAX_PACKETS: i64 = 150_000;
/// A queue that drains longer than this is not filled.
const MAX_DRAIN_TIME: Span = Span::from_millis(2_500);
/// Maximum duration of a stream; if the minimum number of frames takes longer, there is no rate.
const MAX_STREAM_DURATION: Span = Span::from_secs(3);
const MIN_REPORTED_FRAMES: i64 = 20;
/// Interval of checks whether to stop.
const STOP_CHECK: Span = Span::from_millis(50);
/// Number of frames between two reads of arrivals, at most.
const MAX_FRAMES_BETWEEN_READS: i64 = 16;

/// Additional time to wait for packets beyond the link's delay, and the early stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitLimit<'s> {
    pub(super) extra_wait: Span,
    pub(super) stop: &'s AtomicBool,
}

impl WaitLimit<'_> {
    /// Whether waiting is over.
    pub(super) fn is_over(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until this moment of the raw clock, or until waiting is over.
    fn sleep_until(self, moment: i64) {
        while !self.is_over() {
            let now = clock::raw().0;
            clock::sleep_until(RawNanos(moment.min(now + STOP_CHECK.nanos())), Spin::NONE);
            if moment <= now + STOP_CHECK.nanos() {
                return;
            }
        }
    }
}

/// When a packet was observed at both ends: wall-clock nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketTimes {
    /// At the interface of the sender.
    pub(super) departure: Option<i64>,
    /// At the interface of the receiver.
    pub(super) arrival: Option<i64>,
}

impl PacketTimes {
    pub(super) fn delay(&self) -> Option<Span> {
        self.departure
            .zip(self.arrival)
            .map(|(departure, arrival)| Span::from_nanos(arrival - departure))
    }
}

/// The result of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) packet_times: Vec<PacketTimes>,
    /// Bytes of each frame.
    pub(super) bytes: u32,
    /// Whether all packets that found room arrived in time.
    pub(super) is_drained: bool,
}

/// Small packets in both directions at once; denser with loss, sparser if jitter would make them wait for
/// each other.
pub(super) fn exchange_probes(
    ends: &mut [LinkEnd; 2],
    shapes: [&Shape; 2],
    wires: [&Wire; 2],
    wait_limit: WaitLimit<'_>,
) -> [Vec<PacketTimes>; 2] {
    let (interval, count) = probe_schedule(shapes, wires);
    let mut observed = [
        vec![PacketTimes::default(); count],
        vec![PacketTimes::default(); count],
    ];
    let start = clock::raw().0;
    for (_, number) in (0..count).zip(0_u32..) {
        let due = start + interval.times(i64::from(number)).nanos();
        wait_limit.sleep_until(due);
        if wait_limit.is_over() {
            return observed;
        }
        for (end, observed) in ends.iter().zip(&mut observed) {
            send(end, observed, (number, PROBE_BYTES));
        }
        read_observed(ends, &mut observed);
    }
    let longest_delay = wires.map(max_delay).into_iter().max().unwrap_or_default();
    // On a slow link the transmission of the last packet exceeds all other waits.
    let transmission = probe_transmission_time(shapes).unwrap_or_default().times(2);
    let deadline = clock::raw().0 + (longest_delay + transmission + wait_limit.extra_wait).nanos();
    while clock::raw().0 < deadline && !have_all_arrived(&observed) && !wait_limit.is_over() {
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
        read_observed(ends, &mut observed);
    }
    observed
}

/// Interval and number of probes.
fn probe_schedule(shapes: [&Shape; 2], wires: [&Wire; 2]) -> (Span, usize) {
    let interval = probe_interval(shapes, wires);
    let has_jitter = wires
        .iter()
        .any(|wire| wire.jitter.max_deviation() > Span::ZERO);
    let duration = if has_jitter { JITTER_PROBING } else { PROBING };
    let count = usize::try_from(duration.nanos() / interval.nanos()).expect("positive");
    (interval, count.max(4))
}

/// Duration of probing, including the arrival of the last probe.
pub(super) fn probing_duration(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let (interval, count) = probe_schedule(shapes, wires);
    let longest_delay = wires.map(max_delay).into_iter().max().unwrap_or_default();
    interval.times(i64::try_from(count).unwrap_or(i64::MAX)) + longest_delay
}

/// Transmission time of a small packet in the slower direction.
fn probe_transmission_time(shapes: [&Shape; 2]) -> Option<Span> {
    let rates = shapes.iter().filter_map(|shape| shape.rate);
    rates.map(|rate| transmission_time(PROBE_BYTES, rate)).max()
}

fn probe_interval(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let has_loss = wires.iter().any(|wire| wire.loss.fraction() > 0.0);
    let min = Span::from_micros(if has_loss { 250 } else { 1_000 });
    // A delayed packet must have departed before the next one arrives.
    let transmission = probe_transmission_time(shapes).map(|time| time.times(4));
    let jitter_intervals = wires
        .iter()
        .map(|wire| wire.jitter.max_deviation().times(2).min(MAX_PROBE_INTERVAL));
    let longest = transmission.into_iter().chain(jitter_intervals).max();
    longest.unwrap_or_default().max(min)
}

/// The size, times and number of the frames of a stream.
struct StreamSchedule {
    /// Bytes of each.
    bytes: u32,
    /// Transmission time of one frame.
    frame_time: Span,
    /// Nanoseconds between two frames.
    interval: i64,
    /// Number of frames that are sent at once.
    burst: i64,
    /// Number of all frames.
    count: i64,
}

impl StreamSchedule {
    /// `None` without a requested rate, or if the minimum number of frames exceeds the duration of a stream.
    fn from_shape(shape: &Shape) -> Option<Self> {
        let rate = shape.rate?;
        let bytes = shape.mtu.map_or(FULL_FRAME_BYTES, |mtu| {
            (mtu + ETHERNET_HEADER_BYTES).clamp(PROBE_BYTES, FULL_FRAME_BYTES)
        });
        let frame_time = transmission_time(bytes, rate);
        let interval = (frame_time.nanos() * STREAM_RATE_RATIO.1 / STREAM_RATE_RATIO.0).max(1);
        if frame_time.times(MIN_REPORTED_FRAMES) > MAX_STREAM_DURATION {
            return None;
        }
        let queue_frames =
            i64::try_from(shape.queue.bytes_of(bytes).0 / u64::from(bytes)).unwrap_or(MAX_PACKETS);
        // Fills the queue at once, then keeps it full. A queue that would not drain in time is not filled:
        // its content would delay the next measurement.
        let burst = if frame_time.times(queue_frames) > MAX_DRAIN_TIME {
            0
        } else {
            (queue_frames * 11 / 10).min(MAX_PACKETS / 2)
        };
        let has_loss = shape.wires().any(|wire| wire.loss.fraction() > 0.0);
        let min_frames = if has_loss {
            MIN_FRAMES_WITH_LOSS
        } else {
            MIN_FRAMES
        };
        let steady_count = (STREAM_DURATION.nanos() / interval)
            .max(min_frames.min(MAX_STREAM_DURATION.nanos() / interval));
        // A queue that a fast link drains meanwhile is filled by later frames.
        let count = burst + steady_count.min(MAX_PACKETS - burst);
        Some(Self {
            bytes,
            frame_time,
            interval,
            burst,
            count,
        })
    }
}

/// Whether a stream can measure the rate.
pub(super) fn can_stream(shape: &Shape) -> bool {
    StreamSchedule::from_shape(shape).is_some()
}

/// Maximum duration of a stream until all packets have arrived.
pub(super) fn stream_duration(shape: &Shape, wire: &Wire, extra_wait: Span) -> Span {
    StreamSchedule::from_shape(shape).map_or(Span::ZERO, |schedule| {
        // A sender needs time for each frame, on a link of any speed.
        let sending = Span::from_secs(1).nanos() * schedule.count / MAX_PACKETS;
        let transmission = schedule
            .frame_time
            .times(schedule.count)
            .max(Span::from_nanos(sending));
        let idle_timeout = schedule.frame_time.times(4) + max_delay(wire) + extra_wait;
        transmission + max_delay(wire) + idle_timeout.min(max_delay(wire) + MAX_DRAIN_TIME)
    })
}

/// Full-size frames from one side with a requested rate, faster than it, so that they queue.
pub(super) fn send_stream(
    ends: &mut [LinkEnd; 2],
    side: usize,
    shape: &Shape,
    wire: &Wire,
    wait_limit: WaitLimit<'_>,
) -> Option<Stream> {
    let StreamSchedule {
        bytes,
        frame_time,
        interval,
        burst,
        count,
    } = StreamSchedule::from_shape(shape)?;
    let mut observed: [Vec<PacketTimes>; 2] = Default::default();
    observed[side] = vec![PacketTimes::default(); usize::try_from(count).expect("positive")];
    let start = clock::raw().0;
    let mut next_number = 0;
    while next_number < count && !wait_limit.is_over() {
        let now = clock::raw().0;
        let due = (burst + (now - start) / interval).min(count);
        let until = due.min(next_number + MAX_FRAMES_BETWEEN_READS);
        for number in next_number..until {
            let number = u32::try_from(number).expect("at most MAX_PACKETS");
            send(&ends[side], &mut observed[side], (number, bytes));
        }
        next_number = until;
        read_observed(ends, &mut observed);
        if next_number == due && next_number < count {
            wait_limit.sleep_until(start + (next_number - burst + 1) * interval);
        }
    }
    let is_drained = wait_until_drained(ends, &mut observed, wire, frame_time, wait_limit);
    Some(Stream {
        packet_times: std::mem::take(&mut observed[side]),
        bytes,
        is_drained,
    })
}

/// Waits until arrivals stop: for longer than the interval of a stream's frames.
fn wait_until_drained(
    ends: &mut [LinkEnd; 2],
    observed: &mut [Vec<PacketTimes>; 2],
    wire: &Wire,
    frame_time: Span,
    wait_limit: WaitLimit<'_>,
) -> bool {
    let idle_timeout = (frame_time.times(4) + max_delay(wire) + wait_limit.extra_wait).nanos();
    let deadline = clock::raw().0 + (max_delay(wire) + MAX_DRAIN_TIME).nanos();
    let mut last_arrival = clock::raw().0;
    while clock::raw().0 < deadline
        && clock::raw().0 - last_arrival < idle_timeout
        && !wait_limit.is_over()
    {
        if read_observed(ends, observed) {
            last_arrival = clock::raw().0;
        }
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
    }
    clock::raw().0 < deadline
}

/// Sends a packet and stores its departure, if its end provides it.
fn send(end: &LinkEnd, observed: &mut [PacketTimes], (number, bytes): (u32, u32)) {
    let departure = end.send(number, bytes);
    if let Some(times) = observed.get_mut(number as usize)
        && departure.is_some()
    {
        times.departure = departure;
    }
}

/// Reads the new packets at both ends; returns whether there were any.
fn read_observed(ends: &mut [LinkEnd; 2], observed: &mut [Vec<PacketTimes>; 2]) -> bool {
    let mut has_new = false;
    for (side, end) in ends.iter_mut().enumerate() {
        while let Some(packet) = end.next_observed() {
            has_new = true;
            let sender = if packet.is_own { side } else { 1 - side };
            let Some(times) = observed[sender].get_mut(packet.number as usize) else {
                continue;
            };
            let time = if packet.is_own {
                &mut times.departure
            } else {
                &mut times.arrival
            };
            *time = Some(packet.timestamp);
        }
    }
    has_new
}

fn have_all_arrived(observed: &[Vec<PacketTimes>; 2]) -> bool {
    observed
        .iter()
        .flatten()
        .all(|times| times.arrival.is_some())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use neph_model::{BitRate, ByteSize};

    use super::*;
    use crate::gate::QueueLimit;

    fn shape(rate: u64, queue: u64) -> Shape {
        Shape {
            rate: Some(BitRate(rate)),
            queue: QueueLimit::Bytes(ByteSize(queue)),
            ..Shape::default()
        }
    }

    #[test]
    fn a_queue_is_filled_only_if_it_drains_before_the_next_measurement() {
        let burst = |shape: &Shape| StreamSchedule::from_shape(shape).expect("frames").burst;
        // 0.7 s to drain, and 21 s.
        assert_eq!(burst(&shape(3_000_000, 262_144)), 190);
        let slow = shape(100_000, 262_144);
        assert_eq!(burst(&slow), 0);
        // Sent 1.3 times as fast as the link for 3 s: the queue then drains.
        let schedule = StreamSchedule::from_shape(&slow).expect("frames");
        let undrained = schedule.frame_time.times(schedule.count)
            - Span::from_nanos(schedule.interval * schedule.count);
        assert!(undrained < MAX_DRAIN_TIME, "{undrained}");
    }

    #[test]
    fn probing_at_the_lowest_rate_takes_some_seconds() {
        let slow = shape(1_000, 262_144);
        let wire = Wire::default();
        let duration = probing_duration([&slow, &slow], [&wire, &wire]);
        assert!(
            duration > Span::from_secs(8) && duration < Span::from_secs(9),
            "{duration}"
        );
        assert_eq!(stream_duration(&slow, &wire, Span::ZERO), Span::ZERO);
    }

    #[test]
    fn waiting_ends_early_when_stopped() {
        let stop = AtomicBool::new(false);
        let wait_limit = WaitLimit {
            extra_wait: Span::ZERO,
            stop: &stop,
        };
        let before = clock::raw().0;
        thread::scope(|scope| {
            scope.spawn(|| {
                clock::nap(std::time::Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            wait_limit.sleep_until(before + Span::from_secs(60).nanos());
        });
        let slept = Span::from_nanos(clock::raw().0 - before);
        assert!(slept > Span::from_millis(40) && slept < Span::from_secs(5));
    }
}
