//! Diagnoses as text, for every output.

use super::{Diagnoses, Evidence, NotEvaluated, Observation, RULES};

impl Diagnoses {
    /// States that no evaluated rule found a root cause.
    pub fn no_cause(&self) -> String {
        if self.fleets_only {
            return "Not evaluated: the rules need messages of single flows, and only fleets were measured."
                .to_owned();
        }
        let rule_count = RULES.len();
        let looked = rule_count - self.not_evaluated.len();
        if looked == rule_count {
            format!("No root cause found by the {rule_count} rules.")
        } else {
            let verb = if looked == 1 {
                "rule that was"
            } else {
                "rules that were"
            };
            format!("No root cause found by the {looked} {verb} evaluated.")
        }
    }

    /// Rules that were not evaluated and their missing data, a sentence each; empty if all were evaluated.
    pub fn not_evaluated_text(&self) -> Vec<String> {
        NotEvaluated::to_text(&self.not_evaluated)
    }
}

impl Evidence {
    /// `40.1 ms`.
    pub fn to_text(&self) -> String {
        let digits = if self.value.fract() == 0.0 { 0 } else { 2 };
        let number = format!("{:.digits$} {}", self.value, self.unit);
        number.trim_end().to_owned()
    }
}

impl Observation {
    /// `0190f3b2-... (home · every 1 s · 10 KiB, block 2, messages 3, 4, 5)`.
    pub fn to_text(&self) -> String {
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
