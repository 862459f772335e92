//! An alarm over data that carries its own time: recorded messages, packets of a capture. It is
//! evaluated for each second of that time, so that the same measurement always gives the same
//! result. The speed of reading has no effect.

use crate::Span;

use super::{Alarm, Change};

/// The interval between evaluations.
const PERIOD: Span = Span::from_secs(1);

/// An alarm, and the time until which it was evaluated.
#[derive(Debug, Clone)]
pub struct DataTimeAlarm<S> {
    alarm: Alarm<S>,
    /// The time of the next evaluation.
    next: Span,
    latest: Span,
}

impl<S> DataTimeAlarm<S> {
    /// At the beginning.
    pub fn new(alarm: Alarm<S>) -> Self {
        Self {
            alarm,
            next: PERIOD,
            latest: Span::ZERO,
        }
    }

    /// The alarm in its present state.
    pub const fn alarm(&self) -> &Alarm<S> {
        &self.alarm
    }

    /// Counts something that ended `at` this time since the beginning, with its duration; `None`:
    /// it was lost. Anything out of order counts at the latest time.
    pub fn record(&mut self, at: Span, took: Option<Span>) -> Option<Change> {
        let change = self.reach(at);
        self.alarm.record(took);
        change
    }

    /// Evaluates the rest after the last data.
    pub fn finish(&mut self) -> Option<Change> {
        self.alarm.evaluate(self.latest)
    }

    fn reach(&mut self, at: Span) -> Option<Change> {
        self.latest = self.latest.max(at);
        if at < self.next {
            return None;
        }
        let change = self.alarm.evaluate(self.next);
        let silent = (at - self.next).nanos() / PERIOD.nanos();
        // The number of evaluations during a silence has no effect, only its length.
        if silent > 0 {
            self.next += PERIOD.times(silent);
            self.alarm.evaluate(self.next);
        }
        self.next += PERIOD;
        change
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::alarm;
    use super::*;

    /// When it was raised (positive) or ended (negative), in milliseconds.
    fn changes(rule: &str, times: impl IntoIterator<Item = (i64, Option<i64>)>) -> Vec<i64> {
        let mut data_time_alarm = DataTimeAlarm::new(alarm(rule));
        let signed = |change: Change| {
            let at = change.at.nanos() / 1_000_000;
            if change.is_raised { at } else { -at }
        };
        let mut change_times: Vec<i64> = times
            .into_iter()
            .filter_map(|(at, took)| {
                data_time_alarm.record(Span::from_millis(at), took.map(Span::from_millis))
            })
            .map(signed)
            .collect();
        change_times.extend(data_time_alarm.finish().map(signed));
        change_times
    }

    /// One each 100 ms; it takes the milliseconds that `slow` returns for its time.
    fn every_100_ms(until: i64, took: impl Fn(i64) -> Option<i64>) -> Vec<(i64, Option<i64>)> {
        (0..until / 100).map(|n| (n * 100, took(n * 100))).collect()
    }

    #[test]
    fn an_alarm_is_raised_and_cleared_after_the_duration_of_the_rule() {
        let slow = |at| Some(if (10_000..20_000).contains(&at) { 8 } else { 1 });
        let change_times = changes("path > 5ms p50 for 3s", every_100_ms(40_000, slow));
        assert_eq!(change_times, [13_000, -23_000]);
        // At 5 ms it is not over the limit any more, and not yet well.
        let half = |at| match at {
            10_000..20_000 => Some(8),
            20_000..30_000 => Some(5),
            _ => Some(1),
        };
        let change_times = changes(
            "path > 5ms p50 for 3s until 4ms",
            every_100_ms(40_000, half),
        );
        assert_eq!(change_times, [13_000, -33_000]);
    }

    #[test]
    fn delays_shorter_than_the_rule_raise_no_alarm() {
        let slow = |at| Some(if (10_000..12_400).contains(&at) { 8 } else { 1 });
        assert!(changes("path > 5ms p50 for 3s", every_100_ms(40_000, slow)).is_empty());
    }

    #[test]
    fn losses_raise_an_alarm_and_the_remaining_time_is_evaluated() {
        let lost = |at| (at < 5_000).then_some(1);
        let change_times = changes("path > 5ms p50 for 2900ms", every_100_ms(8_000, lost));
        // The eighth second is not complete: its data is evaluated.
        assert_eq!(change_times, [7_900]);
    }

    #[test]
    fn a_gap_of_centuries_is_evaluated_quickly() {
        let mut times = every_100_ms(4_000, |_| Some(8));
        times.push((i64::MAX / 1_000_000, Some(8)));
        assert!(changes("path > 5ms p50 for 9s", times).is_empty());
    }

    proptest! {
        #[test]
        fn evaluating_every_second_of_a_silence_gives_the_same_alarms(
            times in prop::collection::vec((0_i64..150_000, 0_i64..10), 0..200),
        ) {
            let mut at = 0;
            let times: Vec<(i64, Option<i64>)> = times.into_iter().map(|(gap, took)| {
                // Mostly short gaps, some longer than an alarm's patience.
                at += if gap < 140_000 { gap / 100 } else { gap };
                (at, Some(took))
            }).collect();
            let rule = "path > 5ms p50 for 3s";
            let mut plain = alarm(rule);
            let (mut next, mut change_times) = (1_000, Vec::new());
            let mut evaluate = |plain: &mut super::super::Alarm<()>, at: i64| {
                if let Some(change) = plain.evaluate(Span::from_millis(at)) {
                    change_times.push(if change.is_raised { at } else { -at });
                }
            };
            for (at, took) in &times {
                while next <= *at {
                    evaluate(&mut plain, next);
                    next += 1_000;
                }
                plain.record(took.map(Span::from_millis));
            }
            evaluate(&mut plain, times.last().map_or(0, |(at, _)| *at));
            prop_assert_eq!(changes(rule, times), change_times);
        }
    }
}
