//! The delay that many flows share at a moment. A queue in front of all flows raises each by the same amount.
//! A path change raises or lowers some of them by the difference of two paths.
//!
//! [`Congestion`] takes batches of samples of many flows with their base latencies and estimates the common
//! part:
//!
//! - If half of them stayed within the tolerance, nothing new is common: a queue affects all flows.
//! - Otherwise, if they lie at known paths, they were redistributed and nothing new is common. Most of them
//!   may have changed to the next path together.
//! - Otherwise, if three quarters of them moved by the same amount, that is common.
//! - Otherwise, if they lie at known paths plus one amount for all, the smallest such amount is common: they
//!   were redistributed while a queue grew.
//! - Otherwise, if 10 % stayed, nothing new is common: the others changed to an unknown path.
//! - Otherwise the moment is undecided.

/// The common part of a batch of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommonShift {
    /// None: the flows are at their bases, within their own jitter.
    Calm,
    /// This many nanoseconds (negative: below their bases), about as in the batch before: to be subtracted.
    Steady(i64),
    /// The common part changes too fast to be subtracted, or is undecided: these samples show nothing of
    /// paths.
    Moving,
    /// The common part has lasted too long for a queue. From this moment on it belongs to every base.
    Lasting {
        /// Its size, in nanoseconds.
        by: i64,
        /// Since when, in nanoseconds of the caller's clock.
        since: i64,
    },
}

/// The least number of samples in a batch.
pub const MIN_FLOWS: usize = 16;

/// How long undecided moments are excluded, in nanoseconds.
const UNDECIDED_EXCLUSION_NS: i64 = 10_000_000_000;

/// Batches from which the resting residual is learnt.
const RESTING_BATCHES: i64 = 16;

/// A sample of a flow with a known base latency, both in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The sample.
    pub sample: i64,
    /// The flow's own base.
    pub base: i64,
}

/// The common part of many flows over time.
#[derive(Debug, Clone)]
pub struct Congestion {
    tolerance: i64,
    hold: i64,
    /// The usual residual without congestion: jitter raises samples above a base, which is a minimum.
    rest: Option<i64>,
    /// From how many batches that is known, up to [`RESTING_BATCHES`].
    rested: i64,
    /// The common part of the last batch, without the rest.
    last: i64,
    /// The first common part of those that have lasted, and when it was.
    lasting_since: Option<(i64, i64)>,
    /// Since when it is undecided.
    ragged: Option<i64>,
}

/// The residuals of a batch, ascending.
struct Residuals<'a> {
    sorted: &'a [i64],
    tolerance: i64,
}

impl<'a> Residuals<'a> {
    fn around(&self, centre: i64) -> &'a [i64] {
        let low = centre.saturating_sub(self.tolerance);
        let high = centre.saturating_add(self.tolerance);
        let from = self.sorted.partition_point(|&r| r < low);
        let to = self.sorted.partition_point(|&r| r <= high);
        &self.sorted[from..to]
    }

    /// The middles of all clusters that are large enough.
    fn clusters(&self) -> Vec<i64> {
        let mut middles = Vec::new();
        let mut from = 0;
        for to in 1..=self.sorted.len() {
            let wide = |next: i64| next.saturating_sub(self.sorted[from]) > self.tolerance / 2;
            if self.sorted.get(to).is_none_or(|&next| wide(next)) {
                if (to - from) * 20 >= self.sorted.len() {
                    middles.extend(middle(&self.sorted[from..to]));
                }
                from = to;
            }
        }
        middles
    }

    /// The middle of the cluster of `start`, which follows a growing queue.
    fn settled(&self, start: &[i64]) -> Option<i64> {
        let mut centre = middle(start)?;
        for _ in 0..4 {
            centre = middle(self.around(centre))?;
        }
        Some(centre)
    }

    /// The residuals around the place where they are densest.
    fn densest(&self) -> &'a [i64] {
        let (mut from, mut best) = (0, 0..0);
        for to in 1..=self.sorted.len() {
            while self.sorted[to - 1].saturating_sub(self.sorted[from]) > self.tolerance {
                from += 1;
            }
            if to - from > best.len() {
                best = from..to;
            }
        }
        self.around(middle(&self.sorted[best]).unwrap_or(0))
    }
}

fn middle(sorted: &[i64]) -> Option<i64> {
    sorted.get(sorted.len() / 2).copied()
}

impl Congestion {
    /// For bases that are distinguished by more than `tolerance`. A common part that lasts for `hold` is no
    /// queue. Both in nanoseconds.
    pub fn new(tolerance: i64, hold: i64) -> Self {
        Self {
            tolerance,
            hold,
            rest: None,
            rested: 0,
            last: 0,
            lasting_since: None,
            ragged: None,
        }
    }

    /// Adds a batch of samples sent at about `at`; `known` returns the path with about that latency. With
    /// fewer than [`MIN_FLOWS`], the common part before is assumed to continue.
    pub fn observe(
        &mut self,
        at: i64,
        flows: &[Reading],
        known: impl Fn(i64) -> Option<i64>,
    ) -> CommonShift {
        if flows.len() < MIN_FLOWS {
            return self.unchanged();
        }
        let residual = |r: &Reading| r.sample.saturating_sub(r.base);
        let mut sorted: Vec<i64> = flows.iter().map(residual).collect();
        sorted.sort_unstable();
        let residuals = Residuals {
            sorted: &sorted,
            tolerance: self.tolerance,
        };
        let Some(centre) = self.centre(&residuals, flows, known) else {
            let since = *self.ragged.get_or_insert(at);
            let lately = at.saturating_sub(since) < UNDECIDED_EXCLUSION_NS;
            return if lately {
                CommonShift::Moving
            } else {
                self.unchanged()
            };
        };
        self.ragged = None;
        self.settle(at, centre)
    }

    /// Whether there is a queue: the latest common part exceeds the jitter of few flows. A queue only adds
    /// delay.
    pub(crate) const fn is_ongoing(&self) -> bool {
        self.last > self.tolerance
    }

    /// The residual of flows that stayed on their paths, if that can be decided.
    fn centre(
        &self,
        residuals: &Residuals<'_>,
        flows: &[Reading],
        known: impl Fn(i64) -> Option<i64>,
    ) -> Option<i64> {
        let is_share = |part: usize, tenths: usize| part * 10 >= flows.len() * tenths;
        let rest = self.rest.unwrap_or(0);
        let usual = rest.saturating_add(self.last);
        let stayed = residuals.around(usual);
        if is_share(stayed.len(), 5) {
            return residuals.settled(stayed);
        }
        let densest = residuals.densest();
        let moved = middle(densest)?;
        let is_majority = 4 * densest.len() >= 3 * flows.len();
        // How far the batch lies above known paths after `by` is removed, plus `by`. The usual amount is
        // tried first, as between close paths other amounts fit a noisy batch too.
        let explained = |by: i64| {
            let off = |r: &Reading| {
                let without_shift = r.sample.saturating_sub(by);
                Some(without_shift.saturating_sub(known(without_shift)?))
            };
            let mut offs: Vec<i64> = flows.iter().filter_map(off).collect();
            offs.sort_unstable();
            let exact = middle(&offs)?;
            is_share(offs.len(), 8).then(|| by.saturating_add(exact))
        };
        if let Some(reshuffled) = explained(usual) {
            return Some(reshuffled);
        }
        if is_majority && moved.saturating_sub(usual).abs() <= self.tolerance.saturating_mul(2) {
            return Some(moved);
        }
        let still = residuals.settled(stayed).unwrap_or(usual);
        if let Some(reshuffled) = explained(still) {
            return Some(reshuffled);
        }
        if is_majority {
            return Some(moved);
        }
        let mut clusters = residuals.clusters();
        clusters.sort_by_key(|by| by.saturating_sub(usual).abs());
        let reshuffled = clusters.into_iter().find_map(explained);
        reshuffled.or_else(|| is_share(stayed.len(), 1).then_some(still))
    }

    /// The usual residual: the mean of the first batches, as each has only a few noisy samples. A batch
    /// further away is in a queue.
    fn rest(&mut self, centre: i64) -> i64 {
        let rest = self.rest.unwrap_or(0);
        let off = centre.saturating_sub(rest);
        if off.abs() > self.tolerance {
            self.rested = RESTING_BATCHES;
        } else if self.rested < RESTING_BATCHES {
            self.rested += 1;
            self.rest = Some(rest + off / self.rested);
        }
        *self.rest.get_or_insert(0)
    }

    fn settle(&mut self, at: i64, centre: i64) -> CommonShift {
        let before = self.last;
        let rest = self.rest(centre);
        let common = centre.saturating_sub(rest);
        self.last = common;
        if common.abs() <= self.tolerance / 2 {
            self.rest = Some(rest + common / 16);
            self.lasting_since = None;
            return if before.abs() <= self.tolerance / 2 {
                CommonShift::Calm
            } else {
                self.steady_since(before, CommonShift::Calm)
            };
        }
        let shift = self.steady_since(before, CommonShift::Steady(common));
        self.lasting(at).unwrap_or(shift)
    }

    fn unchanged(&self) -> CommonShift {
        if self.lasting_since.is_some() {
            CommonShift::Steady(self.last)
        } else {
            CommonShift::Calm
        }
    }

    fn steady_since(&self, before: i64, shift: CommonShift) -> CommonShift {
        if self.last.saturating_sub(before).abs() > self.tolerance / 2 {
            CommonShift::Moving
        } else {
            shift
        }
    }

    /// Whether the common part has been the same for long enough.
    fn lasting(&mut self, at: i64) -> Option<CommonShift> {
        let (first, since) = *self.lasting_since.get_or_insert((self.last, at));
        if self.last.saturating_sub(first).abs() > self.tolerance {
            self.lasting_since = Some((self.last, at));
            return None;
        }
        if at.saturating_sub(since) < self.hold {
            return None;
        }
        let by = self.last;
        (self.last, self.lasting_since) = (0, None);
        if by.abs() <= self.tolerance {
            // Too small for a path: the rest was wrong.
            self.rest = self.rest.map(|rest| rest.saturating_add(by));
            return Some(CommonShift::Calm);
        }
        Some(CommonShift::Lasting { by, since })
    }
}

#[cfg(test)]
mod tests;
