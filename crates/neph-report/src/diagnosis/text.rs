//! Diagnoses for a terminal: in brief at the end of a run, in full by `neph diagnose`.

use super::{Diagnosis, Evidence, RULES, Seen};
use crate::text::indented;

/// Where a cause begins on its line.
const INDENT: usize = 2;

/// Each cause and its remedy, `width` columns wide; a sentence where no rule speaks.
pub fn diagnoses_in_brief(found: &[Diagnosis], width: usize) -> String {
    if found.is_empty() {
        let sentence = format!("No cause found: none of the {} rules speaks.", RULES.len());
        return indented(&sentence, 0, width);
    }
    let mut out = indented("Causes, the costliest first:", 0, width);
    for (place, one) in found.iter().enumerate() {
        out.push_str(&head(place, one, width));
    }
    out
}

/// Everything about each cause, `width` columns wide; a sentence where no rule speaks.
pub fn diagnoses_in_full(found: &[Diagnosis], width: usize) -> String {
    if found.is_empty() {
        return diagnoses_in_brief(found, width);
    }
    let mut out = String::new();
    for (place, one) in found.iter().enumerate() {
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
    out
}

fn head(place: usize, one: &Diagnosis, width: usize) -> String {
    let level = one.confidence.level.name();
    let cause = format!("{}. {} ({level}). {}", place + 1, one.title, one.cause);
    let remedy = format!("what to do: {}", one.remedy);
    indented(&cause, INDENT, width) + &indented(&remedy, 2 * INDENT, width)
}

impl Evidence {
    /// `40.1 ms`.
    pub(crate) fn in_words(&self) -> String {
        let digits = if self.value.fract() == 0.0 { 0 } else { 2 };
        let number = format!("{:.digits$} {}", self.value, self.unit);
        number.trim_end().to_owned()
    }
}

impl Seen {
    /// `0190f3b2-... (home · every 1 s · 10 KiB, block 2, messages 3, 4, 5)`.
    pub(crate) fn in_words(&self) -> String {
        let numbers: Vec<String> = self.messages.iter().map(u64::to_string).collect();
        let messages = if numbers.is_empty() {
            String::new()
        } else {
            format!(", messages {}", numbers.join(", "))
        };
        let (id, label, block) = (self.experiment, &self.scenario, self.block);
        format!("{id} ({label}, block {block}{messages})")
    }
}
