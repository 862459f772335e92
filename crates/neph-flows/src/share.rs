//! A share with its interval, for independent cases and for cases that occur together.
//!
//! One event in the network moves hundreds of flows, which are not hundreds of cases. Simultaneous cases form
//! a group. The interval is Wilson's with Kish's effective number of cases, and the t quantile for few groups
//! (Korn and Graubard 1998).

use std::collections::BTreeMap;

use neph_stats::{normal_quantile, proportion, share_interval, student_quantile};
use serde::Serialize;

/// A share with its 95 % confidence interval (Wilson) and number of cases. Simultaneous cases count as fewer
/// cases in the interval than in `n`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Number of hits.
    pub hits: u64,
    /// Number of cases.
    pub n: u64,
    /// Effective number of independent cases in the interval.
    pub cases: f64,
    /// Hits of n, 0 to 1; if not all were observed to their end, by Kaplan and Meier.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// `hits` of `n`; `None` if `n` is 0 or below `hits`.
pub(crate) fn share(hits: u64, n: u64) -> Option<Share> {
    let count = |number: u64| usize::try_from(number).ok();
    let proportion = proportion(count(hits)?, count(n)?).ok()?;
    Some(Share {
        hits,
        n,
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        cases: n as f64,
        share: proportion.share(),
        low: proportion.interval().low,
        high: proportion.interval().high,
    })
}

/// The same with an effective number of cases.
pub(crate) fn share_of_cases(hits: u64, n: u64, cases: f64) -> Option<Share> {
    let binomial_share = share(hits, n)?;
    let interval = share_interval(binomial_share.share, cases).ok()?;
    Some(Share {
        cases,
        low: interval.low,
        high: interval.high,
        ..binomial_share
    })
}

impl Share {
    /// The combined share, for example of the blocks of a campaign; `None` without any.
    pub fn pool(shares: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut hits, mut n, mut cases, mut sum) = (0, 0, 0.0, 0.0);
        for share in shares {
            hits += share.hits;
            n += share.n;
            cases += share.cases;
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let weight = share.n as f64;
            sum += share.share * weight;
        }
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let share = (n > 0).then(|| (sum / n as f64).clamp(0.0, 1.0))?;
        let (low, high) = wilson_interval(share, cases);
        Some(Self {
            hits,
            n,
            cases,
            share,
            low,
            high,
        })
    }
}

/// Wilson's interval of a share of this many cases; 0 to 1 if there are almost none.
pub(crate) fn wilson_interval(share: f64, cases: f64) -> (f64, f64) {
    share_interval(share, cases).map_or((0.0, 1.0), |interval| (interval.low, interval.high))
}

/// Cases by the time at which they happened: hits, and all.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<i64, (u64, u64)>);

impl Groups {
    /// Adds a case of a group.
    pub(crate) fn add(&mut self, group: i64, is_hit: bool) {
        let (hits, n) = self.0.entry(group).or_default();
        *hits += u64::from(is_hit);
        *n += 1;
    }

    /// The share of hits, with the interval for the groups.
    pub(crate) fn share(&self) -> Option<Share> {
        let (hits, n) = self
            .0
            .values()
            .fold((0, 0), |sum, group| (sum.0 + group.0, sum.1 + group.1));
        share_of_cases(hits, n, self.effective_cases(hits, n))
    }

    /// Effective number of cases: as many as would vary as the share does from group to group, at most all.
    fn effective_cases(&self, hits: u64, n: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts")]
        let (hits, n, groups) = (hits as f64, n as f64, self.0.len() as f64);
        let share = hits / n;
        #[expect(clippy::cast_precision_loss, reason = "counts")]
        let deviation = |(hits, n): &(u64, u64)| *hits as f64 - share * *n as f64;
        let squares: f64 = self.0.values().map(|group| deviation(group).powi(2)).sum();
        if groups < 2.0 || hits <= 0.0 || hits >= n {
            // The variance is unknown.
            return groups.min(n);
        }
        let variance = squares / (n * n) * groups / (groups - 1.0);
        (share * (1.0 - share) / variance * small_sample_factor(groups - 1.0)).min(n)
    }
}

/// How much less a variance counts that is known from `freedom` groups and one only.
pub(crate) fn small_sample_factor(degrees_of_freedom: f64) -> f64 {
    let (normal, student) = (
        normal_quantile(0.975),
        student_quantile(0.975, degrees_of_freedom),
    );
    (normal / student).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled_share(groups: &[(u64, u64)]) -> Share {
        let mut pooled_groups = Groups::default();
        for (group, (hits, n)) in (0..).zip(groups) {
            (0..*n).for_each(|case| pooled_groups.add(group, case < *hits));
        }
        pooled_groups.share().unwrap()
    }

    #[test]
    fn one_event_that_moves_hundreds_of_flows_is_one_case() {
        let part = pooled_share(&[(154, 384)]);
        assert_eq!((part.hits, part.n), (154, 384));
        assert!(part.low < 0.1 && part.high > 0.8, "{part:?}");
        let whole_group = pooled_share(&[(384, 384)]);
        assert!(whole_group.low < 0.25, "{whole_group:?}");
    }

    /// Ten groups that agree vary less than at random: they count with all of their cases.
    #[test]
    fn disagreeing_groups_reduce_the_effective_sample_size() {
        let identical = pooled_share(&[(4, 10); 20]);
        let wilson = share(80, 200).unwrap();
        assert!((identical.low - wilson.low).abs() < 1e-9, "{identical:?}");
        let split_share: Vec<(u64, u64)> =
            (0..20).map(|n| (if n < 8 { 10 } else { 0 }, 10)).collect();
        let split_share = pooled_share(&split_share);
        // Like twenty cases with eight hits, with Student's t of 19.
        let unsplit_share = share(8, 20).unwrap();
        assert!(
            (split_share.low - unsplit_share.low).abs() < 0.03
                && split_share.low < unsplit_share.low,
            "{split_share:?}"
        );
    }

    #[test]
    fn a_share_of_zero_cases_is_none() {
        assert!(Groups::default().share().is_none());
    }

    #[test]
    fn combined_shares_add_their_effective_cases() {
        let pooled =
            Share::pool([pooled_share(&[(100, 200)]), pooled_share(&[(60, 200)])]).unwrap();
        assert_eq!((pooled.hits, pooled.n), (160, 400));
        assert!(pooled.cases <= 2.0 && pooled.low < 0.1, "{pooled:?}");
        assert!(Share::pool([]).is_none());
    }
}
