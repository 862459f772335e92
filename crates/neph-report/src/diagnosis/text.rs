//! Diagnoses for a terminal: in brief at the end of a run, in full by `neph diagnose`.

use super::{Blind, Diagnoses, Diagnosis, Evidence, RULES, Seen};
use crate::text::indented;

/// Where a cause begins on its line.
const INDENT: usize = 2;

/// Each cause and its remedy, `width` columns wide; where no rule speaks that, and which could not
/// look.
pub fn diagnoses_in_brief(told: &Diagnoses, width: usize) -> String {
    let mut out = told.verdict(width);
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

impl Diagnoses {
    fn verdict(&self, width: usize) -> String {
        if self.causes.is_empty() {
            indented(&self.no_cause(), 0, width)
        } else {
            indented("Causes, the costliest first:", 0, width)
        }
    }

    /// That none of the rules speaks, of those that could look.
    pub(crate) fn no_cause(&self) -> String {
        if self.fleets_only {
            return "Causes are not looked for: the rules follow single messages through their stages, and \
                    fleets were measured."
                .to_owned();
        }
        let all = RULES.len();
        let looked = all - self.blind.len();
        if looked == all {
            format!("No cause found: none of the {all} rules speaks.")
        } else {
            format!("No cause found: none of the {looked} rules that could look speaks.")
        }
    }

    /// Which rules could not look and what they need, a sentence each; nothing where all could.
    pub(crate) fn blind_in_words(&self) -> Vec<String> {
        Blind::in_words(&self.blind)
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
