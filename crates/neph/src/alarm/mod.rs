//! Telling alarms: the rule that was typed, the line on standard error, the JSON, the webhook.
//!
//! What a rule is about, and what is counted for it, each command says; judging is neph-model's.

use neph_model::Wall;
use neph_model::alarm::{Change, Rule};
use neph_text::{Fault, Placed, Problems, Source};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::when;

/// A rule that was typed behind `--alarm`, about one of `subjects`.
///
/// # Errors
/// Its first mistake; what `mend` says of it, where it knows better.
pub(crate) fn parse<S: Clone>(
    text: &str,
    subjects: &[(&str, S)],
    mend: impl Fn(&str) -> Option<Fault>,
) -> Result<Rule<S>, Failure> {
    neph_campaign::alarm::parse(text, subjects).map_err(|Placed { value, span }| {
        let source = Source::new("--alarm", text);
        let problems = Problems::new(&source);
        let word = text.get(span.clone()).unwrap_or_default();
        problems.add(span, mend(word).unwrap_or(value));
        match problems.verdict::<()>(None) {
            Ok(()) => Failure::usage("--alarm cannot be read"),
            Err(problems) => Failure::Text(source.clone(), problems),
        }
    })
}

/// One line for people; `noun` is what was counted.
pub(crate) fn sentence(at: Wall, change: &Change, noun: &str) -> String {
    let what = if change.is_raised {
        "ALARM"
    } else {
        "the alarm is over"
    };
    format!("{}  {what}: {}", when::utc(at), change.in_words(noun))
}

/// For programs; `counted` is the key of what was counted: `round_trips`.
pub(crate) fn document(at: Wall, change: &Change, counted: &str) -> Value {
    let longer = format!("{counted}_longer");
    json!({
        "kind": "alarm",
        "at_unix_ns": at.unix_nanos(),
        "rule": change.rule,
        "state": if change.is_raised { "raised" } else { "over" },
        "limit_ns": change.limit.nanos(),
        counted: change.of,
        longer: change.longer,
    })
}
