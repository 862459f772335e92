//! Findings: sentences from data, each with the numbers that support it.
//!
//! Owns which findings are reported and how certain they are. The tests are those of `neph-stats`.

mod alarms;
mod beyond_ping;
pub(crate) mod capacity;
mod certainty;
mod compare;
mod crossover;
mod dominant;
mod equivalence;
mod expected;
mod failed;
mod flagged;
mod fleet_levels;
mod fleets;
mod intervals;
mod levels;
mod loads;
mod loss;
mod measured;
mod networks;
mod position;
mod quantity_shift;
mod spread;
mod throughput;
mod transfers;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use alarms::ALARM;
pub(crate) use compare::median;
pub use expected::{blocks_to_compare, comparisons};
pub(crate) use fleet_levels::{Compared, LevelVersusFirst};
pub use levels::MIN_SHARE;
pub use spread::spread;

use crate::{CampaignData, Diagnosis, PlotSettings};
use quantity_shift::QuantityShift;

/// The part of the report's summary that a finding belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// What was measured.
    Measured,
    /// Notable results.
    Notable,
    /// Warnings.
    Flagged,
}

/// A sentence and the numbers that support it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The part that it belongs to.
    pub kind: FindingKind,
    /// Its topic, a word: `ledger`, `endpoint`, `interval`, `loss`, `throughput` ...
    pub topic: &'static str,
    /// Its subjects, by the names of plan and ledger: endpoints, levels of a parameter, stages. In a
    /// comparison the candidate precedes the baseline.
    pub about: Vec<String>,
    /// The sentence.
    pub text: String,
    /// The numbers in it, by name with the unit; infinite (`null` in JSON) if messages without a reply
    /// decide.
    pub evidence: BTreeMap<String, f64>,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, topic: &'static str, text: String) -> Self {
        Self {
            kind,
            topic,
            about: Vec::new(),
            text,
            evidence: BTreeMap::new(),
        }
    }
    /// Adds a subject.
    pub(crate) fn about(mut self, name: &str) -> Self {
        self.about.push(name.to_owned());
        self
    }
    /// Adds a number.
    pub(crate) fn with(mut self, name: &str, value: f64) -> Self {
        self.evidence.insert(name.to_owned(), value);
        self
    }
}

/// All findings of a campaign, in the order of the report.
pub fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    findings_of(data, settings, &[], &Statements::of(data, settings))
}

/// All statements of a report with a verdict, judged together. As one family, they limit the probability of a
/// false verdict in the whole report.
#[derive(Debug)]
pub struct Statements {
    levels: Vec<levels::Level>,
    positions: Vec<position::Pair>,
    margins: Vec<equivalence::EquivalenceCheck>,
    intervals: Vec<intervals::Effect>,
    pub fleets: Vec<LevelVersusFirst>,
    transfers: Vec<QuantityShift>,
    networks: Vec<QuantityShift>,
    loads: Vec<QuantityShift>,
    decisions: compare::Decisions,
}

impl Statements {
    pub fn of(data: &CampaignData, settings: &PlotSettings) -> Self {
        let mut family = compare::Family::default();
        let levels = levels::prepare(data, settings, &mut family);
        let positions = position::prepare(data, settings, &mut family);
        let margins = equivalence::prepare(data, settings, &mut family);
        let intervals = intervals::prepare(data, settings, &mut family);
        let mut fleets = fleet_levels::prepare(data, settings, &mut family);
        let transfers = transfers::prepare(data, settings, &mut family);
        let networks = networks::prepare(data, settings, &mut family);
        let loads = loads::prepare(data, settings, &mut family);
        let decisions = family.decisions();
        fleet_levels::decide(&mut fleets, &decisions);
        Self {
            levels,
            positions,
            margins,
            intervals,
            fleets,
            transfers,
            networks,
            loads,
            decisions,
        }
    }
}

/// The findings that diagnoses do not already cover.
pub fn findings_of(
    data: &CampaignData,
    settings: &PlotSettings,
    causes: &[Diagnosis],
    statements: &Statements,
) -> Vec<Finding> {
    let decisions = &statements.decisions;
    let mut findings = measured::findings(data, settings);
    findings.extend(transfers::findings(
        data,
        settings,
        &statements.transfers,
        decisions,
    ));
    findings.extend(networks::findings(&statements.networks, decisions));
    findings.extend(loads::findings(&statements.loads, decisions));
    findings.extend(alarms::findings(data, settings));
    findings.extend(dominant::findings(data, settings));
    findings.extend(beyond_ping::findings(data, settings, causes));
    findings.extend(levels::findings(&statements.levels, decisions));
    findings.extend(crossover::findings(&statements.levels, decisions));
    findings.extend(position::findings(
        data,
        settings,
        &statements.positions,
        decisions,
    ));
    findings.extend(equivalence::findings(&statements.margins, decisions));
    findings.extend(intervals::findings(
        data,
        settings,
        causes,
        &statements.intervals,
        decisions,
    ));
    // Comparisons that the plan asks for precede results of single levels.
    findings.extend(fleet_levels::findings(&statements.fleets));
    findings.extend(fleets::findings(data, settings));
    findings.extend(loss::findings(data, settings));
    findings.extend(throughput::findings(data, settings));
    findings.extend(failed::findings(data, settings));
    findings.extend(flagged::findings(data, settings));
    findings
}
