//! The round trips that an alarm of `neph watch` counts.
//!
//! Owns the names of the subjects. neph-model has rules and states.

use neph_capture::{Answer, Half, Method, Sample};
use neph_model::Span;
use neph_model::alarm::{Alarm as AlarmState, Change, Rule};
use neph_text::Fault;

use crate::alarm;
use crate::exit::Failure;

/// The round trips of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Network path between this interface and servers.
    Path,
    /// Network path between this interface and clients.
    ClientPath,
    /// Answers of servers with data.
    WithData,
}

const SUBJECTS: [(&str, Subject); 3] = [
    ("path", Subject::Path),
    ("client-path", Subject::ClientPath),
    ("with-data", Subject::WithData),
];

impl Subject {
    fn includes(self, sample: &Sample) -> bool {
        match self {
            Self::Path => sample.half == Half::Server && sample.answer.measures_path(),
            Self::ClientPath => sample.half == Half::Client && sample.answer.measures_path(),
            Self::WithData => sample.half == Half::Server && sample.answer == Answer::WithData,
        }
    }
}

/// An alarm on round trips of one method.
#[derive(Debug)]
pub(super) struct Alarm {
    state: AlarmState<Subject>,
    method: Method,
    /// Counted round trips.
    counted: u64,
    /// Answers of servers with data, counted or not.
    with_data: u64,
}

impl Alarm {
    /// Parses an alarm on round trips by `method`.
    pub(super) fn parse(text: &str, method: Method) -> Result<Self, Failure> {
        Ok(Self {
            state: AlarmState::new(alarm::parse(text, &SUBJECTS, segment_subject_fault)?),
            method,
            counted: 0,
            with_data: 0,
        })
    }

    /// The rule.
    pub(super) const fn rule(&self) -> &Rule<Subject> {
        self.state.rule()
    }

    /// The message at the end if there were too few round trips for the rule.
    pub(super) fn insufficient_data_message(&self) -> Option<String> {
        let rule = self.rule();
        let (counted, required) = (self.counted, rule.quantile.needs);
        let reason = match rule.subject {
            Subject::Path if counted == 0 && self.with_data > 0 => {
                "; acknowledgements that carry data include the server's time; with-data judges those"
            }
            _ => "",
        };
        (counted < required).then(|| {
            format!(
                "--alarm '{}' is not judged: {required} round trips are needed for {}, and there were {counted}{reason}",
                rule.text, rule.quantile.name
            )
        })
    }

    /// The rule as given, and whether its alarm is active.
    pub(super) fn state(&self) -> (&str, bool) {
        self.state.status()
    }

    /// Whether the alarm was ever raised.
    pub(super) const fn was_raised(&self) -> bool {
        self.state.was_raised()
    }

    pub(super) fn add_sample(&mut self, sample: &Sample) {
        let is_data = sample.half == Half::Server && sample.answer == Answer::WithData;
        self.with_data += u64::from(is_data && sample.method == self.method);
        if sample.method == self.method && self.state.rule().subject.includes(sample) {
            self.counted += 1;
            self.state.record(Some(sample.round_trip));
        }
    }

    /// Evaluates the alarm at `now`, counted from the start; returns a change.
    pub(super) fn evaluate(&mut self, now: Span) -> Option<Change> {
        self.state.evaluate(now)
    }
}

/// The message for a subject of another command.
fn segment_subject_fault(word: &str) -> Option<Fault> {
    let is_segment = word.split_whitespace().next() == Some("segment");
    is_segment.then(|| {
        let message = "one interface shows no segments: they lie between two capture points";
        let remedy = "neph hops --alarm judges them; write path, client-path or with-data here";
        Fault::new(message, remedy)
    })
}

#[cfg(test)]
mod tests {
    use neph_model::Wall;

    use super::*;

    fn sample(millis: i64) -> Sample {
        Sample {
            at: Wall::from_unix_nanos(0),
            round_trip: Span::from_millis(millis),
            half: Half::Server,
            method: Method::Acknowledgement,
            answer: Answer::Bare,
            in_flight: 1,
            weight: 1,
        }
    }

    /// Whether six of these suffice for a rule about the path.
    fn is_raised_by(sample: &Sample) -> bool {
        let alarm = Alarm::parse("path > 10ms p50", Method::Acknowledgement);
        let mut alarm = alarm.expect("a rule");
        for _ in 0..6 {
            alarm.add_sample(sample);
        }
        alarm.evaluate(Span::from_secs(1)).is_some()
    }

    #[test]
    fn other_round_trips_do_not_count() {
        assert!(is_raised_by(&sample(99)));
        for answer in [Answer::WithData, Answer::Delayed] {
            assert!(!is_raised_by(&Sample {
                answer,
                ..sample(99)
            }));
        }
        let method = Method::Echo;
        assert!(!is_raised_by(&Sample {
            method,
            ..sample(99)
        }));
        let half = Half::Client;
        assert!(!is_raised_by(&Sample { half, ..sample(99) }));
    }

    #[test]
    fn a_rule_error_has_its_position_and_segments_are_refused() {
        let message_of = |text: &str| match Alarm::parse(text, Method::Acknowledgement) {
            Err(Failure::Text(_, problems)) => problems[0].to_string(),
            other => panic!("{other:?}"),
        };
        let typo = message_of("pat > 2ms p99");
        assert!(typo.starts_with("--alarm:1:1: 'pat' is not"), "{typo}");
        assert!(typo.ends_with("did you mean 'path'?"), "{typo}");
        for text in ["segment > 2ms p99 for 30s", "segment reverse > 2ms p99"] {
            let message = message_of(text);
            assert!(message.contains("neph hops --alarm"), "{message}");
        }
    }
}
