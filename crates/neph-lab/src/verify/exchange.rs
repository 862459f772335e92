//! Packets over a link, with the timestamps at both ends.
//!
//! Owns the schedules: a trickle of small packets with intervals that avoid waiting, and a stream of
//! full-size packets that fills a queue and keeps it full.

use std::sync::atomic::{AtomicBool, Ordering};

use neph_model::Span;
use neph_sys::clock::{self, RawNanos, Spin};

use super::end::{End, PROBE_BYTES};
use super::max_delay;
use crate::gate::{ETHERNET_HEADER_BYTES, FULL_FRAME_BYTES, Shape, Wire, transmission_time};

/// Duration of a trickle without and with jitter: a distribution needs more packets.
const TRICKLE: Span = Span::from_millis(600);
const JITTER_TRICKLE: Span = Span::from_secs(2);
/// Maximum interval of a trickle.
const MAX_TRICKLE_INTERVAL: Span = Span::from_millis(10);
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
pub(super) struct Patience<'s> {
    pub(super) span: Span,
    pub(super) stop: &'s AtomicBool,
}

impl Patience<'_> {
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
    pub(super) drained: bool,
}

/// Small packets in both directions at once; denser with loss, sparser if jitter would make them wait for
/// each other.
pub(super) fn trickle(
    ends: &mut [End; 2],
    shapes: [&Shape; 2],
    wires: [&Wire; 2],
    patience: Patience<'_>,
) -> [Vec<PacketTimes>; 2] {
    let (gap, count) = small_packets(shapes, wires);
    let mut observed = [
        vec![PacketTimes::default(); count],
        vec![PacketTimes::default(); count],
    ];
    let start = clock::raw().0;
    for (_, number) in (0..count).zip(0_u32..) {
        let due = start + gap.times(i64::from(number)).nanos();
        patience.sleep_until(due);
        if patience.is_over() {
            return observed;
        }
        for (end, observed) in ends.iter().zip(&mut observed) {
            send(end, observed, (number, PROBE_BYTES));
        }
        read_observed(ends, &mut observed);
    }
    let longest_delay = wires.map(max_delay).into_iter().max().unwrap_or_default();
    // On a slow link the transmission of the last packet exceeds all other waits.
    let transmission = slowest(shapes).unwrap_or_default().times(2);
    let deadline = clock::raw().0 + (longest_delay + transmission + patience.span).nanos();
    while clock::raw().0 < deadline && !have_all_arrived(&observed) && !patience.is_over() {
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
        read_observed(ends, &mut observed);
    }
    observed
}

/// Interval and number of the packets of a trickle.
fn small_packets(shapes: [&Shape; 2], wires: [&Wire; 2]) -> (Span, usize) {
    let gap = gap(shapes, wires);
    let mut deviations = wires.iter().map(|wire| wire.jitter.max_deviation());
    let has_jitter = deviations.any(|deviation| deviation > Span::ZERO);
    let duration = if has_jitter { JITTER_TRICKLE } else { TRICKLE };
    let count = usize::try_from(duration.nanos() / gap.nanos()).expect("positive");
    (gap, count.max(4))
}

/// Duration of a trickle, including its last packet's arrival.
pub(super) fn trickle_duration(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let (gap, count) = small_packets(shapes, wires);
    let longest_delay = wires.map(max_delay).into_iter().max().unwrap_or_default();
    gap.times(i64::try_from(count).unwrap_or(i64::MAX)) + longest_delay
}

/// Transmission time of a small packet in the slower direction.
fn slowest(shapes: [&Shape; 2]) -> Option<Span> {
    let rates = shapes.iter().filter_map(|shape| shape.rate);
    rates.map(|rate| transmission_time(PROBE_BYTES, rate)).max()
}

fn gap(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let has_loss = wires.iter().any(|wire| wire.loss.fraction() > 0.0);
    let min = Span::from_micros(if has_loss { 250 } else { 1_000 });
    // A delayed packet must have departed before the next one arrives.
    let transmitted = slowest(shapes).map(|sent| sent.times(4));
    let deviations = wires.iter().map(|wire| wire.jitter.max_deviation());
    let jitter_gaps = deviations.map(|span| span.times(2).min(MAX_TRICKLE_INTERVAL));
    let longest = transmitted.into_iter().chain(jitter_gaps).max();
    longest.unwrap_or_default().max(min)
}

/// The frames of a stream.
struct Frames {
    /// Bytes of each.
    bytes: u32,
    /// Transmission time of one frame.
    frame: Span,
    /// Nanoseconds between two frames.
    gap: i64,
    /// Number of frames that are sent at once.
    burst: i64,
    /// Number of all frames.
    count: i64,
}

impl Frames {
    /// `None` without a requested rate, or if the minimum number of frames exceeds the duration of a stream.
    fn of(shape: &Shape) -> Option<Self> {
        let rate = shape.rate?;
        let bytes = shape.mtu.map_or(FULL_FRAME_BYTES, |mtu| {
            (mtu + ETHERNET_HEADER_BYTES).clamp(PROBE_BYTES, FULL_FRAME_BYTES)
        });
        let frame = transmission_time(bytes, rate);
        let gap = (frame.nanos() * STREAM_RATE_RATIO.1 / STREAM_RATE_RATIO.0).max(1);
        if frame.times(MIN_REPORTED_FRAMES) > MAX_STREAM_DURATION {
            return None;
        }
        let room =
            i64::try_from(shape.queue.bytes_of(bytes).0 / u64::from(bytes)).unwrap_or(MAX_PACKETS);
        // Fills the queue at once, then keeps it full. A queue that would not drain in time is not filled:
        // its content would delay the next measurement.
        let burst = if frame.times(room) > MAX_DRAIN_TIME {
            0
        } else {
            (room * 11 / 10).min(MAX_PACKETS / 2)
        };
        let has_loss = shape.wires().any(|wire| wire.loss.fraction() > 0.0);
        let min_frames = if has_loss {
            MIN_FRAMES_WITH_LOSS
        } else {
            MIN_FRAMES
        };
        let steady_count =
            (STREAM_DURATION.nanos() / gap).max(min_frames.min(MAX_STREAM_DURATION.nanos() / gap));
        // A queue that a fast link drains meanwhile is filled by later frames.
        let count = burst + steady_count.min(MAX_PACKETS - burst);
        Some(Self {
            bytes,
            frame,
            gap,
            burst,
            count,
        })
    }
}

/// Whether a stream can measure the rate.
pub(super) fn can_stream(shape: &Shape) -> bool {
    Frames::of(shape).is_some()
}

/// Maximum duration of a stream until all packets have arrived.
pub(super) fn stream_duration(shape: &Shape, wire: &Wire, patience: Span) -> Span {
    Frames::of(shape).map_or(Span::ZERO, |frames| {
        // A sender needs time for each frame, on a link of any speed.
        let sending = Span::from_secs(1).nanos() * frames.count / MAX_PACKETS;
        let transmission = frames
            .frame
            .times(frames.count)
            .max(Span::from_nanos(sending));
        let silence = frames.frame.times(4) + max_delay(wire) + patience;
        transmission + max_delay(wire) + silence.min(max_delay(wire) + MAX_DRAIN_TIME)
    })
}

/// Full-size frames from one side with a requested rate, faster than it, so that they queue.
pub(super) fn stream(
    ends: &mut [End; 2],
    side: usize,
    shape: &Shape,
    wire: &Wire,
    patience: Patience<'_>,
) -> Option<Stream> {
    let Frames {
        bytes,
        frame,
        gap,
        burst,
        count,
    } = Frames::of(shape)?;
    let mut observed: [Vec<PacketTimes>; 2] = Default::default();
    observed[side] = vec![PacketTimes::default(); usize::try_from(count).expect("positive")];
    let start = clock::raw().0;
    let mut next_number = 0;
    while next_number < count && !patience.is_over() {
        let now = clock::raw().0;
        let due = (burst + (now - start) / gap).min(count);
        let until = due.min(next_number + MAX_FRAMES_BETWEEN_READS);
        for number in next_number..until {
            let number = u32::try_from(number).expect("at most MAX_PACKETS");
            send(&ends[side], &mut observed[side], (number, bytes));
        }
        next_number = until;
        read_observed(ends, &mut observed);
        if next_number == due && next_number < count {
            patience.sleep_until(start + (next_number - burst + 1) * gap);
        }
    }
    let drained = drain(ends, &mut observed, wire, frame, patience);
    Some(Stream {
        packet_times: std::mem::take(&mut observed[side]),
        bytes,
        drained,
    })
}

/// Waits until arrivals stop: for longer than the interval of a stream's frames.
fn drain(
    ends: &mut [End; 2],
    observed: &mut [Vec<PacketTimes>; 2],
    wire: &Wire,
    frame: Span,
    patience: Patience<'_>,
) -> bool {
    let silence = (frame.times(4) + max_delay(wire) + patience.span).nanos();
    let deadline = clock::raw().0 + (max_delay(wire) + MAX_DRAIN_TIME).nanos();
    let mut last_arrival = clock::raw().0;
    while clock::raw().0 < deadline
        && clock::raw().0 - last_arrival < silence
        && !patience.is_over()
    {
        if read_observed(ends, observed) {
            last_arrival = clock::raw().0;
        }
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
    }
    clock::raw().0 < deadline
}

/// Sends a packet and stores its departure, if its end provides it.
fn send(end: &End, observed: &mut [PacketTimes], (number, bytes): (u32, u32)) {
    let departure = end.send(number, bytes);
    if let Some(times) = observed.get_mut(number as usize)
        && departure.is_some()
    {
        times.departure = departure;
    }
}

/// Reads the new packets at both ends; returns whether there were any.
fn read_observed(ends: &mut [End; 2], observed: &mut [Vec<PacketTimes>; 2]) -> bool {
    let mut has_new = false;
    for (side, end) in ends.iter_mut().enumerate() {
        while let Some(packet) = end.next_observed() {
            has_new = true;
            let from = if packet.is_own { side } else { 1 - side };
            let Some(times) = observed[from].get_mut(packet.number as usize) else {
                continue;
            };
            let time = if packet.is_own {
                &mut times.departure
            } else {
                &mut times.arrival
            };
            *time = Some(packet.stamp);
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
    fn a_queue_is_filled_only_where_it_drains_before_the_next_measurement() {
        let burst = |shape: &Shape| Frames::of(shape).expect("frames").burst;
        // 0.7 s to drain, and 21 s.
        assert_eq!(burst(&shape(3_000_000, 262_144)), 190);
        let slow = shape(100_000, 262_144);
        assert_eq!(burst(&slow), 0);
        // Sent 1.3 times as fast as the link for 3 s: the queue then drains.
        let frames = Frames::of(&slow).expect("frames");
        let undrained =
            frames.frame.times(frames.count) - Span::from_nanos(frames.gap * frames.count);
        assert!(undrained < MAX_DRAIN_TIME, "{undrained}");
    }

    #[test]
    fn the_slowest_rate_takes_some_seconds() {
        let slow = shape(1_000, 262_144);
        let wire = Wire::default();
        let duration = trickle_duration([&slow, &slow], [&wire, &wire]);
        assert!(
            duration > Span::from_secs(8) && duration < Span::from_secs(9),
            "{duration}"
        );
        assert_eq!(stream_duration(&slow, &wire, Span::ZERO), Span::ZERO);
    }

    #[test]
    fn waiting_ends_when_it_is_stopped() {
        let stop = AtomicBool::new(false);
        let patience = Patience {
            span: Span::ZERO,
            stop: &stop,
        };
        let before = clock::raw().0;
        thread::scope(|scope| {
            scope.spawn(|| {
                clock::nap(std::time::Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            patience.sleep_until(before + Span::from_secs(60).nanos());
        });
        let slept = Span::from_nanos(clock::raw().0 - before);
        assert!(slept > Span::from_millis(40) && slept < Span::from_secs(5));
    }
}
