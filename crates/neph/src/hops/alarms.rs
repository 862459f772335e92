//! `--alarm` and `--webhook` of `neph hops`.

use clap::Args as ClapArgs;
use neph_capture::path::alarms::{Rules, Subject, subjects};
use neph_export::Url;

use crate::alarm::parse;
use crate::exit::Failure;

/// Alarm rules and their webhook.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct AlarmArgs {
    /// Raise an alarm if the delay from one point to another is high, such as 'a - b > 2ms p99 for 30s'.
    /// 'segment > 2ms p99' applies to each segment; repeatable
    #[arg(long, value_name = "RULE")]
    alarm: Vec<String>,
    /// Send the start and end of each --alarm to this URL, as JSON by HTTP POST
    #[arg(long, value_name = "URL", value_parser = neph_export::url, requires = "alarm")]
    pub(super) webhook: Option<Url>,
}

impl AlarmArgs {
    /// The rules, about segments of points with these names.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub(super) fn rules(&self, points: &[String]) -> Result<Rules, Failure> {
        let subjects = subjects(points);
        let names = subjects.iter();
        let names: Vec<(&str, Subject)> = names
            .map(|(name, subject)| (name.as_str(), *subject))
            .collect();
        let rules = self.alarm.iter().map(|text| parse(text, &names, |_| None));
        Ok(Rules::of(rules.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use neph_capture::Direction;
    use neph_capture::path::alarms::Delay;

    use super::*;

    fn rules(texts: &[&str]) -> Result<Rules, Failure> {
        let alarm_args = AlarmArgs {
            alarm: texts.iter().map(ToString::to_string).collect(),
            webhook: None,
        };
        let names = ["client", "my host", "vm"].map(str::to_owned);
        alarm_args.rules(&names)
    }

    #[test]
    fn an_alarm_rule_matches_its_segment_or_every_segment() {
        let rules = rules(&[
            "client - my host > 2ms p99 for 30s",
            "my host - vm reverse > 2ms p99",
            "segment>2ms p99",
        ]);
        let rules = rules.expect("rules");
        let matched_directions = |index: usize| {
            let directions = [
                (0, Direction::Forward),
                (0, Direction::Reverse),
                (1, Direction::Forward),
                (1, Direction::Reverse),
            ];
            directions.map(|(segment, direction)| {
                rules.rules()[index].subject.includes(segment, direction)
            })
        };
        assert_eq!(matched_directions(0), [true, true, false, false]);
        assert_eq!(matched_directions(1), [false, false, false, true]);
        assert_eq!(matched_directions(2), [true; 4]);
    }

    #[test]
    fn an_unknown_segment_is_refused_with_the_known_ones() {
        match rules(&["client - vm > 2ms p99"]) {
            Err(Failure::Text(_, problems)) => {
                let message = problems[0].to_string();
                assert!(
                    message.starts_with("--alarm:1:1: 'client - vm' is not"),
                    "{message}"
                );
                assert!(message.contains("my host - vm"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// A packet each 10 ms for 40 s, in disorder by 20 ms; from 10 s to 20 s each takes 8 ms, else 1.
    #[test]
    fn a_segment_raises_an_alarm_while_it_is_slow() {
        let rules = rules(&["segment > 5ms p99 for 4s"]).expect("rules");
        let mut delays: Vec<Delay> = (0..4_000)
            .map(|index: i64| {
                let entered_nanos = (index ^ 1) * 10_000_000;
                let is_slow = (10_000_000_000..20_000_000_000).contains(&entered_nanos);
                Delay {
                    entered_nanos,
                    delay_nanos: if is_slow { 8_000_000 } else { 1_000_000 },
                    bound: index,
                }
            })
            .collect();
        delays.sort_unstable();
        let names = ["client", "vm"].map(str::to_owned);
        let mut rule_states = rules.rule_states(&names, |_| true);
        let changes = rule_states[0].evaluate(&delays, 7);
        let state_changes: Vec<(bool, i64)> = changes
            .iter()
            .map(|reported| {
                (
                    reported.change.is_raised,
                    reported.change.at.nanos() / 1_000_000_000,
                )
            })
            .collect();
        // p99 needs 299: stretches of 3 s, those from 9 s on over the limit and from 21 s on well.
        assert_eq!(state_changes, [(true, 15), (false, 27)]);
        assert_eq!(
            (
                changes[0].bound,
                changes[0].segment.as_str(),
                changes[0].direction
            ),
            (3_999, "client - vm", Direction::Forward)
        );
        assert_eq!(changes[0].at.unix_nanos(), 15_000_000_007);
    }
}
