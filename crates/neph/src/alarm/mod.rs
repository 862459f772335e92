//! Alarms: the rule that was typed.
//!
//! What a rule is about, and what is counted for it, each command says; judging is neph-model's.

use neph_model::alarm::Rule;
use neph_text::{Fault, Placed, Problems, Source};

use crate::exit::Failure;

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
