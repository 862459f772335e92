//! Alarms: the rules of `--alarm`.
//!
//! Each command defines the subjects of rules and their samples. neph-model evaluates the rules.

use neph_model::Span;
use neph_model::alarm::Rule;
use neph_text::{Fault, Problems, Source, Spanned};

use crate::exit::Failure;

/// Parses a rule of `--alarm` about one of `subjects`.
///
/// # Errors
/// The first mistake, or the better explanation of `explain`, if there is one.
pub(crate) fn parse<S: Clone>(
    text: &str,
    subjects: &[(&str, S)],
    explain: impl Fn(&str) -> Option<Fault>,
) -> Result<Rule<S>, Failure> {
    neph_campaign::alarm::parse(text, subjects).map_err(|Spanned { value, span }| {
        let source = Source::new("--alarm", text);
        let problems = Problems::new(&source);
        let word = text.get(span.clone()).unwrap_or_default();
        problems.add(span, explain(word).unwrap_or(value));
        match problems.verdict::<()>(None) {
            Ok(()) => Failure::usage("--alarm cannot be read"),
            Err(problems) => Failure::Text(source.clone(), problems),
        }
    })
}

/// Refuses a duration in which a rule cannot raise an alarm.
///
/// # Errors
/// The duration is shorter than a rule needs.
pub(crate) fn check_duration<'r, S: 'r>(
    rules: impl IntoIterator<Item = &'r Rule<S>>,
    duration: Option<Span>,
) -> Result<(), Failure> {
    let Some(duration) = duration else {
        return Ok(());
    };
    let too_long_rule = rules.into_iter().find(|rule| rule.hold_duration > duration);
    too_long_rule.map_or(Ok(()), |rule| {
        Err(Failure::usage(format!(
            "--alarm '{}' is raised after {}, and this lasts {duration}; write a shorter time behind for, or measure \
             for longer",
            rule.text, rule.hold_duration
        )))
    })
}
