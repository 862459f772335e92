//! The latest samples of a flow with their times: for the source's rule, and for dating a change. Owns the
//! encoding. Draws no conclusions.
//!
//! A fleet has tens of thousands of these. So they are stored inline with ten bytes per sample: the lower 48
//! bits of the time, and the difference from the first sample.

use crate::base_latency::{Detection, LARGEST_WINDOW, Stable, stable};
use crate::casts::clamp_to_i32;

/// Number of kept samples.
pub(crate) const KEPT_SAMPLES: usize = LARGEST_WINDOW as usize;
const KEPT_SAMPLES_U8: u8 = LARGEST_WINDOW;

/// Times less than this many nanoseconds before the newest are distinguished: 3 days.
const TIME_CYCLE_NS: i64 = 1 << 48;

/// The last samples of one flow with their times, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Recent {
    /// When the newest was sent.
    newest: i64,
    /// The first sample: the others lie within 2 s of it.
    origin: i64,
    times: [[u8; 6]; KEPT_SAMPLES],
    samples: [i32; KEPT_SAMPLES],
    next: u8,
    length: u8,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self {
            newest: 0,
            origin: 0,
            times: [[0; 6]; KEPT_SAMPLES],
            samples: [0; KEPT_SAMPLES],
            next: 0,
            length: 0,
        }
    }

    /// Adds the next sample, in the order of time.
    pub(crate) fn push(&mut self, at: i64, sample: i64) {
        if self.length == 0 {
            self.origin = sample;
        }
        self.newest = at;
        let index = usize::from(self.next);
        let [_, _, time @ ..] = at.to_be_bytes();
        self.times[index] = time;
        self.samples[index] = clamp_to_i32(sample.saturating_sub(self.origin));
        self.next = (self.next + 1) % KEPT_SAMPLES_U8;
        self.length = (self.length + 1).min(KEPT_SAMPLES_U8);
    }

    pub(crate) fn clear(&mut self) {
        (self.next, self.length) = (0, 0);
    }

    /// The sample that came `ago` samples before the newest, with its time, if it is kept.
    pub(crate) fn ago(&self, ago: usize) -> Option<(i64, i64)> {
        if ago >= usize::from(self.length) {
            return None;
        }
        let index = (usize::from(self.next) + 2 * KEPT_SAMPLES - 1 - ago) % KEPT_SAMPLES;
        let mut time = [0; 8];
        time[2..].copy_from_slice(&self.times[index]);
        let time = i64::from_be_bytes(time);
        let passed = self.newest.wrapping_sub(time).rem_euclid(TIME_CYCLE_NS);
        let sample = self.origin.saturating_add(self.samples[index].into());
        Some((self.newest.wrapping_sub(passed), sample))
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (i64, i64)> {
        (0..usize::from(self.length)).filter_map(|ago| self.ago(ago))
    }

    /// The oldest sample of the rule's window, once that is full.
    pub(crate) fn oldest(&self, detection: &Detection) -> Option<i64> {
        self.ago(detection.window() - 1).map(|(_, sample)| sample)
    }

    /// The result of the rule's window if it is full and stable.
    pub(crate) fn stable(&self, detection: &Detection) -> Option<Stable> {
        stable(detection, |ago| self.ago(ago).map(|(_, sample)| sample))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_thousand_flows_take_less_than_two_hundred_kilobytes() {
        assert!(size_of::<Recent>() < 200, "{}", size_of::<Recent>());
    }

    proptest! {
        /// For any origin of the clock, and any samples within 2 s of each other.
        #[test]
        fn recent_samples_are_returned_newest_first(
            start in -(1_i64 << 60)..1_i64 << 60,
            steps in prop::collection::vec((0..3_600_000_000_000_i64, 0..2_000_000_000_i64), 1..40),
        ) {
            let mut recent = Recent::new();
            let mut at = start;
            let mut samples = Vec::new();
            for (step, sample) in steps {
                at += step;
                recent.push(at, sample);
                samples.push((at, sample));
            }
            samples.reverse();
            samples.truncate(KEPT_SAMPLES);
            prop_assert_eq!(recent.newest_first().collect::<Vec<_>>(), samples);
            recent.clear();
            prop_assert_eq!(recent.ago(0), None);
        }
    }
}
