//! Diagnoses in words, for whatever shows them.

use super::{Blind, Diagnoses, Evidence, RULES, Seen};

impl Diagnoses {
    /// That none of the rules speaks, of those that could look.
    pub fn no_cause(&self) -> String {
        if self.fleets_only {
            return "No cause was looked for: the rules look at the messages of single flows, and only \
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
    pub fn blind_in_words(&self) -> Vec<String> {
        Blind::in_words(&self.blind)
    }
}

impl Evidence {
    /// `40.1 ms`.
    pub fn in_words(&self) -> String {
        let digits = if self.value.fract() == 0.0 { 0 } else { 2 };
        let number = format!("{:.digits$} {}", self.value, self.unit);
        number.trim_end().to_owned()
    }
}

impl Seen {
    /// `0190f3b2-... (home · every 1 s · 10 KiB, block 2, messages 3, 4, 5)`.
    pub fn in_words(&self) -> String {
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
