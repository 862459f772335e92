//! How often causes were put in, named where they were, and named where they were not.

use std::collections::BTreeMap;
use std::fmt;

use crate::carry::Named;
use crate::lab::Lab;

/// One rule's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    put_in: u32,
    named: u32,
    wrong: u32,
}

/// All rules'.
#[derive(Debug, Default)]
pub(crate) struct Score {
    counts: BTreeMap<String, Count>,
}

impl Score {
    /// Adds a lab; a line about each cause that was missed or wrong.
    pub(crate) fn add(&mut self, lab: &Lab, named: &Named) -> Vec<String> {
        let mut lines = Vec::new();
        for at in &lab.causes {
            let count = self.counts.entry(at.0.to_owned()).or_default();
            count.put_in += 1;
            if named.has(*at) {
                count.named += 1;
            } else {
                lines.push(format!("missed {} at {}", at.0, at.1));
            }
        }
        for ((rule, endpoint), cause) in &named.causes {
            let put_in = lab.causes.iter().any(|at| at.0 == rule && at.1 == endpoint);
            if !put_in {
                self.counts.entry(rule.clone()).or_default().wrong += 1;
                lines.push(format!("wrong {rule} at {endpoint}: {cause}"));
            }
        }
        lines
    }

    fn all(&self) -> Count {
        let counts = self.counts.values();
        counts.fold(Count::default(), |all, one| Count {
            put_in: all.put_in + one.put_in,
            named: all.named + one.named,
            wrong: all.wrong + one.wrong,
        })
    }

    /// The share of what was named that was put in; 1 where nothing was named.
    pub(crate) fn precision(&self) -> f64 {
        let all = self.all();
        share(all.named, all.named + all.wrong)
    }

    /// The share of what was put in that was named; 1 where nothing was put in.
    pub(crate) fn recall(&self) -> f64 {
        let all = self.all();
        share(all.named, all.put_in)
    }
}

fn share(part: u32, of: u32) -> f64 {
    if of == 0 {
        return 1.0;
    }
    f64::from(part) / f64::from(of)
}

/// A table, ready for the documentation.
impl fmt::Display for Score {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| cause | put in | named | missed | wrongly named |")?;
        writeln!(out, "|---|---|---|---|---|")?;
        let all = self.all();
        let rows = self.counts.iter().map(|(name, one)| (name.as_str(), one));
        for (name, one) in rows.chain([("all", &all)]) {
            let missed = one.put_in - one.named;
            let (put_in, named, wrong) = (one.put_in, one.named, one.wrong);
            writeln!(out, "| {name} | {put_in} | {named} | {missed} | {wrong} |")?;
        }
        write!(
            out,
            "precision {:.3}, recall {:.3}",
            self.precision(),
            self.recall()
        )
    }
}
