//! A segment over time: steps of equal length, each with a median and with what was lost in it.

use neph_stats::{Level, Sorted, median};

use super::{DIRECTIONS, HopsDelay, HopsDrawing, HopsPacket, is_bound_larger, millis};

/// No time is shown shorter, in nanoseconds: a packet alone has none.
const MIN_DURATION: i64 = 1_000_000;
/// Narrower steps would not be seen.
const MAX_STEPS: usize = 170;

/// The period of the packets, and steps of equal length over that time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    from: i64,
    /// In nanoseconds.
    duration: i64,
    pub(super) steps: usize,
}

impl Clock {
    /// Four packets a step in the mean, as long as steps can be seen.
    pub(super) fn of(drawing: &HopsDrawing<'_>) -> Option<Self> {
        let first_seen = || drawing.packets.iter().map(|packet| packet.first_seen);
        let (from, until) = first_seen().min().zip(first_seen().max())?;
        let packet_counts = DIRECTIONS.map(|direction| drawing.packets_in(direction).count());
        let max_packets = packet_counts.into_iter().max().unwrap_or(0);
        Some(Self {
            from,
            duration: until.saturating_sub(from).max(MIN_DURATION),
            steps: (max_packets / 4).clamp(max_packets.clamp(1, 10), MAX_STEPS),
        })
    }

    pub(super) fn step(&self, first_seen: i64) -> usize {
        let elapsed = i128::from(first_seen.saturating_sub(self.from));
        let steps = i128::try_from(self.steps).unwrap_or(1);
        let step = elapsed * steps / i128::from(self.duration);
        usize::try_from(step).unwrap_or(0).min(self.steps - 1)
    }

    /// The duration of all steps in seconds.
    pub(super) fn seconds(&self) -> f64 {
        millis(self.duration) / 1e3
    }

    /// The share of the time at which a step begins.
    #[expect(clippy::cast_precision_loss, reason = "a few steps")]
    pub(super) fn start_share(&self, step: usize) -> f64 {
        step as f64 / self.steps as f64
    }
}

/// A segment over time.
#[derive(Clone, Debug)]
pub(super) struct SegmentSeries {
    /// The median of each step, in milliseconds.
    pub(super) medians: Vec<Option<f64>>,
    /// How many packets entered it in each step, and how many of them were lost there.
    pub(super) packets_entered: Vec<usize>,
    pub(super) lost: Vec<usize>,
    /// Packets whose delay is known, and of these the ones with a larger bound.
    known_delays: usize,
    uncertain_delays: usize,
    /// The largest bound, in milliseconds.
    pub(super) bound: f64,
}

impl SegmentSeries {
    pub(super) fn of<'a>(
        packets: impl Iterator<Item = &'a HopsPacket<'a>>,
        segment: usize,
        clock: Clock,
    ) -> Self {
        let mut values = vec![Vec::new(); clock.steps];
        let (mut packets_entered, mut lost) = (vec![0; clock.steps], vec![0; clock.steps]);
        let (mut uncertain_delays, mut max_bound) = (0, 0);
        for packet in packets {
            let step = clock.step(packet.first_seen);
            match packet.segments[segment] {
                HopsDelay::Known { delay, bound } => {
                    values[step].push(millis(delay));
                    max_bound = max_bound.max(bound);
                    uncertain_delays += usize::from(is_bound_larger(delay, bound));
                }
                HopsDelay::Lost => lost[step] += 1,
                HopsDelay::Unknown => continue,
            }
            packets_entered[step] += 1;
        }
        let known_delays = values.iter().map(Vec::len).sum();
        Self {
            medians: values.iter_mut().map(|step| median_value(step)).collect(),
            packets_entered,
            lost,
            known_delays,
            uncertain_delays,
            bound: millis(max_bound),
        }
    }

    /// For most packets the bound is larger than the delay.
    pub(super) const fn is_mostly_uncertain(&self) -> bool {
        self.uncertain_delays * 2 > self.known_delays
    }
}

/// The median, in the unit of the values.
pub(super) fn median_value(values: &mut [f64]) -> Option<f64> {
    match median(Sorted::sort(values).ok()?, 0) {
        Ok(Level::At(value)) => Some(value),
        _ => None,
    }
}

/// A part of a count; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "counts in memory")]
pub(super) fn share(part: usize, total: usize) -> f64 {
    part as f64 / total.max(1) as f64
}
