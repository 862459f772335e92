//! Sketches held against sorted lists.

use proptest::prelude::*;

use super::*;

fn of(numbers: impl IntoIterator<Item = (u8, u64)>) -> Sketches {
    let mut sketches = Sketches::default();
    for (kind, number) in numbers {
        sketches.add(kind, number);
    }
    sketches
}

fn sorted(numbers: &[(u8, u64)], kinds: &[u8]) -> Vec<u64> {
    let chosen = numbers.iter().filter(|(kind, _)| kinds.contains(kind));
    let mut chosen: Vec<u64> = chosen.map(|(_, number)| *number).collect();
    chosen.sort_unstable();
    chosen
}

/// Of three kinds, each of any size.
fn numbers(max: usize) -> impl Strategy<Value = Vec<(u8, u64)>> {
    let number = (4_u32..63, any::<u64>()).prop_map(|(shift, number)| number >> shift);
    prop::collection::vec((prop::sample::select(vec![0_u8, 7, 15]), number), 1..max)
}

#[test]
fn an_empty_sketch_has_no_quantile_and_few_values_are_exact() {
    assert_eq!(Sketches::default().of([0]), None);
    let small = of((1..=30).map(|n| (3, n * 1_000_003)));
    assert_eq!(small.of([2]), None);
    let selection = small.of([2, 3]).expect("thirty");
    assert_eq!(selection.quantile(500), 15 * 1_000_003);
    assert_eq!((selection.min(), selection.max()), (1_000_003, 30_000_090));
    assert!(small.heap() <= 6 * 2 * MAX_EXACT, "{}", small.heap());
}

#[test]
fn nearby_values_have_a_precision_of_1_in_1024() {
    let numbers: Vec<(u8, u64)> = (0..10_000)
        .map(|n| (0, 30_000_000 + n * 5_033 % 3_000_000))
        .collect();
    let near = of(numbers.iter().copied());
    assert_eq!(near.one_part_in(), 1_024);
    let selection = near.of([0]).expect("numbers").quantile(500);
    let exact = sorted(&numbers, &[0])[4_999];
    assert!(
        selection.abs_diff(exact) <= exact / 1_024,
        "{selection} for {exact}"
    );
    assert!(near.heap() < 2_000, "{}", near.heap());
}

#[test]
fn values_within_a_factor_of_four_have_a_precision_of_1_in_256() {
    let near = of((0..10_000).map(|n| (0, 1 << 24 | (n * 5_033 % (3 << 24)))));
    assert_eq!(near.one_part_in(), 256);
    assert!(near.heap() < 2_000, "{}", near.heap());
}

#[test]
fn counts_beyond_one_word_are_carried_over() {
    let large = of((0..200_000).map(|n| (1, 7 + n % 2)));
    let selection = large.of([1]).expect("many");
    assert_eq!(
        (
            selection.n(),
            selection.quantile(500),
            selection.quantile(501)
        ),
        (200_000, 7, 8)
    );
    let mut merged = large.clone();
    merged.merge(&large);
    assert_eq!(merged.of([1]).expect("more").n(), 400_000);
}

#[test]
fn a_weighted_value_counts_with_its_weight() {
    let (mut once, mut each) = (Sketches::default(), Sketches::default());
    for n in 0..200 {
        once.add_times(2, 1_000 + n, 1 + n % 7);
        for _ in 0..=n % 7 {
            each.add(2, 1_000 + n);
        }
    }
    each.settle();
    let (once, each) = (once.of([2]).expect("some"), each.of([2]).expect("some"));
    assert_eq!((once.numbers(), each.numbers()), (200, once.n()));
    for permille in [1, 250, 500, 990, 1_000] {
        assert_eq!(once.quantile(permille), each.quantile(permille));
    }
    let selection = |of: &Selection<'_>| (of.n(), of.mean(), of.deviation());
    assert_eq!(selection(&once), selection(&each));
}

proptest! {
    #[test]
    fn mean_and_deviation_are_exact_however_coarse_the_buckets(numbers in numbers(900)) {
        let sketches = of(numbers.iter().copied());
        for kind in [0, 7, 15] {
            let sorted = sorted(&numbers, &[kind]);
            let n = sorted.len() as u128;
            let Some(selection) = sketches.of([kind]) else { continue };
            let sum: u128 = sorted.iter().map(|number| u128::from(*number)).sum();
            if sum > u128::from(u64::MAX) { continue }
            prop_assert_eq!(u128::from(selection.mean()), sum / n);
            let squares = sorted.iter().map(|number| u128::from(*number).pow(2)).try_fold(0, u128::checked_add);
            if let Some(spread) = squares.and_then(|squares| squares.checked_mul(n)?.checked_sub(sum.checked_mul(sum)?)) {
                prop_assert_eq!(selection.deviation().map(u128::from), Some((spread / (n * n)).isqrt()));
            }
        }
    }

    #[test]
    fn a_quantile_is_within_its_precision_and_memory_is_bounded(
        numbers in numbers(900),
        permille in 1..=1_000_u64,
        kinds in prop::sample::subsequence(vec![0_u8, 7, 15], 1..=3),
    ) {
        let sketches = of(numbers.iter().copied());
        let sorted = sorted(&numbers, &kinds);
        let selection = sketches.of(kinds.iter().copied());
        prop_assert_eq!(selection.as_ref().map_or(0, Selection::n), sorted.len() as u64);
        if let Some(selection) = selection {
            let rank = (sorted.len() as u64 * permille).div_ceil(1_000).max(1);
            let exact = sorted[usize::try_from(rank).expect("small") - 1];
            let quantile = selection.quantile(permille);
            let off = exact / sketches.one_part_in();
            prop_assert!(quantile.abs_diff(exact) <= off, "{quantile} for {exact}");
            prop_assert_eq!(Some(&selection.min()), sorted.first());
            prop_assert_eq!(Some(&selection.max()), sorted.last());
        }
        prop_assert!(sketches.heap() <= 6 * 3 * (32 * 16) + 400, "{}", sketches.heap());
    }

    #[test]
    fn quantiles_do_not_depend_on_when_buckets_are_filled(
        numbers in numbers(900),
        at_once in 1_usize..200,
    ) {
        let (mut seldom, mut often) = (Sketches::default(), Sketches::default());
        for some in numbers.chunks(at_once) {
            for (kind, number) in some {
                seldom.add(*kind, *number);
                often.add(*kind, *number);
                often.settle();
            }
            seldom.settle();
        }
        prop_assert_eq!(seldom.one_part_in(), often.one_part_in());
        for kind in [0, 7, 15] {
            prop_assert_eq!(seldom.of([kind]), often.of([kind]));
        }
    }

    #[test]
    fn two_merged_sketches_equal_the_sketch_of_all_values(a in numbers(300), b in numbers(300)) {
        let mut merged = of(a.iter().copied());
        merged.merge(&of(b.iter().copied()));
        merged.settle();
        let all: Vec<_> = a.into_iter().chain(b).collect();
        let labels: Vec<u32> = merged.words[merged.buckets()..].iter().map(|word| word >> COUNT_BITS).collect();
        prop_assert!(merged.precision.is_none() || labels.is_sorted_by(|label, next| label < next));
        for kind in [0, 7, 15] {
            let sorted = sorted(&all, &[kind]);
            let selection = merged.of([kind]);
            prop_assert_eq!(selection.as_ref().map(Selection::min), sorted.first().copied());
            prop_assert_eq!(selection.as_ref().map(Selection::max), sorted.last().copied());
            if let Some(selection) = selection {
                prop_assert_eq!(selection.n(), sorted.len() as u64);
                let exact = sorted[sorted.len().div_ceil(2) - 1];
                let off = exact / merged.one_part_in();
                prop_assert!(selection.quantile(500).abs_diff(exact) <= off);
            }
        }
    }
}
