//! Diagnoses for a terminal: in brief at the end of a run, in full by `neph diagnose`.

use crate::text::indented;
use neph_analysis::{Diagnoses, Diagnosis, Seen};

/// Where a cause begins on its line.
const INDENT: usize = 2;

/// Each cause and its remedy, `width` columns wide; where no rule speaks that, and which could not
/// look.
pub fn diagnoses_in_brief(told: &Diagnoses, width: usize) -> String {
    let mut out = verdict(told, width);
    for (place, one) in told.causes.iter().enumerate() {
        out.push_str(&head(place, one, width));
    }
    if told.causes.is_empty() {
        out.push_str(&blind(told, width));
    }
    out + &notes(told, width)
}

/// Everything about each cause, `width` columns wide, and which rules could not look.
pub fn diagnoses_in_full(told: &Diagnoses, width: usize) -> String {
    if told.causes.is_empty() {
        return diagnoses_in_brief(told, width);
    }
    let mut out = String::new();
    for (place, one) in told.causes.iter().enumerate() {
        out.push_str(&head(place, one, width));
        let numbers: Vec<String> = one
            .evidence
            .iter()
            .map(|number| format!("{} {}", number.name, number.in_words()))
            .collect();
        let seen: Vec<String> = one.seen.iter().map(Seen::in_words).collect();
        for (title, text) in [
            ("how sure", one.confidence.why.clone()),
            ("numbers", numbers.join(", ")),
            ("seen in", seen.join("; ")),
            ("limits", one.limits.to_owned()),
        ] {
            out.push_str(&indented(&format!("{title}: {text}"), 2 * INDENT, width));
        }
    }
    out + &blind(told, width) + &notes(told, width)
}

fn verdict(told: &Diagnoses, width: usize) -> String {
    if told.causes.is_empty() {
        indented(&told.no_cause(), 0, width)
    } else {
        indented("Causes, the costliest first:", 0, width)
    }
}

fn blind(told: &Diagnoses, width: usize) -> String {
    let lines = told.blind_in_words();
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| indented(line, INDENT, width));
    indented("Not looked for:", 0, width) + &lines.collect::<String>()
}

fn notes(told: &Diagnoses, width: usize) -> String {
    let notes = told.notes.iter();
    notes
        .map(|note| indented(&format!("Note: {}", note.text), 0, width))
        .collect()
}

fn head(place: usize, one: &Diagnosis, width: usize) -> String {
    let level = one.confidence.level.name();
    let cause = format!("{}. {} ({level}). {}", place + 1, one.title, one.cause);
    let remedy = format!("what to do: {}", one.remedy);
    indented(&cause, INDENT, width) + &indented(&remedy, 2 * INDENT, width)
}
