//! Shares and quantiles of messages that are not independent: messages of one experiment share its
//! path, its host and its minute, and neighbours share a queue or a burst of loss.
//!
//! The unit is the group: an experiment, or where there is one experiment alone, a stretch of it. How
//! much groups differ gives the number of independent messages that would know as much (Kish's
//! effective size), corrected for the few groups it is estimated from by Student's t (Korn and
//! Graubard 1998). Intervals of shares are Wilson's with that number; those of quantiles are made of the
//! shares below the value (Woodruff 1952).

use crate::distribution::{normal_quantile, student_quantile};
use crate::error::StatsError;
use crate::interval::{ALPHA, Interval};
use crate::proportion::share_interval;
use crate::quantile::{Level, at_rank, interval_ranks, quantile_needs, type_seven};
use crate::real::{real, whole};
use crate::sorted::{Sorted, refuse_fewer};

/// A group of messages: an experiment, or a stretch of one.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The values of the replies, in any unit.
    pub replies: Sorted<'a>,
    /// Messages without a value; a quantile counts them as above every reply.
    pub unanswered: usize,
}

impl Group<'_> {
    fn len(&self) -> usize {
        self.replies.len() + self.unanswered
    }
}

/// Below this many groups their differences are not known well enough for an interval.
pub const GROUPS_NEEDED: usize = 6;

/// A share of messages with its 95 % interval over groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedShare {
    /// The share over all messages, 0 to 1.
    pub share: f64,
    /// The interval; within 0 to 1.
    pub interval: Interval,
    /// How many independent messages would know as much, at most as many as there are.
    pub effective: f64,
}

/// The share of hits over groups, each with its hits and its messages.
///
/// # Errors
/// [`StatsError::TooFew`] below [`GROUPS_NEEDED`] groups with messages, and where no group has a hit or
/// all have nothing else: how such messages come together is not known then.
pub fn grouped_share(groups: &[(usize, usize)]) -> Result<GroupedShare, StatsError> {
    let known: Vec<(f64, f64)> = groups
        .iter()
        .filter(|(_, all)| *all > 0)
        .map(|(hits, all)| (real(*hits), real(*all)))
        .collect();
    refuse_fewer("share over groups", GROUPS_NEEDED, known.len())?;
    let hits: f64 = known.iter().map(|(hits, _)| hits).sum();
    let all: f64 = known.iter().map(|(_, all)| all).sum();
    let share = hits / all;
    if hits <= 0.0 || hits >= all {
        return Err(StatsError::TooFew {
            what: "share over groups",
            need: 1,
            have: 0,
        });
    }
    let effective = effective(&known, share, share);
    let interval = share_interval(share, fewer(effective, known.len()))?;
    Ok(GroupedShare {
        share,
        interval,
        effective: effective.min(all),
    })
}

/// A quantile over groups with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedQuantile {
    /// The type 7 estimate over all messages.
    pub value: Level,
    /// Lower end.
    pub low: Level,
    /// Upper end.
    pub high: Level,
    /// How many independent messages would know as much, at most as many as there are.
    pub effective: f64,
}

/// The quantile `p` of all messages, with an interval that holds that of all groups that could have been.
/// `pooled` has the replies of all groups.
///
/// # Errors
/// [`StatsError::OutOfRange`] unless 0 < p < 1; [`StatsError::TooFew`] below [`GROUPS_NEEDED`] groups with
/// messages, or where the effective number of messages is below [`quantile_needs`].
pub fn grouped_quantile(
    pooled: Sorted<'_>,
    groups: &[Group<'_>],
    p: f64,
) -> Result<GroupedQuantile, StatsError> {
    let need = quantile_needs(p)?;
    let groups: Vec<&Group<'_>> = groups.iter().filter(|one| one.len() > 0).collect();
    refuse_fewer("quantile over groups", GROUPS_NEEDED, groups.len())?;
    let n: usize = groups.iter().map(|one| one.len()).sum();
    let value = type_seven(&pooled, n, p);
    let below: Vec<(f64, f64)> = groups
        .iter()
        .map(|group| (up_to(group, value), real(group.len())))
        .collect();
    let found = below.iter().map(|(below, _)| below).sum::<f64>() / real(n);
    let effective = effective(&below, found, p);
    // Values beyond it in a few groups only: how often others would have some is not known.
    let beyond = |of: fn(&(f64, f64)) -> f64| below.iter().filter(|group| of(group) > 0.0).count();
    let sides = beyond(|(below, _)| *below).min(beyond(|(below, all)| all - below));
    refuse_fewer("quantile over groups", GROUPS_NEEDED, sides)?;
    let cases = whole(fewer(effective, groups.len()));
    refuse_fewer("quantile", need, cases)?;
    // The ranks of so many independent messages, as ranks of those that there are.
    let (lower, upper) = interval_ranks(cases, p);
    let scale = real(n) / real(cases);
    let lower = whole(real(lower) * scale).clamp(1, n);
    let upper = whole((real(upper) * scale).ceil()).clamp(1, n);
    Ok(GroupedQuantile {
        value,
        low: at_rank(&pooled, lower),
        high: at_rank(&pooled, upper),
        effective: effective.min(real(n)),
    })
}

fn up_to(group: &Group<'_>, value: Level) -> f64 {
    match value {
        Level::At(value) => real(group.replies.count_up_to(value)),
        Level::Censored => real(group.replies.len()),
    }
}

/// How many independent messages have a share that is known as well as that of these groups, whose hits
/// are `found` of all; `share` is what one message's chance is taken to be. It may be more than there
/// are, where groups happen to be alike, as an estimate does; four times as many at most.
fn effective(groups: &[(f64, f64)], found: f64, share: f64) -> f64 {
    let all: f64 = groups.iter().map(|(_, all)| all).sum();
    let count = real(groups.len());
    let squares: f64 = groups
        .iter()
        .map(|(hits, of)| (hits - found * of).powi(2))
        .sum();
    let variance = count / (count - 1.0) * squares / (all * all);
    let most = 4.0 * all;
    if variance <= 0.0 {
        return most;
    }
    (share * (1.0 - share) / variance).min(most)
}

/// The effective number with what few groups leave uncertain taken off, so that the normal quantile is as
/// wide as Student's.
fn fewer(effective: f64, groups: usize) -> f64 {
    let normal = normal_quantile(1.0 - 0.5 * ALPHA);
    let student = student_quantile(1.0 - 0.5 * ALPHA, real(groups - 1));
    effective * (normal / student).powi(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    /// Ten groups of 100 that differ as chance has it: as many independent messages as there are, less
    /// what ten groups leave uncertain.
    #[test]
    fn messages_that_are_independent_count_almost_all() {
        let mut random = Random::new(3);
        let hits = |random: &mut Random| (0..100).filter(|_| random.unit() < 0.3).count();
        let groups: Vec<(usize, usize)> = (0..10).map(|_| (hits(&mut random), 100)).collect();
        let found = grouped_share(&groups).unwrap();
        assert!(
            found.effective > 300.0 && found.effective <= 1000.0,
            "{found:?}"
        );
        assert!(found.interval.holds(0.3));
    }

    /// Each group is all hits or none: it knows as much as one message.
    #[test]
    fn a_group_of_messages_that_end_alike_is_one_message() {
        let groups: Vec<(usize, usize)> = (0..20).map(|one| ((one % 2) * 50, 50)).collect();
        let found = grouped_share(&groups).unwrap();
        // Of 20 groups with mean 1/2 and divisor 19: 19 messages.
        assert!((found.effective - 19.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.share, 0.5);
        assert!(found.interval.high - found.interval.low > 0.4);
    }

    #[test]
    fn few_groups_and_what_never_happened_have_no_interval() {
        assert!(grouped_share(&[(1, 10); 5]).is_err());
        assert!(grouped_share(&[(0, 10); 12]).is_err());
        assert!(grouped_share(&[(10, 10); 12]).is_err());
        assert!(
            grouped_share(&[(1, 10), (2, 10), (0, 10), (1, 10), (1, 10), (0, 10), (0, 0)]).is_ok()
        );
    }

    fn quantile_of(
        groups: &[Vec<f64>],
        unanswered: usize,
        p: f64,
    ) -> Result<GroupedQuantile, StatsError> {
        let mut pooled: Vec<f64> = groups.iter().flatten().copied().collect();
        let groups: Vec<Group<'_>> = groups
            .iter()
            .map(|group| Group {
                replies: Sorted::check(group).unwrap(),
                unanswered,
            })
            .collect();
        grouped_quantile(Sorted::sort(&mut pooled)?, &groups, p)
    }

    /// Groups at different levels: the interval is one of groups, not of their messages.
    #[test]
    fn a_median_over_groups_at_different_levels_is_not_known_to_a_message() {
        let at = |level: f64| {
            (0..100)
                .map(|one| level + f64::from(one) / 1000.0)
                .collect()
        };
        let levels: Vec<Vec<f64>> = (0..12).map(|level| at(f64::from(level))).collect();
        let found = quantile_of(&levels, 0, 0.5).unwrap();
        assert!(found.effective < 20.0, "{found:?}");
        let (low, high) = (found.low.number().unwrap(), found.high.number().unwrap());
        assert!(low < 4.0 && high > 8.0, "{found:?}");
        assert!(
            quantile_of(&levels, 0, 0.99).is_err(),
            "twelve levels know no p99"
        );
        assert!(quantile_of(&levels[..5], 0, 0.5).is_err());
    }

    #[test]
    fn messages_without_a_value_are_above_all() {
        let groups = vec![(0..100).map(f64::from).collect::<Vec<_>>(); 8];
        let found = quantile_of(&groups, 150, 0.5).unwrap();
        assert_eq!(
            (found.value, found.high),
            (Level::Censored, Level::Censored)
        );
        assert_eq!(quantile_of(&groups, 0, 0.5).unwrap().value, Level::At(49.5));
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_estimate(seed in 0..1000_u64, groups in 6..20_usize, p in 0.2..0.8_f64) {
            let mut random = Random::new(seed);
            let mut group = || {
                let mut values: Vec<f64> = (0..40).map(|_| random.unit()).collect();
                values.sort_unstable_by(f64::total_cmp);
                values
            };
            let all: Vec<Vec<f64>> = (0..groups).map(|_| group()).collect();
            if let Ok(found) = quantile_of(&all, 0, p) {
                let [low, value, high] = [found.low, found.value, found.high].map(|one| one.number().unwrap());
                prop_assert!(low <= value && value <= high, "{found:?}");
            }
        }
    }
}
