use proptest::prelude::*;

use super::*;
use crate::random::Random;

/// Ten groups of 100 that differ as chance has it: as many independent messages as there are, less
/// what ten groups leave uncertain.
#[test]
fn independent_messages_have_almost_the_full_effective_sample_size() {
    let mut random = Random::new(3);
    let hits = |random: &mut Random| (0..100).filter(|_| random.unit() < 0.3).count();
    let groups: Vec<(usize, usize)> = (0..10).map(|_| (hits(&mut random), 100)).collect();
    let share = grouped_share(&groups).unwrap();
    assert!(
        share.effective > 300.0 && share.effective <= 1000.0,
        "{share:?}"
    );
    assert!(share.interval.contains(0.3));
}

/// Each group is all hits or none: it knows as much as one message.
#[test]
fn a_group_with_equal_outcomes_counts_as_one_message() {
    let groups: Vec<(usize, usize)> = (0..20).map(|index| ((index % 2) * 50, 50)).collect();
    let share = grouped_share(&groups).unwrap();
    // Of 20 groups with mean 1/2 and divisor 19: 19 messages.
    assert!((share.effective - 19.0).abs() < 1e-9, "{share:?}");
    assert_eq!(share.share, 0.5);
    assert!(share.interval.high - share.interval.low > 0.4);
}

#[test]
fn few_groups_or_constant_outcomes_have_no_interval() {
    assert!(grouped_share(&[(1, 10); 5]).is_err());
    assert!(grouped_share(&[(0, 10); 12]).is_err());
    assert!(grouped_share(&[(10, 10); 12]).is_err());
    assert!(grouped_share(&[(1, 10), (2, 10), (0, 10), (1, 10), (1, 10), (0, 10), (0, 0)]).is_ok());
}

/// 12 hits of 1,200 each time: in all twelve groups, and in two of them.
#[test]
fn events_in_few_groups_have_a_wide_interval() {
    let in_all = grouped_share(&[(1, 100); 12]).unwrap().interval;
    let mut few = [(0, 100); 12];
    few[..2].fill((6, 100));
    let in_two = grouped_share(&few).unwrap().interval;
    assert!(in_two.high > 4.0 * in_all.high, "{in_two:?}, {in_all:?}");
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

fn ends(quantile: &GroupedQuantile) -> (f64, Option<f64>) {
    let high = quantile.interval.high.map(|high| high.number().unwrap());
    (quantile.interval.low.number().unwrap(), high)
}

/// Groups at different levels: the interval is one of groups, not of their messages.
#[test]
fn the_interval_of_a_median_grows_with_differences_of_groups() {
    let at = |level: f64| {
        (0..100)
            .map(|index| level + f64::from(index) / 1000.0)
            .collect()
    };
    let levels: Vec<Vec<f64>> = (0..12).map(|level| at(f64::from(level))).collect();
    let quantile = quantile_of(&levels, 0, 0.5).unwrap();
    assert!(quantile.effective < 20.0, "{quantile:?}");
    let (low, high) = ends(&quantile);
    assert!(low < 4.0 && high.unwrap() > 8.0, "{quantile:?}");
    let highest = quantile_of(&levels, 0, 0.99).unwrap();
    let (low, high) = ends(&highest);
    assert!(low < 11.0, "{highest:?}");
    assert_eq!(high, None, "twelve levels know no highest p99");
    assert!(quantile_of(&levels[..5], 0, 0.5).is_err());
}

/// Losses in few groups: how many others would have is not known, and p90 has no upper end. The median
/// is safe.
#[test]
fn losses_in_few_groups_leave_high_quantiles_without_upper_end() {
    let mut groups = vec![(0..100).map(f64::from).collect::<Vec<_>>(); 12];
    let none = quantile_of(&groups, 0, 0.9).unwrap();
    assert!(none.interval.high.is_some());
    let mut pooled: Vec<f64> = groups.iter().flatten().copied().collect();
    let lost = |at: usize| if at < 2 { 20 } else { 0 };
    let groups: Vec<Group<'_>> = (groups.iter_mut().enumerate())
        .map(|(at, replies)| Group {
            replies: Sorted::sort(replies).unwrap(),
            unanswered: lost(at),
        })
        .collect();
    let pooled = Sorted::sort(&mut pooled).unwrap();
    let some = grouped_quantile(pooled, &groups, 0.9).unwrap();
    assert_eq!(some.interval.high, None);
    let median = grouped_quantile(pooled, &groups, 0.5).unwrap();
    assert!(median.interval.high.is_some());
}

#[test]
fn messages_without_a_value_rank_above_all_others() {
    let groups = vec![(0..100).map(f64::from).collect::<Vec<_>>(); 8];
    let quantile = quantile_of(&groups, 150, 0.5).unwrap();
    let high = quantile.interval.high;
    assert_eq!(
        (quantile.value, high),
        (Level::Censored, Some(Level::Censored))
    );
    assert_eq!(quantile_of(&groups, 0, 0.5).unwrap().value, Level::At(49.5));
}

proptest! {
    #[test]
    fn an_interval_contains_its_estimate(seed in 0..1000_u64, groups in 6..20_usize, p in 0.5..0.8_f64) {
        let mut random = Random::new(seed);
        let mut group = || {
            let mut values: Vec<f64> = (0..40).map(|_| random.unit()).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let grouped: Vec<Vec<f64>> = (0..groups).map(|_| group()).collect();
        if let Ok(quantile) = quantile_of(&grouped, 0, p) {
            let value = quantile.value.number().unwrap();
            let (low, high) = ends(&quantile);
            prop_assert!(low <= value && high.is_none_or(|high| value <= high), "{quantile:?}");
        }
    }
}

/// One of six groups lies above the median of all, so each group counts as one message. A single slow
/// message must not become the upper end.
#[test]
fn the_upper_end_of_few_groups_is_not_their_slowest_message() {
    let group = |start: f64| -> Vec<f64> {
        (0..60)
            .map(|step| start + 0.002 * f64::from(step))
            .collect()
    };
    let mut groups: Vec<Vec<f64>> = [5.0, 5.0, 5.01, 5.02, 5.03, 5.2].map(group).to_vec();
    *groups[5].last_mut().unwrap() = 8.8;
    let quantile = quantile_of(&groups, 0, 0.5).unwrap();
    let Some(Level::At(high)) = quantile.interval.high else {
        panic!("{quantile:?}");
    };
    assert!((5.2..5.4).contains(&high), "{quantile:?}");
}
