//! What was measured.

use std::collections::BTreeSet;

use neph_flows::FlowTally;
use neph_model::{ExperimentStatus, Scenario};

use super::{Finding, FindingKind};
use crate::data::{Factor, factors};
use crate::numbers::{count, percent};
use crate::text::{plural, real};
use crate::{CampaignData, ExperimentData, PlotSettings};

/// Everything shown, counted.
#[derive(Default)]
struct Count {
    experiments: usize,
    blocks: BTreeSet<u32>,
    messages: usize,
    replies: usize,
    errors: usize,
    lost: usize,
    failed: usize,
}

impl Count {
    fn of(data: &CampaignData, settings: &PlotSettings) -> Self {
        let mut measured = Self::default();
        let is_of_messages = |experiment: &&ExperimentData| !data.is_transfer(experiment.scenario);
        for experiment in data.shown(settings).filter(is_of_messages) {
            measured.experiments += 1;
            measured.blocks.insert(experiment.block());
            if let Some(fleet) = &experiment.fleet {
                measured.fleet(&fleet.tally);
            }
            if let Some(main) = experiment.main() {
                let replied = main.exchanges.iter().filter(|e| e.response.is_some());
                measured.messages += main.exchanges.len();
                measured.replies += replied.count();
                measured.errors += main.errors();
                measured.lost += main.lost();
                measured.failed += main.failed();
            }
        }
        measured
    }

    /// Adds the messages of a fleet.
    fn fleet(&mut self, tally: &FlowTally) {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.messages += count(tally.replies + tally.lost + tally.failed);
        self.replies += count(tally.replies);
        self.lost += count(tally.lost);
        self.failed += count(tally.failed);
    }

    /// `, 12 not answered as expected`; nothing where all were.
    fn errors(&self) -> String {
        match self.errors {
            0 => String::new(),
            errors => format!(", {} not answered as expected", count(errors)),
        }
    }

    /// `, 3 not sent`; nothing where all were.
    fn not_sent(&self) -> String {
        match self.failed {
            0 => String::new(),
            failed => format!(", {} not sent", count(failed)),
        }
    }

    /// `, 17 lost (0.07 %)`, over all scenarios: a share without an interval, since they differ.
    fn loss(&self) -> String {
        match self.lost + self.errors + self.replies {
            0 => String::new(),
            sent => {
                let share = percent(real(self.lost) / real(sent));
                format!(", {} lost ({share})", count(self.lost))
            }
        }
    }
}

/// The number of blocks, and what a block is.
fn passes(blocks: usize) -> String {
    let phrase = if blocks == 1 { "one pass" } else { "passes" };
    format!("{} ({phrase} over all scenarios)", plural(blocks, "block"))
}

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let shown = data.measured(settings);
    let scenarios: Vec<&Scenario> = shown.iter().map(|i| &data.scenarios[*i]).collect();
    let count = Count::of(data, settings);
    // What was lost is not in imported files.
    let unanswered = if data.is_imported() {
        String::new()
    } else {
        count.errors() + &count.loss() + &count.not_sent()
    };
    let transfers = data.transfers(settings).len();
    if scenarios.is_empty() && transfers > 0 {
        return Vec::new();
    }
    let text = if scenarios.is_empty() {
        format!("Nothing was measured.{}", missing(data, settings, 0))
    } else {
        format!(
            "{}, measured in {}: {}, {}, {} of them answered{}.{}",
            matrix(&scenarios),
            passes(count.blocks.len()),
            plural(count.experiments, "experiment"),
            plural(count.messages, "message"),
            crate::numbers::count(count.replies),
            unanswered,
            missing(data, settings, scenarios.len() + transfers),
        )
    };
    let finding = Finding::new(FindingKind::Measured, "campaign", text)
        .with("scenarios", real(shown.len()))
        .with("blocks", real(count.blocks.len()))
        .with("experiments", real(count.experiments))
        .with("messages", real(count.messages))
        .with("replies", real(count.replies));
    if data.is_imported() {
        return vec![finding];
    }
    vec![
        finding
            .with("errors", real(count.errors))
            .with("lost", real(count.lost))
            .with("not_sent", real(count.failed)),
    ]
}

/// `15 scenarios (3 endpoints, 3 intervals, 2 request sizes; not all combinations are planned)`;
/// without the second part if all are there, or few.
fn matrix(scenarios: &[&Scenario]) -> String {
    let levels = |factor: &Factor| {
        let levels: BTreeSet<String> = scenarios.iter().map(|s| factor.level(s)).collect();
        levels.len()
    };
    let part = |factor: &Factor, noun: &str| {
        let levels = levels(factor);
        (levels, plural(levels, noun))
    };
    let mut parts = vec![
        part(&Factor::Endpoint, "endpoint"),
        part(&Factor::Interval, "interval"),
        part(&Factor::Size, "request size"),
    ];
    for factor in factors(scenarios) {
        if let Factor::Parameter(name) = &factor {
            let (levels, values) = part(&factor, "value");
            parts.push((levels, format!("{values} of {name}")));
        }
    }
    let (counts, parts): (Vec<usize>, Vec<String>) = parts.into_iter().unzip();
    let combinations: usize = counts.iter().product();
    // With far more combinations, endpoints have parameters of their own: the product means nothing.
    let rest = match combinations {
        count if count == scenarios.len() || count > 2 * scenarios.len() => "",
        _ => "; not all combinations are planned",
    };
    format!(
        "{} ({}{rest})",
        plural(scenarios.len(), "scenario"),
        parts.join(", ")
    )
}

/// What the plan has and the report does not; experiments that failed have a sentence of their own.
pub(super) fn missing(data: &CampaignData, settings: &PlotSettings, shown: usize) -> String {
    let mut text = String::new();
    let more = if shown == 0 { "" } else { "more " };
    match data.scenarios.len() - shown {
        0 => {}
        1 => text.push_str(&format!(
            " 1 {more}scenario of the plan has nothing to show yet."
        )),
        remaining => text.push_str(&format!(
            " {remaining} {more}scenarios of the plan have nothing to show yet."
        )),
    }
    let cut_off = data.left_out.iter().filter(|experiment| {
        experiment.status != ExperimentStatus::Failed && settings.shows_block(experiment.block)
    });
    match cut_off.count() {
        0 => {}
        1 => text.push_str(" 1 incomplete experiment is left out."),
        more => text.push_str(&format!(" {more} incomplete experiments are left out.")),
    }
    text
}
