//! Packets over a link, and when each was seen at either end.
//!
//! Owns the schedules: a trickle of small packets far enough apart not to wait for each other, and
//! a stream of full ones that fills a queue and keeps it full.

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
/// What a stream is faster than its link: 13 to 10.
const FASTER: (i64, i64) = (13, 10);
/// What a sender here manages in a second or so.
const MOST: i64 = 150_000;
/// A queue that takes longer to drain is not waited for.
const DRAIN: Span = Span::from_millis(2_500);
/// A stream takes at most this long; where so few frames take longer, no rate is told.
const LONGEST: Span = Span::from_secs(3);
const FEWEST_TOLD: i64 = 20;
/// Frames between two looks at what came.
const LOOK: i64 = 16;

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
    patience: Span,
) -> [Vec<Sighting>; 2] {
    let gap = gap(shapes, wires);
    let jittery = wires.iter().any(|wire| wire.jitter.reach() > Span::ZERO);
    let lasts = if jittery { JITTERY } else { TRICKLE };
    let count = usize::try_from(lasts.nanos() / gap.nanos())
        .expect("positive")
        .max(4);
    let mut seen = [
        vec![Sighting::default(); count],
        vec![Sighting::default(); count],
    ];
    let start = clock::raw().0;
    for (_, number) in (0..count).zip(0_u32..) {
        let due = start + gap.times(i64::from(number)).nanos();
        clock::sleep_until(RawNanos(due), Spin::NONE);
        for (end, seen) in ends.iter().zip(&mut seen) {
            send(end, seen, (number, PROBE_BYTES));
        }
        watch(ends, &mut seen);
    }
    let longest = wires.map(longest).into_iter().max().unwrap_or_default();
    let deadline = clock::raw().0 + (longest + patience).nanos();
    while clock::raw().0 < deadline && !all_came(&seen) {
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
        watch(ends, &mut seen);
    }
    seen
}

fn gap(shapes: [&Shape; 2], wires: [&Wire; 2]) -> Span {
    let lossy = wires.iter().any(|wire| wire.loss.fraction() > 0.0);
    let least = Span::from_micros(if lossy { 250 } else { 1_000 });
    // A packet that its sender sent late must have gone before the next one comes.
    let transmitted = shapes.iter().filter_map(|shape| shape.rate);
    let transmitted = transmitted.map(|rate| transmission_time(PROBE_BYTES, rate).times(4));
    let apart = wires
        .iter()
        .map(|wire| wire.jitter.reach().times(2).min(SPARSE));
    let longest = transmitted.chain(apart).max();
    longest.unwrap_or_default().max(least)
}

/// Full frames from one side where a rate was asked, faster than it, so that they queue.
pub(super) fn stream(
    ends: &mut [End; 2],
    side: usize,
    (shape, wire): (&Shape, &Wire),
    patience: Span,
) -> Option<Stream> {
    let rate = shape.rate?;
    let bytes = shape.mtu.map_or(FULL_FRAME, |mtu| {
        (mtu + ETHERNET).clamp(PROBE_BYTES, FULL_FRAME)
    });
    let frame = transmission_time(bytes, rate);
    let gap = (frame.nanos() * FASTER.1 / FASTER.0).max(1);
    if frame.times(FEWEST_TOLD) > LONGEST {
        return None;
    }
    let room = i64::try_from(shape.queue.bytes_of(bytes).0 / u64::from(bytes)).unwrap_or(MOST);
    // At once what fits into the queue, then what keeps it full.
    let burst = (room * 11 / 10).min(MOST / 2);
    let lasting = (STREAM.nanos() / gap).max(FEWEST.min(LONGEST.nanos() / gap));
    // A queue that a fast link empties while it is being filled is filled by what comes after.
    let count = burst + lasting.min(MOST - burst);
    let mut seen: [Vec<Sighting>; 2] = Default::default();
    seen[side] = vec![Sighting::default(); usize::try_from(count).expect("positive")];
    let start = clock::raw().0;
    let mut next = 0;
    while next < count {
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
            clock::sleep_until(RawNanos(start + (next - burst + 1) * gap), Spin::NONE);
        }
    }
    let drained = drain(ends, &mut seen, (wire, frame), patience);
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
    (wire, frame): (&Wire, Span),
    patience: Span,
) -> bool {
    let silence = (frame.times(4) + longest(wire) + patience).nanos();
    let deadline = clock::raw().0 + (longest(wire) + DRAIN).nanos();
    let mut last = clock::raw().0;
    while clock::raw().0 < deadline && clock::raw().0 - last < silence {
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
