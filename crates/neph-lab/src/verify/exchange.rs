//! Packets over a link, and when each was seen at either end.
//!
//! Owns the schedules: a trickle of small packets far enough apart not to wait for each other, and
//! a stream of full ones that fills a queue and keeps it full.

use std::sync::atomic::{AtomicBool, Ordering};

use neph_model::Span;
use neph_sys::clock::{self, RawNanos, Spin};

use super::end::{End, PROBE_BYTES};
use super::longest;
use crate::gate::{ETHERNET, FULL_FRAME, Shape, Wire, transmission_time};

/// How long a trickle lasts without and with jitter: a distribution needs more packets.
const TRICKLE: Span = Span::from_millis(600);
const JITTERY: Span = Span::from_secs(2);
/// Between two packets of a trickle, at most.
const SPARSE: Span = Span::from_millis(10);
/// How long a stream goes on once its queue is full, and how many frames at least.
const STREAM: Span = Span::from_millis(150);
const FEWEST: i64 = 60;
/// How many frames where some are lost: each that is lost by chance moves the rate by its share.
const FEWEST_LOST: i64 = 1_000;
/// What a stream is faster than its link: 13 to 10.
const FASTER: (i64, i64) = (13, 10);
/// What a sender here manages in a second or so.
const MOST: i64 = 150_000;
/// A queue that takes longer to drain is not waited for.
const DRAIN: Span = Span::from_millis(2_500);
/// A stream takes at most this long; where so few frames take longer, no rate is told.
const LONGEST: Span = Span::from_secs(3);
const FEWEST_REPORTED: i64 = 20;
/// How long nobody looks whether to stop.
const NAP: Span = Span::from_millis(50);
/// Frames between two looks at what came.
const LOOK: i64 = 16;

/// How much longer packets are waited for than their link was asked to keep them, and what ends
/// everything early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'s> {
    pub(super) span: Span,
    pub(super) stop: &'s AtomicBool,
}

impl Patience<'_> {
    /// Whether nothing is waited for any more.
    pub(super) fn is_over(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until this moment of the raw clock, or until it is over.
    fn sleep_until(self, moment: i64) {
        while !self.is_over() {
            let now = clock::raw().0;
            clock::sleep_until(RawNanos(moment.min(now + NAP.nanos())), Spin::NONE);
            if moment <= now + NAP.nanos() {
                return;
            }
        }
    }
}

/// When a packet was seen at both ends: wall nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sighting {
    /// At the interface of the sender.
    pub(super) left: Option<i64>,
    /// At the interface of the receiver.
    pub(super) came: Option<i64>,
}

impl Sighting {
    pub(super) fn delay(&self) -> Option<Span> {
        self.left
            .zip(self.came)
            .map(|(left, came)| Span::from_nanos(came - left))
    }
}

/// What a stream gave.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) sightings: Vec<Sighting>,
    /// Bytes of each frame.
    pub(super) bytes: u32,
    /// Whether all that found room came in time.
    pub(super) drained: bool,
}

/// Small packets both ways at once; denser where loss is to be estimated, sparser where jitter
/// would make them wait for each other.
pub(super) fn trickle(
    ends: &mut [End; 2],
    shapes: [&Shape; 2],
    wires: [&Wire; 2],
    patience: Patience<'_>,
) -> [Vec<Sighting>; 2] {
    let (gap, count) = small_packets(shapes, wires);
    let mut seen = [
        vec![Sighting::default(); count],
        vec![Sighting::default(); count],
    ];
    let start = clock::raw().0;
    for (_, number) in (0..count).zip(0_u32..) {
        let due = start + gap.times(i64::from(number)).nanos();
        patience.sleep_until(due);
        if patience.is_over() {
            return seen;
        }
        for (end, seen) in ends.iter().zip(&mut seen) {
            send(end, seen, (number, PROBE_BYTES));
        }
        watch(ends, &mut seen);
    }
    let longest = wires.map(longest).into_iter().max().unwrap_or_default();
    // On a slow link the last one is sent for longer than anything is waited for.
    let sent = slowest(shapes).unwrap_or_default().times(2);
    let deadline = clock::raw().0 + (longest + sent + patience.span).nanos();
    while clock::raw().0 < deadline && !all_came(&seen) && !patience.is_over() {
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
        watch(ends, &mut seen);
    }
    seen
}

/// How far apart the packets of a trickle are, and how many there are.
fn small_packets(shapes: [&Shape; 2], wires: [&Wire; 2]) -> (Span, usize) {
    let gap = gap(shapes, wires);
    let jittery = wires.iter().any(|wire| wire.jitter.reach() > Span::ZERO);
    let lasts = if jittery { JITTERY } else { TRICKLE };
    let count = usize::try_from(lasts.nanos() / gap.nanos()).expect("positive");
    (gap, count.max(4))
}

/// How long a trickle takes, its last packet's arrival included.
pub(super) fn trickle_takes(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let (gap, count) = small_packets(shapes, wires);
    let longest = wires.map(longest).into_iter().max().unwrap_or_default();
    gap.times(i64::try_from(count).unwrap_or(i64::MAX)) + longest
}

/// How long a small packet is sent on the slower way.
fn slowest(shapes: [&Shape; 2]) -> Option<Span> {
    let rates = shapes.iter().filter_map(|shape| shape.rate);
    rates.map(|rate| transmission_time(PROBE_BYTES, rate)).max()
}

fn gap(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let lossy = wires.iter().any(|wire| wire.loss.fraction() > 0.0);
    let least = Span::from_micros(if lossy { 250 } else { 1_000 });
    // A packet that its sender sent late must have gone before the next one comes.
    let transmitted = slowest(shapes).map(|sent| sent.times(4));
    let apart = wires
        .iter()
        .map(|wire| wire.jitter.reach().times(2).min(SPARSE));
    let longest = transmitted.into_iter().chain(apart).max();
    longest.unwrap_or_default().max(least)
}

/// The frames of a stream.
struct Frames {
    /// Bytes of each.
    bytes: u32,
    /// How long one is on the wire.
    frame: Span,
    /// Nanoseconds between two.
    gap: i64,
    /// How many are sent at once.
    burst: i64,
    /// How many there are, those included.
    count: i64,
}

impl Frames {
    /// None where no rate is asked, or so few frames take longer than a stream may.
    fn of(shape: &Shape) -> Option<Self> {
        let rate = shape.rate?;
        let bytes = shape.mtu.map_or(FULL_FRAME, |mtu| {
            (mtu + ETHERNET).clamp(PROBE_BYTES, FULL_FRAME)
        });
        let frame = transmission_time(bytes, rate);
        let gap = (frame.nanos() * FASTER.1 / FASTER.0).max(1);
        if frame.times(FEWEST_REPORTED) > LONGEST {
            return None;
        }
        let room = i64::try_from(shape.queue.bytes_of(bytes).0 / u64::from(bytes)).unwrap_or(MOST);
        // At once what fits into the queue, then what keeps it full. One that would not drain in
        // time is not filled: what stood in it would delay whatever is measured next.
        let burst = if frame.times(room) > DRAIN {
            0
        } else {
            (room * 11 / 10).min(MOST / 2)
        };
        let loses = shape.wires().any(|wire| wire.loss.fraction() > 0.0);
        let fewest = if loses { FEWEST_LOST } else { FEWEST };
        let lasting = (STREAM.nanos() / gap).max(fewest.min(LONGEST.nanos() / gap));
        // A queue that a fast link empties while it is being filled is filled by what comes after.
        let count = burst + lasting.min(MOST - burst);
        Some(Self {
            bytes,
            frame,
            gap,
            burst,
            count,
        })
    }
}

/// Whether the rate is such that a stream can tell it.
pub(super) fn can_stream(shape: &Shape) -> bool {
    Frames::of(shape).is_some()
}

/// How long a stream takes at most, until all of it has come.
pub(super) fn stream_takes(shape: &Shape, wire: &Wire, patience: Span) -> Span {
    Frames::of(shape).map_or(Span::ZERO, |frames| {
        // A sender takes its time for each frame, however fast the link is.
        let sending = Span::from_secs(1).nanos() * frames.count / MOST;
        let sent = frames
            .frame
            .times(frames.count)
            .max(Span::from_nanos(sending));
        let silence = frames.frame.times(4) + longest(wire) + patience;
        sent + longest(wire) + silence.min(longest(wire) + DRAIN)
    })
}

/// Full frames from one side where a rate was asked, faster than it, so that they queue.
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
    let mut seen: [Vec<Sighting>; 2] = Default::default();
    seen[side] = vec![Sighting::default(); usize::try_from(count).expect("positive")];
    let start = clock::raw().0;
    let mut next = 0;
    while next < count && !patience.is_over() {
        let now = clock::raw().0;
        let due = (burst + (now - start) / gap).min(count);
        let until = due.min(next + LOOK);
        for number in next..until {
            let number = u32::try_from(number).expect("at most MOST");
            send(&ends[side], &mut seen[side], (number, bytes));
        }
        next = until;
        watch(ends, &mut seen);
        if next == due && next < count {
            patience.sleep_until(start + (next - burst + 1) * gap);
        }
    }
    let drained = drain(ends, &mut seen, wire, frame, patience);
    Some(Stream {
        sightings: std::mem::take(&mut seen[side]),
        bytes,
        drained,
    })
}

/// Waits until nothing comes any more: for longer than any two frames of a stream lie apart.
fn drain(
    ends: &mut [End; 2],
    seen: &mut [Vec<Sighting>; 2],
    wire: &Wire,
    frame: Span,
    patience: Patience<'_>,
) -> bool {
    let silence = (frame.times(4) + longest(wire) + patience.span).nanos();
    let deadline = clock::raw().0 + (longest(wire) + DRAIN).nanos();
    let mut last = clock::raw().0;
    while clock::raw().0 < deadline && clock::raw().0 - last < silence && !patience.is_over() {
        if watch(ends, seen) {
            last = clock::raw().0;
        }
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
    }
    clock::raw().0 < deadline
}

/// Sends a packet and takes down when it left, if its end tells.
fn send(end: &End, seen: &mut [Sighting], (number, bytes): (u32, u32)) {
    let left = end.send(number, bytes);
    if let Some(sighting) = seen.get_mut(number as usize)
        && left.is_some()
    {
        sighting.left = left;
    }
}

/// Takes down what both ends saw since the last look; whether there was anything.
fn watch(ends: &mut [End; 2], seen: &mut [Vec<Sighting>; 2]) -> bool {
    let mut any = false;
    for (side, end) in ends.iter_mut().enumerate() {
        while let Some(packet) = end.next_seen() {
            any = true;
            let from = if packet.own { side } else { 1 - side };
            let Some(sighting) = seen[from].get_mut(packet.number as usize) else {
                continue;
            };
            let place = if packet.own {
                &mut sighting.left
            } else {
                &mut sighting.came
            };
            *place = Some(packet.stamp);
        }
    }
    any
}

fn all_came(seen: &[Vec<Sighting>; 2]) -> bool {
    seen.iter()
        .flatten()
        .all(|sighting| sighting.came.is_some())
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
        // Sent 1.3 times as fast as the link for 3 s: what stands in the queue then drains.
        let frames = Frames::of(&slow).expect("frames");
        let left = frames.frame.times(frames.count) - Span::from_nanos(frames.gap * frames.count);
        assert!(left < DRAIN, "{left}");
    }

    #[test]
    fn the_slowest_rate_takes_some_seconds() {
        let slow = shape(1_000, 262_144);
        let wire = Wire::default();
        let takes = trickle_takes([&slow, &slow], [&wire, &wire]);
        assert!(
            takes > Span::from_secs(8) && takes < Span::from_secs(9),
            "{takes}"
        );
        assert_eq!(stream_takes(&slow, &wire, Span::ZERO), Span::ZERO);
    }

    #[test]
    fn a_nap_ends_when_it_is_stopped() {
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
