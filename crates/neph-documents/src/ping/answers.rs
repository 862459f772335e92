//! The answers of the peer, and the servers that answered: lines of the summary.

use std::borrow::Cow;
use std::collections::BTreeMap;

use neph_model::{Answer, ProbeKind};

use super::FlowMeasured;
use super::Planned;

/// The answer as text. A status that answers a WebSocket opening refuses it, even 200.
pub(super) fn answer_text(planned: &Planned, answer: Answer) -> Cow<'static, str> {
    match (planned.spec.target.kind(), answer) {
        (ProbeKind::Ws, Answer::HttpStatus(_)) => {
            format!("WebSocket refused: {}", answer.description()).into()
        }
        _ => answer.description(),
    }
}

/// The answers that the protocol has words for, and why messages were not sent.
pub(super) fn answers(planned: &Planned, watched: &FlowMeasured) -> String {
    let is_reported = |answer: &Answer| match answer {
        // SYN answers have a sentence of their own.
        Answer::Syn(_) => !planned.spec.target.kind().is_segment(),
        _ => true,
    };
    let texts = watched
        .answers
        .iter()
        .filter(|(answer, _)| is_reported(answer));
    let lines = texts.map(|(answer, count)| match answer {
        Answer::Local(fault) => {
            format!(
                "  {count} not sent: {}; {}\n",
                answer.description(),
                fault.remedy()
            )
        }
        _ => format!("  {count} x {}\n", answer_text(planned, answer)),
    });
    let lines: Vec<String> = lines.collect();
    let expected = planned.spec.expected_status;
    // If all answers are as expected, there is nothing to report.
    let is_http = planned.spec.target.kind().properties().has_status;
    let all_expected = watched.answers.iter().all(|(answer, _)| match answer {
        Answer::HttpStatus(status) => is_http && expected.contains(status),
        _ => false,
    });
    if all_expected && watched.answers.iter().count() <= 1 {
        return String::new();
    }
    lines.concat()
}

/// The number of each answer, by its name.
pub(super) fn answer_counts(watched: &FlowMeasured) -> BTreeMap<String, u64> {
    let counts = watched.answers.iter();
    counts
        .map(|(answer, count)| (answer.name().into_owned(), count))
        .collect()
}

/// A line if several servers answer at one address.
pub(super) fn backends(watched: &FlowMeasured) -> String {
    let several = watched.backends.several().zip(watched.backends.apart());
    several.map_or_else(String::new, |(machines, apart)| {
        format!(
            "{machines} machines answer by turns at this address (their clocks are up to {apart} apart): \
             no clock offset and no one-way delay is estimated\n"
        )
    })
}
