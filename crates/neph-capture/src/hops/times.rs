//! Times of points: steady times, their timestamps, and the packets that two captures have in common.
//!
//! Points with one clock are compared by their timestamps, others by steady times.

use super::followed::Followed;
use crate::capture_matcher::MatchedCaptures;
use crate::steady_time::{added_at, steps_back_before};

impl Followed {
    /// The packets that the two captures of a segment have in common, for its clocks.
    pub fn matched_captures(&self, segment: usize) -> MatchedCaptures {
        let mut captures = MatchedCaptures {
            crossings: Vec::new(),
            first: *self.point(segment),
            second: *self.point(segment + 1),
            identical: 0,
            ambiguous_in_both: 0,
            one_direction: 0,
            direction_ties: 0,
            without_delay: 0,
            same_timestamp: 0,
            steps_back: [segment, segment + 1]
                .map(|point| self.points[point].steady_clock.steps_back().to_vec()),
        };
        for (number, first_at, second_at) in self.segment_times(segment) {
            let (flow, pair) = self.flow_and_pair(number);
            let stamps = (
                self.stamp(segment, first_at),
                self.stamp(segment + 1, second_at),
            );
            captures.same_timestamp += u64::from(stamps.0 == stamps.1);
            let has_one_clock = self.one_clock[segment];
            if has_one_clock && self.is_set_back_in_flight(segment, (first_at, second_at)) {
                continue;
            }
            let times = if has_one_clock {
                stamps
            } else {
                (first_at, second_at)
            };
            captures.add_crossing(times, pair, flow.is_upward(), &self.directions);
        }
        captures
    }

    /// The timestamp in the capture of a point for a steady time.
    pub fn stamp(&self, point: usize, at: i64) -> i64 {
        at.saturating_sub(added_at(self.points[point].steady_clock.steps_back(), at))
    }

    /// Converts a steady time of one point to that of another one with the same clock. `None` where its
    /// timestamp occurs at several moments and the right one is not known.
    pub fn convert_time(&self, from: usize, at: i64, to: usize) -> Option<i64> {
        let [from_steps_back, to_steps_back] =
            [from, to].map(|point| self.points[point].steady_clock.steps_back());
        let added = match (from_steps_back.len(), to_steps_back.len()) {
            (_, 0) => 0,
            (first_count, second_count) if first_count == second_count => {
                steps_back_before(from_steps_back, at)
                    .checked_sub(1)
                    .map_or(0, |step_back| to_steps_back[step_back].added)
            }
            _ => return None,
        };
        Some(self.stamp(from, at).saturating_add(added))
    }

    /// Whether the clock of a point was set back between two of its steady times.
    pub fn is_set_back(&self, point: usize, (a, b): (i64, i64)) -> bool {
        let steps_back = self.points[point].steady_clock.steps_back();
        steps_back_before(steps_back, a) != steps_back_before(steps_back, b)
    }

    /// Whether the one clock of a segment's points was set back while a packet was in it, by its steady
    /// times.
    pub fn is_set_back_in_flight(&self, segment: usize, (first_at, second_at): (i64, i64)) -> bool {
        let steps_back =
            [segment, segment + 1].map(|point| self.points[point].steady_clock.steps_back());
        let [first_count, second_count] = [(steps_back[0], first_at), (steps_back[1], second_at)]
            .map(|(steps_back, at)| steps_back_before(steps_back, at));
        steps_back[0].len() == steps_back[1].len() && first_count != second_count
    }
}
