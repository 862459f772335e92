//! The offset at a moment where a clock may have been set once within the horizon, undetected.
//!
//! Owns a bound that is valid in spite of such a step. A step below the round trip contradicts no limit, and
//! a queue may hide it from one direction or from both. The limits on one side of the step are of one clock
//! with the moment. So the bound covers all offsets that either side permits. Does not own when the step is
//! impossible ([`step_free`](super::step_free)).

use super::step_free::{FlatQuery, LevelScales, StepFreeTime};
use super::{ClockFit, ClockNature, Lines, OffsetLimit, OffsetLimits, PossibleLines};
use crate::casts::{nanos_to_f64, round_to_i64};

/// Wander of the lines for the mean rate, as a fraction. If the clock's rate changes by more, there are still
/// such lines while the offset stays within half a round trip of one of them. If there are none, lines with
/// the full wander are used.
const MEAN_RATE_WANDER: f64 = 5e-8;
/// Steps up to such a part of the room between the directions are not excluded, but covered by the bound. The
/// part with the smallest result is used.
const COVERED_STEP_PARTS: [f64; 2] = [1.0 / 64.0, 1.0 / 32.0];
/// Both sides of a moment are enough if they permit hardly more than all limits together.
const MAX_SIDES_RATIO: f64 = 1.0 + 1.0 / 8.0;

impl OffsetLimits<'_> {
    /// The fit at the moment `at` if a clock was set once within the horizon, at any time. Only messages that
    /// had returned until `back` are used. The rate is the mean over all of these within the horizon. `None`
    /// without a limit of each kind. `corners` are those of these that hulls can touch.
    ///
    /// The bound does not cover a step within about 20 messages of the first or the last of these. Nor does
    /// it cover one that a queue of the same size hides in one direction.
    pub(super) fn fit_despite_step(
        self,
        corners: Self,
        (at, back): (i64, i64),
        nature: ClockNature,
    ) -> Option<ClockFit> {
        let from = at.saturating_sub(nature.horizon);
        let limits = self.between(from, at.saturating_add(nature.horizon));
        let bent = Lines::around(at, limits.at_most.first()?, nature);
        let near = corners.between(from, at.saturating_add(nature.horizon));
        let is_back = |limit: &OffsetLimit| limit.at.saturating_add(limit.within) <= back;
        let mean = near.mean(bent, is_back);
        let narrow = mean.as_ref().map(|mean| limits.rates(mean, nature));
        let narrow = narrow.map_or(bent, |rates| bent.within(rates));
        let sides = |step_free| near.either_side(step_free, [narrow, bent], is_back);
        let mut either = sides(StepFreeTime {
            from: at,
            until: at,
        });
        let room = mean.as_ref().map_or(0.0, PossibleLines::room);
        if either
            .as_ref()
            .is_none_or(|either| either.room() > MAX_SIDES_RATIO * room)
        {
            let looks = self.looks(limits, mean.as_ref(), bent);
            for part in COVERED_STEP_PARTS {
                let other =
                    sides(looks.step_free(part * room)).map(|lines| lines.wider(part * room));
                either = match (either, other) {
                    (Some(known), Some(other)) if other.room() < known.room() => Some(other),
                    (known, other) => known.or(other),
                };
            }
        }
        let either = either?;
        let rates = mean.map_or(bent.rates, |mean| (mean.slowest, mean.fastest));
        let either = PossibleLines {
            slowest: rates.0,
            fastest: rates.1,
            ..either
        };
        Some(either.fit(bent.origin, limits.at_most.len() + limits.at_least.len()))
    }

    /// The largest step that may hide between two moments if one direction stays level between them, in
    /// nanoseconds. `None` where none does: a step of any size may hide.
    pub(super) fn hidden_step(
        self,
        corners: Self,
        (from, until): (i64, i64),
        nature: ClockNature,
    ) -> Option<i64> {
        let at = from.midpoint(until);
        let (first, last) = (
            at.saturating_sub(nature.horizon),
            at.saturating_add(nature.horizon),
        );
        let limits = self.between(first, last);
        let bent = Lines::around(at, limits.at_most.first()?, nature);
        let mean = corners.between(first, last).mean(bent, |_| true)?;
        let looks = self.looks(limits, Some(&mean), bent);
        let is_level = |least_step: &f64| {
            let step_free = looks.step_free(*least_step);
            first < from && step_free.from <= from && until <= step_free.until
        };
        let steps = COVERED_STEP_PARTS.map(|part| part * mean.room());
        steps
            .into_iter()
            .find(is_level)
            .map(|step| round_to_i64(step.ceil()))
    }

    /// The lines of a mean rate. If there are none, those of rates that wander.
    fn mean(self, bent: Lines, is_of: impl Fn(&OffsetLimit) -> bool) -> Option<PossibleLines> {
        let steady = bent.wandering(bent.nature.wander.min(MEAN_RATE_WANDER));
        let mean = self.lines(steady, &is_of);
        mean.or_else(|| self.lines(bent, &is_of))
    }

    /// The levels of both directions of some of these over time.
    fn looks(self, near: Self, mean: Option<&PossibleLines>, lines: Lines) -> LevelScales {
        LevelScales::at(
            near,
            FlatQuery {
                origin: lines.origin,
                horizon: lines.nature.horizon,
                rate: mean.map_or(0.0, PossibleLines::rate),
                ends: self.ends_of(near),
            },
        )
    }

    /// The fit at the moment `at` if no clock was set. Messages that returned after `back` are used only if
    /// there are no others. `None` without a limit of each kind within the horizon.
    pub(super) fn fit_of_back(
        self,
        (at, back): (i64, i64),
        nature: ClockNature,
    ) -> Option<ClockFit> {
        let from = at.saturating_sub(nature.horizon);
        let near = self.between(from, at.saturating_add(nature.horizon));
        let lines = Lines::around(at, near.at_most.first()?, nature);
        let is_back = |limit: &OffsetLimit| limit.at.saturating_add(limit.within) <= back;
        let possible = near.lines(lines, is_back);
        let possible = possible.or_else(|| near.lines(lines, |_| true))?;
        Some(possible.fit(lines.origin, near.at_most.len() + near.at_least.len()))
    }

    /// Whether some of these have the first of them, and the last.
    fn ends_of(self, near: Self) -> [bool; 2] {
        let kinds = [(self.at_most, near.at_most), (self.at_least, near.at_least)];
        [
            kinds.iter().all(|(all, part)| all.first() == part.first()),
            kinds.iter().all(|(all, part)| all.last() == part.last()),
        ]
    }

    /// The lines that the limits from the beginning of a time on permit, or those until its end.
    fn either_side(
        self,
        step_free: StepFreeTime,
        lines: [Lines; 2],
        is_back: impl Fn(&OffsetLimit) -> bool,
    ) -> Option<PossibleLines> {
        // If a step only just contradicts limits, the lines have a wrong rate.
        let proved = |is_of: &dyn Fn(&OffsetLimit) -> bool| {
            let hulls = self.hulls(lines[0], is_of)?;
            let narrow = hulls.possible(lines[0].rates);
            narrow.or_else(|| hulls.possible(lines[1].rates))
        };
        let before = proved(&|limit| {
            is_back(limit) && limit.at.saturating_add(limit.within) <= step_free.until
        });
        let behind = proved(&|limit| is_back(limit) && limit.at >= step_free.from);
        match (before, behind) {
            (Some(earlier), Some(other)) => Some(earlier.union(&other)),
            (earlier, other) => earlier.or(other).or_else(|| self.lines(lines[1], &is_back)),
        }
    }

    /// The possible rates at any moment of a time with a mean rate in `mean`. A step below the round trip
    /// leaves lines of the true rate. A slightly larger one may leave only lines that are off by the round
    /// trip from end to end.
    fn rates(self, mean: &PossibleLines, nature: ClockNature) -> (f64, f64) {
        let kinds = [self.at_most, self.at_least];
        let ends = kinds.map(|of| of.first().zip(of.last()));
        let first = ends.iter().flatten().map(|(first, _)| first.at).min();
        let last = ends.iter().flatten().map(|(_, last)| last.at).max();
        let long = first.zip(last).map_or(0, |(first, last)| last - first);
        let round_trips = kinds.iter().flat_map(|of| of.iter());
        let min_rtt = round_trips.map(|limit| limit.within).min().unwrap_or(0);
        let tilt = nanos_to_f64(min_rtt) / nanos_to_f64(long.max(1));
        let more = nature.wander + tilt;
        (mean.slowest - more, mean.fastest + more)
    }
}
