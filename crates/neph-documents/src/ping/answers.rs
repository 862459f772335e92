//! The answers of the peer, and the servers that answered: lines of the summary.

use std::borrow::Cow;
use std::collections::BTreeMap;

use neph_model::{Answer, ProbeKind};

use super::FlowTotals;
use super::PlannedFlow;

/// The answer as text. A status that answers a WebSocket opening refuses it, even 200.
pub(super) fn answer_text(planned: &PlannedFlow, answer: Answer) -> Cow<'static, str> {
    match (planned.spec.target.kind(), answer) {
        (ProbeKind::Ws, Answer::HttpStatus(_)) => {
            format!("WebSocket refused: {}", answer.description()).into()
        }
        _ => answer.description(),
    }
}

/// The answers that the protocol has words for, and why messages were not sent.
pub(super) fn answer_lines(planned: &PlannedFlow, totals: &FlowTotals) -> String {
    let is_reported = |answer: &Answer| match answer {
        // SYN answers have a sentence of their own.
        Answer::Syn(_) => !planned.spec.target.kind().is_segment(),
        _ => true,
    };
    let reported_answers = totals
        .answers
        .iter()
        .filter(|(answer, _)| is_reported(answer));
    let lines = reported_answers.map(|(answer, count)| match answer {
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
    let are_all_expected = totals.answers.iter().all(|(answer, _)| match answer {
        Answer::HttpStatus(status) => is_http && expected.contains(status),
        _ => false,
    });
    if are_all_expected && totals.answers.iter().count() <= 1 {
        return String::new();
    }
    lines.concat()
}

/// The number of each answer, by its name.
pub(super) fn answer_counts(totals: &FlowTotals) -> BTreeMap<String, u64> {
    let counts = totals.answers.iter();
    counts
        .map(|(answer, count)| (answer.name().into_owned(), count))
        .collect()
}

/// A line if several servers answer at one address.
pub(super) fn backends_line(totals: &FlowTotals) -> String {
    let backend_clocks = totals
        .backends
        .count_if_several()
        .zip(totals.backends.apart());
    backend_clocks.map_or_else(String::new, |(machine_count, clock_difference)| {
        format!(
            "{machine_count} machines answer by turns at this address (their clocks are up to {clock_difference} apart): \
             no clock offset and no one-way delay is estimated\n"
        )
    })
}
