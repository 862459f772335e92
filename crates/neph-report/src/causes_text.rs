//! Diagnoses for a terminal: in brief at the end of a run, in full by `neph diagnose`.

use crate::text::indented;
use neph_analysis::{Diagnoses, Diagnosis, Seen};

/// Where a cause begins on its line.
const INDENT: usize = 2;

/// Each root cause and its remedy, `width` columns wide; a sentence where no rule reports one; and
/// which rules were not evaluated.
pub fn diagnoses_in_brief(reported: &Diagnoses, width: usize) -> String {
    let mut out = verdict(reported, width);
    for (place, one) in reported.causes.iter().enumerate() {
        out.push_str(&head(place, one, width));
    }
    if reported.causes.is_empty() {
        out.push_str(&not_evaluated(reported, width));
    }
    out + &notes(reported, width)
}

/// Everything about each root cause, `width` columns wide, and which rules were not evaluated.
pub fn diagnoses_in_full(reported: &Diagnoses, width: usize) -> String {
    if reported.causes.is_empty() {
        return diagnoses_in_brief(reported, width);
    }
    let mut out = String::new();
    for (place, one) in reported.causes.iter().enumerate() {
        out.push_str(&head(place, one, width));
        let numbers: Vec<String> = one
            .evidence
            .iter()
            .map(|number| format!("{} {}", number.name, number.in_words()))
            .collect();
        let seen: Vec<String> = one.observations.iter().map(Seen::in_words).collect();
        for (title, text) in [
            ("confidence", one.confidence.why.clone()),
            ("numbers", numbers.join(", ")),
            ("seen in", seen.join("; ")),
            ("limits", one.limits.to_owned()),
        ] {
            out.push_str(&indented(&format!("{title}: {text}"), 2 * INDENT, width));
        }
    }
    out + &not_evaluated(reported, width) + &notes(reported, width)
}

fn verdict(reported: &Diagnoses, width: usize) -> String {
    if reported.causes.is_empty() {
        indented(&reported.no_cause(), 0, width)
    } else {
        indented("Root causes, ordered by added latency:", 0, width)
    }
}

fn not_evaluated(reported: &Diagnoses, width: usize) -> String {
    let lines = reported.not_evaluated_text();
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| indented(line, INDENT, width));
    indented("Not evaluated:", 0, width) + &lines.collect::<String>()
}

fn notes(reported: &Diagnoses, width: usize) -> String {
    let notes = reported.notes.iter();
    notes
        .map(|note| indented(&format!("Note: {}", note.text), 0, width))
        .collect()
}

fn head(place: usize, one: &Diagnosis, width: usize) -> String {
    let level = one.confidence.level.name();
    let cause = format!("{}. {} ({level}). {}", place + 1, one.title, one.cause);
    let remedy = format!("remedy: {}", one.remedy);
    indented(&cause, INDENT, width) + &indented(&remedy, 2 * INDENT, width)
}
