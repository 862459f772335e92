//! What many flows share at a moment: a queue in front of all of them raises every flow by the same
//! amount, a change of path raises or lowers some of them by the difference of two paths.
//!
//! [`Congestion`] takes the distances of many flows' samples from their own base latencies, a crowd
//! at a time, and says what is common to them. The common part is the densest cluster: after a
//! reshuffle those who moved are spread over the differences of all paths, those who stayed lie
//! together. Where two clusters are nearly as dense, the one that was common before stays.

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

/// What many flows share, over time.
#[derive(Debug, Clone)]
pub struct Congestion {
    tolerance: i64,
    hold: i64,
    /// Where residuals lie when nothing happens: jitter lifts them above a base that is a minimum.
    rest: Option<i64>,
    /// The common part of the last crowd, without the rest.
    last: i64,
    /// The first common part of those that have lasted, and when it was.
    standing: Option<(i64, i64)>,
}

impl Congestion {
    /// For bases that are told apart by more than `tolerance`; a common part that has lasted for
    /// `hold` is no queue any more. Both in nanoseconds.
    pub fn new(tolerance: i64, hold: i64) -> Self {
        Self {
            tolerance,
            hold,
            rest: None,
            last: 0,
            standing: None,
        }
    }

    /// Takes the distances of samples from their flows' bases, which were sent at about `at`.
    /// They are sorted on the way. Fewer than [`LEAST_CROWD`] say nothing: what was common before
    /// is taken to be common still.
    pub fn observe(&mut self, at: i64, residuals: &mut [i64]) -> Common {
        if residuals.len() < LEAST_CROWD {
            return self.unchanged();
        }
        residuals.sort_unstable();
        let before = self.last;
        let usual = self.rest.unwrap_or(0).saturating_add(before);
        let cluster = self.cluster(residuals, usual);
        if cluster.len() * 5 < residuals.len() {
            return Common::Moving;
        }
        let centre = cluster[cluster.len() / 2];
        let first = if centre.abs() <= self.tolerance {
            centre
        } else {
            0
        };
        let rest = *self.rest.get_or_insert(first);
        let common = centre.saturating_sub(rest);
        self.last = common;
        if common.abs() <= self.tolerance / 2 {
            self.rest = Some(rest + common / 16);
            self.standing = None;
            return self.steady_since(before, Common::Calm);
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
        if self.last.saturating_sub(before).abs() > self.tolerance {
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

    /// The densest cluster, or the one around `usual` if that is at least half as dense.
    fn cluster<'a>(&self, sorted: &'a [i64], usual: i64) -> &'a [i64] {
        let around = |centre: i64| {
            let low = sorted.partition_point(|&r| r < centre.saturating_sub(self.tolerance));
            let high = sorted.partition_point(|&r| r <= centre.saturating_add(self.tolerance));
            &sorted[low..high]
        };
        let mut densest = (0, 0);
        let mut low = 0;
        for high in 0..sorted.len() {
            while sorted[high].saturating_sub(sorted[low]) > self.tolerance {
                low += 1;
            }
            if high + 1 - low > densest.1 - densest.0 {
                densest = (low, high + 1);
            }
        }
        let best = around(sorted[(densest.0 + densest.1 - 1) / 2]);
        let stayed = around(usual);
        if stayed.len() * 2 >= best.len() {
            stayed
        } else {
            best
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1000 * MS;

    fn congestion() -> Congestion {
        Congestion::new(MS / 2, 30 * S)
    }

    #[test]
    fn a_queue_in_front_of_all_is_common() {
        let mut congestion = congestion();
        assert_eq!(congestion.observe(0, &mut [0; 64]), Common::Calm);
        let mut raised: Vec<i64> = (0..64).map(|i| 20 * MS + i * 1000).collect();
        assert_eq!(congestion.observe(S, &mut raised), Common::Moving);
        let Common::Steady(common) = congestion.observe(2 * S, &mut raised) else {
            panic!("the same twice is steady")
        };
        assert!((common - 20 * MS).abs() < MS / 10, "{common}");
        assert_eq!(congestion.observe(3 * S, &mut [0; 64]), Common::Moving);
        assert_eq!(congestion.observe(4 * S, &mut [0; 64]), Common::Calm);
    }

    /// Three quarters move, to twelve differences of four paths: those who stay decide.
    #[test]
    fn a_reshuffle_is_not_common() {
        let mut congestion = congestion();
        congestion.observe(0, &mut [0; 64]);
        let paths = [70, 75, 80, 85];
        let mut residuals: Vec<i64> = paths
            .iter()
            .flat_map(|a| paths.map(|b| (b - a) * MS))
            .cycle()
            .take(64)
            .collect();
        assert_eq!(congestion.observe(S, &mut residuals), Common::Calm);
    }

    #[test]
    fn what_lasts_for_the_hold_belongs_to_the_bases() {
        let mut congestion = congestion();
        congestion.observe(0, &mut [0; 32]);
        let said: Vec<Common> = (1..=32)
            .map(|s| congestion.observe(s * S, &mut [8 * MS; 32]))
            .collect();
        assert_eq!(said[0], Common::Moving);
        assert!(said[1..30].iter().all(|&s| s == Common::Steady(8 * MS)));
        let wanted = Common::Lasting {
            by: 8 * MS,
            since: S,
        };
        assert_eq!(said[30], wanted);
    }

    #[test]
    fn few_samples_say_nothing_new() {
        let mut congestion = congestion();
        assert_eq!(congestion.observe(0, &mut [9 * MS; 15]), Common::Calm);
    }
}
