//! How often causes were put in, named where they were, and named where they were not.

use std::collections::BTreeMap;
use std::fmt;

use crate::carry::DiagnosedCauses;
use crate::lab::Lab;

/// One rule's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    injected: u32,
    diagnosed: u32,
    wrong: u32,
}

/// All rules'.
#[derive(Debug, Default)]
pub(crate) struct Score {
    counts: BTreeMap<String, Count>,
}

impl Score {
    /// Adds a lab; a line about each cause that was missed or wrong.
    pub(crate) fn add(&mut self, lab: &Lab, diagnosed: &DiagnosedCauses) -> Vec<String> {
        let mut lines = Vec::new();
        for cause_at in &lab.causes {
            let count = self.counts.entry(cause_at.0.to_owned()).or_default();
            count.injected += 1;
            if diagnosed.has(*cause_at) {
                count.diagnosed += 1;
            } else {
                lines.push(format!("missed {} at {}", cause_at.0, cause_at.1));
            }
        }
        for ((rule, endpoint), cause) in &diagnosed.causes {
            let injected = lab
                .causes
                .iter()
                .any(|cause_at| cause_at.0 == rule && cause_at.1 == endpoint);
            if !injected {
                self.counts.entry(rule.clone()).or_default().wrong += 1;
                lines.push(format!("wrong {rule} at {endpoint}: {cause}"));
            }
        }
        lines
    }

    fn totals(&self) -> Count {
        let counts = self.counts.values();
        counts.fold(Count::default(), |count, row| Count {
            injected: count.injected + row.injected,
            diagnosed: count.diagnosed + row.diagnosed,
            wrong: count.wrong + row.wrong,
        })
    }

    /// The share of what was named that was put in; 1 where nothing was named.
    pub(crate) fn precision(&self) -> f64 {
        let count = self.totals();
        share(count.diagnosed, count.diagnosed + count.wrong)
    }

    /// The share of what was put in that was named; 1 where nothing was put in.
    pub(crate) fn recall(&self) -> f64 {
        let count = self.totals();
        share(count.diagnosed, count.injected)
    }
}

fn share(part: u32, total: u32) -> f64 {
    if total == 0 {
        return 1.0;
    }
    f64::from(part) / f64::from(total)
}

/// A table, ready for the documentation.
impl fmt::Display for Score {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| cause | put in | named | missed | wrongly named |")?;
        writeln!(out, "|---|---|---|---|---|")?;
        let count = self.totals();
        let rows = self
            .counts
            .iter()
            .map(|(name, count)| (name.as_str(), count));
        for (name, row) in rows.chain([("all", &count)]) {
            let missed = row.injected - row.diagnosed;
            let (injected, diagnosed, wrong) = (row.injected, row.diagnosed, row.wrong);
            writeln!(
                out,
                "| {name} | {injected} | {diagnosed} | {missed} | {wrong} |"
            )?;
        }
        write!(
            out,
            "precision {:.3}, recall {:.3}",
            self.precision(),
            self.recall()
        )
    }
}
