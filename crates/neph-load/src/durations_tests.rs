use proptest::prelude::*;

use super::*;

fn of(times: &[u64]) -> Durations {
    let mut rtts = Durations::default();
    for time in times {
        rtts.add(*time);
    }
    rtts
}

#[test]
fn mean_deviation_and_jitter_match_the_rtts() {
    let rtts = of(&[2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000]);
    assert_eq!((rtts.count(), rtts.mean()), (8, Some(Span::from_micros(5))));
    // Sum of squared deviations 32, divided by 7.
    assert_eq!(rtts.deviation(), Some(Span::from_nanos(2_138)));
    // 2, 0, 0, 1, 0, 2, 2 between the eight.
    assert_eq!(rtts.jitter(), Some(Span::from_nanos(1_000)));
    let ends = (rtts.min(), rtts.max());
    assert_eq!(
        ends,
        (Some(Span::from_micros(2)), Some(Span::from_micros(9)))
    );
}

#[test]
fn without_rtts_there_is_no_figure_and_with_one_no_deviation() {
    let none = Durations::default();
    assert_eq!(
        (none.mean(), none.deviation(), none.jitter()),
        (None, None, None)
    );
    let rtts = of(&[7]);
    assert_eq!((rtts.deviation(), rtts.jitter()), (None, None));
    assert_eq!(rtts.mean(), Some(Span::from_nanos(7)));
}

#[test]
fn a_lost_transaction_interrupts_the_jitter() {
    let mut rtts = of(&[100]);
    rtts.interrupt();
    rtts.add(900);
    assert_eq!(rtts.jitter(), None);
    rtts.add(1_000);
    assert_eq!(rtts.jitter(), Some(Span::from_nanos(100)));
}

#[test]
fn a_percentile_needs_enough_samples_and_is_lost_if_losses_decide_it() {
    let times: Vec<u64> = (1..=299).collect();
    let rtts = of(&times);
    assert_eq!(of(&times[..5]).quantile(500, 0), DurationQuantile::Needs(6));
    assert_eq!(
        rtts.quantile(990, 0),
        DurationQuantile::At(Span::from_nanos(297))
    );
    assert_eq!(
        of(&times[..298]).quantile(990, 0),
        DurationQuantile::Needs(299)
    );
    // A loss is a transaction too, slower than every reply.
    let times = &times[..298];
    assert_eq!(
        of(times).quantile(990, 1),
        DurationQuantile::At(Span::from_nanos(297))
    );
    assert_eq!(of(times).quantile(990, 4), DurationQuantile::Lost);
    assert_eq!(of(times).quantile(999, 0), DurationQuantile::Needs(2_995));
    assert_eq!(of(&[]).quantile(500, 6), DurationQuantile::Lost);
}

#[test]
fn clearing_keeps_the_memory_and_the_previous_rtt_for_jitter() {
    let mut rtts = Durations::with_room();
    rtts.add(5_000_000_000);
    let room = rtts.histogram().heap();
    rtts.clear();
    assert_eq!((rtts.count(), rtts.mean()), (0, None));
    assert_eq!(rtts.histogram().heap(), room);
    rtts.add(5_000_000_100);
    assert_eq!(rtts.jitter(), Some(Span::from_nanos(100)));
}

#[test]
fn very_long_rtts_still_have_a_deviation() {
    let mut rtts = Durations::default();
    for n in 0..40_u64 {
        rtts.add(3_000_000_000_000_000_000 * (n % 2) + 1);
    }
    assert!(
        rtts.deviation()
            .is_some_and(|deviation| deviation > Span::from_secs(1))
    );
}

proptest! {
    #[test]
    fn rtts_are_equal_after_merging_and_after_a_json_round_trip(
        mine in prop::collection::vec(0_u64..1 << 40, 0..100),
        yours in prop::collection::vec(0_u64..1 << 40, 0..100),
    ) {
        let mut merged = of(&mine);
        merged.merge(&of(&yours));
        let mut combined = of(&mine);
        combined.interrupt();
        for time in &yours {
            combined.add(*time);
        }
        combined.interrupt();
        merged.interrupt();
        prop_assert_eq!(&merged, &combined);
        let text = serde_json::to_string(&merged).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Durations>(&text).expect("the same"), merged);
    }
}
