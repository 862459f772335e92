//! Diagnoses for a terminal: in brief at the end of a run, in full by `neph diagnose`.

use crate::text::wrap_with_indent;
use neph_analysis::{Diagnoses, Diagnosis, Observation};

/// Where a cause begins on its line.
const INDENT: usize = 2;

/// Each root cause and its remedy, `width` columns wide; a sentence where no rule reports one; and
/// which rules were not evaluated.
pub fn diagnoses_in_brief(diagnoses: &Diagnoses, width: usize) -> String {
    let mut out = heading(diagnoses, width);
    for (index, diagnosis) in diagnoses.causes.iter().enumerate() {
        out.push_str(&cause_text(index, diagnosis, width));
    }
    if diagnoses.causes.is_empty() {
        out.push_str(&not_evaluated(diagnoses, width));
    }
    out + &notes(diagnoses, width)
}

/// Everything about each root cause, `width` columns wide, and which rules were not evaluated.
pub fn diagnoses_in_full(diagnoses: &Diagnoses, width: usize) -> String {
    if diagnoses.causes.is_empty() {
        return diagnoses_in_brief(diagnoses, width);
    }
    let mut out = String::new();
    for (index, diagnosis) in diagnoses.causes.iter().enumerate() {
        out.push_str(&cause_text(index, diagnosis, width));
        let numbers: Vec<String> = diagnosis
            .evidence
            .iter()
            .map(|number| format!("{} {}", number.name, number.to_text()))
            .collect();
        let observations: Vec<String> = diagnosis
            .observations
            .iter()
            .map(Observation::to_text)
            .collect();
        for (title, text) in [
            ("confidence", diagnosis.confidence.why.clone()),
            ("numbers", numbers.join(", ")),
            ("seen in", observations.join("; ")),
            ("limits", diagnosis.limits.to_owned()),
        ] {
            out.push_str(&wrap_with_indent(
                &format!("{title}: {text}"),
                2 * INDENT,
                width,
            ));
        }
    }
    out + &not_evaluated(diagnoses, width) + &notes(diagnoses, width)
}

fn heading(diagnoses: &Diagnoses, width: usize) -> String {
    if diagnoses.causes.is_empty() {
        wrap_with_indent(&diagnoses.no_cause(), 0, width)
    } else {
        wrap_with_indent("Root causes, ordered by added latency:", 0, width)
    }
}

fn not_evaluated(diagnoses: &Diagnoses, width: usize) -> String {
    let lines = diagnoses.not_evaluated_text();
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines
        .iter()
        .map(|line| wrap_with_indent(line, INDENT, width));
    wrap_with_indent(
        "Rules that were not evaluated, and what they need:",
        0,
        width,
    ) + &lines.collect::<String>()
}

fn notes(diagnoses: &Diagnoses, width: usize) -> String {
    let notes = diagnoses.notes.iter();
    notes
        .map(|note| wrap_with_indent(&format!("Note: {}", note.text), 0, width))
        .collect()
}

fn cause_text(index: usize, diagnosis: &Diagnosis, width: usize) -> String {
    let level = diagnosis.confidence.level.name();
    let cause = format!(
        "{}. {} ({level}). {}",
        index + 1,
        diagnosis.title,
        diagnosis.cause
    );
    let remedy = format!("remedy: {}", diagnosis.remedy);
    wrap_with_indent(&cause, INDENT, width) + &wrap_with_indent(&remedy, 2 * INDENT, width)
}
