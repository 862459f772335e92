//! What many flows share at a moment: a queue in front of all of them raises every flow by the same
//! amount, a change of path raises or lowers some of them by the difference of two paths.
//!
//! [`Congestion`] takes the samples of many flows beside their own base latencies, a crowd at a
//! time, and says what is common to them:
//!
//! - While half of them lie where they did, give or take the tolerance, nothing new is common: a
//!   queue spares nobody.
//! - Otherwise, if they lie where paths are known to be, they were reshuffled, and nothing new is
//!   common; most of them may have gone to the next path together.
//! - Otherwise, if three quarters of them moved by the same amount, that is common.
//! - Otherwise, if they lie where paths are known to be, give or take one amount for all, the
//!   smallest such amount is common: they were reshuffled while a queue grew.
//! - Otherwise, if one in ten lies where it did, nothing new is common: the others went to a path
//!   that is not known yet.
//! - Otherwise nothing can be said of the moment.

/// What is common to a crowd of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Common {
    /// Nothing: the flows are at their bases, give or take their own jitter.
    Calm,
    /// This many nanoseconds (negative: fewer than their bases), hardly more or less than in the
    /// crowd before: to be subtracted.
    Steady(i64),
    /// The common part changes too fast to be subtracted, or there is none: these samples say
    /// nothing about paths.
    Moving,
    /// The common part has stayed so long that it is no queue any more: this many nanoseconds since
    /// this moment. From now on it belongs to every base.
    Lasting {
        /// How much, nanoseconds.
        by: i64,
        /// Since when, nanoseconds of the caller's clock.
        since: i64,
    },
}

/// The fewest samples that make a crowd.
pub const LEAST_CROWD: usize = 16;

/// How long moments of which nothing can be said are left out, nanoseconds.
const RAGGED: i64 = 10_000_000_000;

/// Crowds from which it is learnt where residuals rest.
const RESTS: i64 = 16;

/// A sample of a flow whose base latency is known, both in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What was measured.
    pub sample: i64,
    /// The flow's own base.
    pub base: i64,
}

/// What many flows share, over time.
#[derive(Debug, Clone)]
pub struct Congestion {
    tolerance: i64,
    hold: i64,
    /// Where residuals lie when nothing happens: jitter lifts them above a base that is a minimum.
    rest: Option<i64>,
    /// How many crowds that is known from, up to [`RESTS`].
    rested: i64,
    /// The common part of the last crowd, without the rest.
    last: i64,
    /// The first common part of those that have lasted, and when it was.
    standing: Option<(i64, i64)>,
    /// Since when nothing could be said.
    ragged: Option<i64>,
}

/// The residuals of a crowd, ascending.
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

    /// The middles of all clusters that are worth a look.
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

    /// The middle of the cluster that `start` belongs to: a queue that grows drags it along.
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
    /// For bases that are told apart by more than `tolerance`; a common part that has lasted for
    /// `hold` is no queue any more. Both in nanoseconds.
    pub fn new(tolerance: i64, hold: i64) -> Self {
        Self {
            tolerance,
            hold,
            rest: None,
            rested: 0,
            last: 0,
            standing: None,
            ragged: None,
        }
    }

    /// Takes a crowd of samples that were sent at about `at`; `known` says which path has
    /// about that latency. Fewer than [`LEAST_CROWD`] say nothing: what was common before is taken to
    /// be common still.
    pub fn observe(
        &mut self,
        at: i64,
        crowd: &[Reading],
        known: impl Fn(i64) -> Option<i64>,
    ) -> Common {
        if crowd.len() < LEAST_CROWD {
            return self.unchanged();
        }
        let residual = |r: &Reading| r.sample.saturating_sub(r.base);
        let mut sorted: Vec<i64> = crowd.iter().map(residual).collect();
        sorted.sort_unstable();
        let residuals = Residuals {
            sorted: &sorted,
            tolerance: self.tolerance,
        };
        let Some(centre) = self.centre(&residuals, crowd, known) else {
            let since = *self.ragged.get_or_insert(at);
            let lately = at.saturating_sub(since) < RAGGED;
            return if lately {
                Common::Moving
            } else {
                self.unchanged()
            };
        };
        self.ragged = None;
        self.settle(at, centre)
    }

    /// Whether a queue stands: the latest common part is above what the jitter of few flows may be. A
    /// queue only adds.
    pub(crate) const fn stands(&self) -> bool {
        self.last > self.tolerance
    }

    /// Where the residuals of flows lie that stayed on their paths, if that can be said.
    fn centre(
        &self,
        residuals: &Residuals<'_>,
        crowd: &[Reading],
        known: impl Fn(i64) -> Option<i64>,
    ) -> Option<i64> {
        let many = |part: usize, tenths: usize| part * 10 >= crowd.len() * tenths;
        let rest = self.rest.unwrap_or(0);
        let usual = rest.saturating_add(self.last);
        let stayed = residuals.around(usual);
        if many(stayed.len(), 5) {
            return residuals.settled(stayed);
        }
        let densest = residuals.densest();
        let moved = middle(densest)?;
        let most = 4 * densest.len() >= 3 * crowd.len();
        // By how much the crowd lies above known paths if `by` is taken away, added to it. What is
        // usual is asked first: between close paths other amounts explain a noisy crowd as well.
        let explained = |by: i64| {
            let off = |r: &Reading| {
                let own = r.sample.saturating_sub(by);
                Some(own.saturating_sub(known(own)?))
            };
            let mut offs: Vec<i64> = crowd.iter().filter_map(off).collect();
            offs.sort_unstable();
            let exact = middle(&offs)?;
            many(offs.len(), 8).then(|| by.saturating_add(exact))
        };
        if let Some(reshuffled) = explained(usual) {
            return Some(reshuffled);
        }
        if most && moved.saturating_sub(usual).abs() <= self.tolerance.saturating_mul(2) {
            return Some(moved);
        }
        let still = residuals.settled(stayed).unwrap_or(usual);
        if let Some(reshuffled) = explained(still) {
            return Some(reshuffled);
        }
        if most {
            return Some(moved);
        }
        let mut clusters = residuals.clusters();
        clusters.sort_by_key(|by| by.saturating_sub(usual).abs());
        let found = clusters.into_iter().find_map(explained);
        found.or_else(|| many(stayed.len(), 1).then_some(still))
    }

    /// Where residuals rest: the average of the first crowds, of which a few samples of noisy flows say
    /// too little each. A crowd that lies further away is in a queue.
    fn rest(&mut self, centre: i64) -> i64 {
        let rest = self.rest.unwrap_or(0);
        let off = centre.saturating_sub(rest);
        if off.abs() > self.tolerance {
            self.rested = RESTS;
        } else if self.rested < RESTS {
            self.rested += 1;
            self.rest = Some(rest + off / self.rested);
        }
        *self.rest.get_or_insert(0)
    }

    fn settle(&mut self, at: i64, centre: i64) -> Common {
        let before = self.last;
        let rest = self.rest(centre);
        let common = centre.saturating_sub(rest);
        self.last = common;
        if common.abs() <= self.tolerance / 2 {
            self.rest = Some(rest + common / 16);
            self.standing = None;
            return if before.abs() <= self.tolerance / 2 {
                Common::Calm
            } else {
                self.steady_since(before, Common::Calm)
            };
        }
        let said = self.steady_since(before, Common::Steady(common));
        self.lasting(at).unwrap_or(said)
    }

    fn unchanged(&self) -> Common {
        if self.standing.is_some() {
            Common::Steady(self.last)
        } else {
            Common::Calm
        }
    }

    fn steady_since(&self, before: i64, said: Common) -> Common {
        if self.last.saturating_sub(before).abs() > self.tolerance / 2 {
            Common::Moving
        } else {
            said
        }
    }

    /// Whether the common part has been the same for long enough.
    fn lasting(&mut self, at: i64) -> Option<Common> {
        let (first, since) = *self.standing.get_or_insert((self.last, at));
        if self.last.saturating_sub(first).abs() > self.tolerance {
            self.standing = Some((self.last, at));
            return None;
        }
        if at.saturating_sub(since) < self.hold {
            return None;
        }
        let by = self.last;
        (self.last, self.standing) = (0, None);
        if by.abs() <= self.tolerance {
            // Too little for a path: the rest was taken wrongly.
            self.rest = self.rest.map(|rest| rest.saturating_add(by));
            return Some(Common::Calm);
        }
        Some(Common::Lasting { by, since })
    }
}

#[cfg(test)]
mod tests;
