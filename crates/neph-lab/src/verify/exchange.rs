//! Packets over a link in both directions at once, and when each was seen at either end.
//!
//! Owns the schedules: a burst of small packets far enough apart not to wait for each other, and
//! a flood of full ones that fills a queue.

use neph_model::Span;
use neph_sys::clock::{self, RawNanos, Spin};

use super::end::{End, PROBE_BYTES};
use crate::gate::{Shape, transmission_time};

/// Bytes of a full frame, Ethernet header included.
pub(super) const FLOOD_BYTES: u32 = 1514;
/// How long a burst lasts.
const BURST: Span = Span::from_millis(600);
/// How long a flood is waited for, the link's delay excepted.
const FLOOD: Span = Span::from_millis(1_200);
/// How much longer than a queue takes the flood goes on, in time at the link's rate.
const BEYOND: Span = Span::from_millis(200);
/// What a sender here manages of full frames in both directions: 100,000/s is 1.2 Gbit/s each.
const MOST_FLOODED: u32 = 100_000;
/// The kernel takes this long at most from one end to the other, beside what the link was asked.
const GRACE: Span = Span::from_millis(100);

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

/// What a flood gave.
#[derive(Debug, Default)]
pub(super) struct Flood {
    pub(super) sightings: Vec<Sighting>,
    /// Whether some found the queue full.
    pub(super) filled: bool,
    /// Whether all that found room came in time.
    pub(super) drained: bool,
}

/// Small packets both ways; denser where loss is to be estimated.
pub(super) fn burst(ends: &mut [End; 2], shapes: [&Shape; 2]) -> [Vec<Sighting>; 2] {
    let lossy = shapes.iter().any(|shape| shape.wire.loss.fraction() > 0.0);
    let least = Span::from_micros(if lossy { 250 } else { 1_000 });
    let times = shapes.iter().filter_map(|shape| shape.rate);
    let slowest = times
        .map(|rate| transmission_time(PROBE_BYTES, rate).times(2))
        .max();
    let gap = slowest.unwrap_or_default().max(least);
    let count = usize::try_from(BURST.nanos() / gap.nanos())
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
        for end in &*ends {
            end.send(number, PROBE_BYTES);
        }
        watch(ends, &mut seen);
    }
    let longest = shapes
        .iter()
        .map(|shape| shape.wire.delay + shape.wire.jitter.reach())
        .max();
    let deadline = clock::raw().0 + (longest.unwrap_or_default() + GRACE).nanos();
    while clock::raw().0 < deadline && !all_came(&seen) {
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
        watch(ends, &mut seen);
    }
    seen
}

/// Full frames both ways where a rate was asked, as fast as they can be sent.
pub(super) fn flood(ends: &mut [End; 2], shapes: [&Shape; 2]) -> [Flood; 2] {
    let counts = shapes.map(frames_to_fill);
    let mut seen = counts.map(|count| vec![Sighting::default(); count as usize]);
    for number in 0..counts[0].max(counts[1]) {
        for (end, count) in ends.iter().zip(counts) {
            if number < count {
                end.send(number, FLOOD_BYTES);
            }
        }
        if number % 16 == 0 {
            watch(ends, &mut seen);
        }
    }
    if counts == [0, 0] {
        return Default::default();
    }
    let longest = shapes
        .iter()
        .map(|shape| shape.wire.delay + shape.wire.jitter.reach())
        .max();
    let deadline = clock::raw().0 + (longest.unwrap_or_default() + FLOOD).nanos();
    // Drained when nothing came for longer than any two packets of the flood lie apart.
    let silence = shapes.iter().filter_map(|shape| shape.rate);
    let silence = silence
        .map(|rate| transmission_time(4 * FLOOD_BYTES, rate))
        .max();
    let silence = silence.unwrap_or_default() + longest.unwrap_or_default() + GRACE;
    let mut last = clock::raw().0;
    while clock::raw().0 < deadline && clock::raw().0 - last < silence.nanos() {
        if watch(ends, &mut seen) {
            last = clock::raw().0;
        }
        clock::sleep_until(RawNanos(clock::raw().0 + 1_000_000), Spin::NONE);
    }
    let drained = clock::raw().0 < deadline;
    seen.map(|sightings| {
        let filled = sightings
            .iter()
            .any(|one| one.left.is_some() && one.came.is_none());
        Flood {
            sightings,
            filled,
            drained,
        }
    })
}

/// Frames that fill the queue and go on for a while; none without a rate.
fn frames_to_fill(shape: &Shape) -> u32 {
    let Some(rate) = shape.rate else { return 0 };
    let beyond = i128::from(rate.0) * i128::from(BEYOND.nanos()) / 8_000_000_000;
    let bytes = i128::from(shape.queue.bytes_of(FLOOD_BYTES).0) * 5 / 4 + beyond;
    u32::try_from(bytes / i128::from(FLOOD_BYTES))
        .unwrap_or(u32::MAX)
        .clamp(40, MOST_FLOODED)
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
