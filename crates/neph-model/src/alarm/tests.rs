use proptest::prelude::*;

use super::*;

/// `path > LIMIT p50 [for LENGTH] [until LIMIT]`, with the units and in the order of these.
pub(super) fn alarm(text: &str) -> Alarm<()> {
    let after = |word: &str| {
        let mut parts = text.split(' ').skip_while(|part| *part != word);
        parts.nth(1)
    };
    let time = |text: &str| match text.strip_suffix("ms") {
        Some(millis) => Span::from_millis(millis.parse().expect("milliseconds")),
        None => Span::from_secs(text.trim_end_matches('s').parse().expect("seconds")),
    };
    let limit = time(after(">").expect("a limit"));
    Alarm::new(Rule {
        text: text.to_owned(),
        subject: (),
        limit,
        clear_limit: after("until").map_or_else(|| Span::from_nanos(limit.nanos() / 5 * 4), time),
        quantile: Quantile::from_name("p50").expect("it is known"),
        hold_duration: after("for").map_or(Span::ZERO, time),
    })
}

/// Seconds at which the alarm was raised (positive) or ended (negative), when each second had so
/// many round trips of so many milliseconds.
fn changes(alarm: &mut Alarm<()>, seconds: impl IntoIterator<Item = (u32, i64)>) -> Vec<i64> {
    let mut changes = Vec::new();
    for (second, (many, millis)) in (1..).zip(seconds) {
        for _ in 0..many {
            alarm.record(Some(Span::from_millis(millis)));
        }
        if let Some(change) = alarm.evaluate(Span::from_secs(second)) {
            assert_eq!(change.at, Span::from_secs(second));
            changes.push(if change.is_raised { second } else { -second });
        }
    }
    changes
}

#[test]
fn an_alarm_is_raised_only_after_its_full_duration() {
    let rule = "path > 10ms p50 for 5s";
    assert_eq!(changes(&mut alarm(rule), [(6, 11); 7]), [5]);
    assert_eq!(changes(&mut alarm(rule), [(6, 10); 50]), [0; 0]);
    let mut broken = vec![(6, 11); 4];
    broken.push((6, 10));
    assert_eq!(changes(&mut alarm(rule), broken.repeat(9)), [0; 0]);
}

#[test]
fn an_alarm_clears_below_a_lower_threshold_after_its_duration() {
    let rule = "path > 10ms p50 for 5s until 6ms";
    let seconds = [vec![(6, 11); 5], vec![(6, 7); 20], vec![(6, 6); 5]].concat();
    assert_eq!(changes(&mut alarm(rule), seconds), [5, -30]);
    let flapping = [(6, 11), (6, 6)].repeat(50);
    let mut once = alarm(rule);
    assert_eq!(changes(&mut once, flapping), [0; 0]);
    assert!(!once.was_raised());
}

#[test]
fn few_round_trips_are_pooled_and_silence_changes_no_alarm() {
    // p50 needs six: with two a second, it is evaluated each third second.
    assert_eq!(
        changes(&mut alarm("path > 10ms p50 for 5s"), [(2, 11); 9]),
        [6]
    );
    // However rare they are, if only they come: one each 20 s.
    let rare = [vec![(1, 11)], vec![(0, 0); 19]].concat().repeat(7);
    assert_eq!(changes(&mut alarm("path > 10ms p50"), rare), [101]);
    let mut raised = alarm("path > 10ms p50");
    let seconds = [vec![(6, 11)], vec![(0, 0); 200], vec![(6, 1)]].concat();
    assert_eq!(changes(&mut raised, seconds), [1, -202]);
    // What was over the limit before a long silence does not count on.
    let seconds = [vec![(6, 11); 4], vec![(0, 0); 200], vec![(6, 11); 4]].concat();
    assert_eq!(
        changes(&mut alarm("path > 10ms p50 for 5s"), seconds),
        [0; 0]
    );
}

#[test]
fn lost_messages_count_as_longer_than_any_limit() {
    let mut lossy = alarm("path > 10ms p50 until 10ms");
    for took in [None, None, None, None, Some(1), Some(1)] {
        lossy.record(took.map(Span::from_millis));
    }
    let change = lossy.evaluate(Span::from_secs(1)).expect("raised");
    let text = change.to_text("round trip");
    let expected =
        "path > 10ms p50 until 10ms; of the last 6 round trips, 4 took longer than 10.00 ms";
    assert_eq!(text, expected);
}

proptest! {
    #[test]
    fn raise_and_clear_alternate_at_least_one_duration_apart(
        seconds in prop::collection::vec((0_u32..20, 0_i64..20), 0..300),
    ) {
        let changes = changes(&mut alarm("path > 10ms p50 for 5s"), seconds);
        for (place, change) in changes.iter().enumerate() {
            prop_assert_eq!(*change > 0, place % 2 == 0);
        }
        for pair in changes.windows(2) {
            prop_assert!(pair[1].abs() - pair[0].abs() >= 5);
        }
    }
}
