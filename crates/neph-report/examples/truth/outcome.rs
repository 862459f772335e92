//! What was counted: shares with their own uncertainty, held against a target, in a table.

use std::fmt;

use neph_stats::proportion;

/// What a share has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// At most this, in percent.
    AtMost(f64),
    /// At least this, in percent.
    AtLeast(f64),
    /// Nothing is promised: it is shown.
    Shown,
}

/// How often something happened in the reports of one world.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) world: String,
    pub(crate) quantity: String,
    /// How often it happened, of how many.
    pub(crate) hits: usize,
    pub(crate) cases: usize,
    pub(crate) target: Target,
}

impl Row {
    fn share(&self) -> Option<f64> {
        proportion(self.hits, self.cases)
            .ok()
            .map(|proportion| proportion.share())
    }

    /// Whether the target is met; nothing without a target, or without a single case.
    fn is_met(&self) -> Option<bool> {
        let percent = 100.0 * self.share()?;
        match self.target {
            Target::AtMost(max) => Some(percent <= max),
            Target::AtLeast(min) => Some(percent >= min),
            Target::Shown => None,
        }
    }
}

/// Rows with a title of their own and what they mean.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// A sentence or two before the table.
    pub(crate) about: &'static str,
    pub(crate) rows: Vec<Row>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(max) => write!(f, "at most {max} %"),
            Self::AtLeast(min) => write!(f, "at least {min} %"),
            Self::Shown => f.write_str("-"),
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.about)?;
        writeln!(f, "| world | what | found | cases | target | met |")?;
        writeln!(f, "|---|---|--:|--:|---|---|")?;
        for row in &self.rows {
            let share = row.share().map_or_else(
                || "no claim".to_owned(),
                |share| format!("{:.1} %", 100.0 * share),
            );
            let met = match row.is_met() {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "-",
            };
            let (world, quantity, cases, target) =
                (&row.world, &row.quantity, row.cases, row.target);
            writeln!(
                f,
                "| {world} | {quantity} | {share} | {cases} | {target} | {met} |"
            )?;
        }
        Ok(())
    }
}
