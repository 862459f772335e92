//! What was measured.

use std::collections::{BTreeMap, BTreeSet};

use neph_flows::FlowTally;
use neph_model::{ExperimentStatus, Scenario};

use super::{Finding, FindingKind};
use crate::data::{Factor, factors};
use crate::numbers::{count, percent};
use crate::text::{plural, to_f64};
use crate::{CampaignData, ExperimentData, PlotSettings};

/// Everything shown, counted.
#[derive(Default)]
struct Totals {
    experiments: usize,
    blocks: BTreeSet<u32>,
    messages: usize,
    replies: usize,
    errors: usize,
    lost: usize,
    not_sent: usize,
}

impl Totals {
    fn count(data: &CampaignData, settings: &PlotSettings) -> Self {
        let mut totals = Self::default();
        let measures_messages =
            |experiment: &&ExperimentData| !data.is_transfer(experiment.scenario);
        for experiment in data.shown(settings).filter(measures_messages) {
            totals.experiments += 1;
            totals.blocks.insert(experiment.block());
            if let Some(fleet) = &experiment.fleet {
                totals.add_fleet(&fleet.tally);
            }
            if let Some(main) = experiment.main() {
                let replied = main.exchanges.iter().filter(|e| e.response.is_some());
                totals.messages += main.exchanges.len();
                totals.replies += replied.count();
                totals.errors += main.errors();
                totals.lost += main.lost();
                totals.not_sent += main.failed();
            }
        }
        totals
    }

    /// Adds the messages of a fleet.
    fn add_fleet(&mut self, tally: &FlowTally) {
        let to_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.messages += to_usize(tally.replies + tally.lost + tally.failed);
        self.replies += to_usize(tally.replies);
        self.lost += to_usize(tally.lost);
        self.not_sent += to_usize(tally.failed);
    }

    /// `, 12 not answered as expected`; nothing where all were.
    fn errors_text(&self) -> String {
        match self.errors {
            0 => String::new(),
            errors => format!(", {} not answered as expected", count(errors)),
        }
    }

    /// `, 3 not sent`; nothing where all were.
    fn not_sent_text(&self) -> String {
        match self.not_sent {
            0 => String::new(),
            not_sent => format!(", {} not sent", count(not_sent)),
        }
    }

    /// `, 17 lost (0.07 %)`, over all scenarios: a share without an interval, since they differ.
    fn loss_text(&self) -> String {
        match self.lost + self.errors + self.replies {
            0 => String::new(),
            sent => {
                let share = percent(to_f64(self.lost) / to_f64(sent));
                format!(", {} lost ({share})", count(self.lost))
            }
        }
    }
}

/// The number of blocks, and what a block is.
fn blocks_text(blocks: usize) -> String {
    let phrase = if blocks == 1 { "one pass" } else { "passes" };
    format!("{} ({phrase} over all scenarios)", plural(blocks, "block"))
}

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let indices = data.measured(settings);
    let scenarios: Vec<&Scenario> = indices.iter().map(|i| &data.scenarios[*i]).collect();
    let totals = Totals::count(data, settings);
    // What was lost is not in imported files.
    let unanswered = if data.is_imported() {
        String::new()
    } else {
        totals.errors_text() + &totals.loss_text() + &totals.not_sent_text()
    };
    let transfers = data.transfers(settings).len();
    if scenarios.is_empty() && transfers > 0 {
        return Vec::new();
    }
    let text = if scenarios.is_empty() {
        format!(
            "No experiment is complete.{}",
            missing_text(data, settings, 0)
        )
    } else {
        format!(
            "{}, measured in {}: {}, {}, {} of them answered{}.{}",
            scenarios_text(&scenarios),
            blocks_text(totals.blocks.len()),
            plural(totals.experiments, "experiment"),
            plural(totals.messages, "message"),
            count(totals.replies),
            unanswered,
            missing_text(data, settings, scenarios.len() + transfers),
        )
    };
    let finding = Finding::new(FindingKind::Measured, "campaign", text)
        .with("scenarios", to_f64(indices.len()))
        .with("blocks", to_f64(totals.blocks.len()))
        .with("experiments", to_f64(totals.experiments))
        .with("messages", to_f64(totals.messages))
        .with("replies", to_f64(totals.replies));
    if data.is_imported() {
        return vec![finding];
    }
    vec![
        finding
            .with("errors", to_f64(totals.errors))
            .with("lost", to_f64(totals.lost))
            .with("not_sent", to_f64(totals.not_sent)),
    ]
}

/// `15 scenarios (3 endpoints, 3 intervals, 2 request sizes; not all combinations are planned)`;
/// without the second part if all are there, or few. Sizes that the endpoints determine are no
/// combinations.
fn scenarios_text(scenarios: &[&Scenario]) -> String {
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
    ];
    if !is_size_determined_by_endpoint(scenarios) {
        parts.push(part(&Factor::Size, "request size"));
    }
    for factor in factors(scenarios) {
        if let Factor::Parameter(name) = &factor {
            let (levels, values) = part(&factor, "value");
            parts.push((levels, format!("{values} of {name}")));
        }
    }
    let (counts, parts): (Vec<usize>, Vec<String>) = parts.into_iter().unzip();
    let combinations: usize = counts.iter().product();
    // With far more combinations, endpoints have parameters of their own: the product means nothing.
    let note = match combinations {
        count if count == scenarios.len() || count > 2 * scenarios.len() => "",
        _ => "; not all combinations are planned",
    };
    format!(
        "{} ({}{note})",
        plural(scenarios.len(), "scenario"),
        parts.join(", ")
    )
}

/// Whether sizes differ between endpoints only, for example because each protocol has its own
/// default.
fn is_size_determined_by_endpoint(scenarios: &[&Scenario]) -> bool {
    let mut sizes: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for scenario in scenarios {
        let sizes_of_endpoint = sizes.entry(&scenario.endpoint).or_default();
        sizes_of_endpoint.insert(scenario.request_size.bytes());
    }
    let all: BTreeSet<u64> = sizes.values().flatten().copied().collect();
    all.len() > 1 && sizes.values().all(|sizes| sizes.len() == 1)
}

/// What the plan has and the report does not; experiments that failed have a sentence of their own.
pub(super) fn missing_text(
    data: &CampaignData,
    settings: &PlotSettings,
    shown_count: usize,
) -> String {
    let mut text = String::new();
    let more_word = if shown_count == 0 { "" } else { "more " };
    match data.scenarios.len() - shown_count {
        0 => {}
        1 => text.push_str(&format!(
            " 1 {more_word}scenario of the plan has nothing to show yet."
        )),
        remaining => text.push_str(&format!(
            " {remaining} {more_word}scenarios of the plan have nothing to show yet."
        )),
    }
    for (status, word) in [
        (ExperimentStatus::Interrupted, "interrupted"),
        (ExperimentStatus::Running, "running"),
    ] {
        let left_out = data.left_out.iter().filter(|experiment| {
            experiment.status == status && settings.shows_block(experiment.block)
        });
        match left_out.count() {
            0 => {}
            1 => text.push_str(&format!(" 1 {word} experiment is left out.")),
            more => text.push_str(&format!(" {more} {word} experiments are left out.")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use neph_model::{ByteSize, Parameters, ProbeKind, ScenarioId, Span, Targets};

    use super::*;

    fn scenario(endpoint: &str, size: u64) -> Scenario {
        Scenario {
            id: ScenarioId(size),
            index: 0,
            endpoint: endpoint.to_owned(),
            target: Targets::read("ws://192.0.2.1:8080/", ProbeKind::Ws),
            interval: Span::from_millis(25),
            request_size: ByteSize(size),
            response_size: ByteSize(64),
            messages: 10,
            parameters: Parameters::default(),
            varied: Vec::new(),
        }
    }

    #[test]
    fn sizes_that_endpoints_determine_are_not_listed() {
        for (sizes, expected) in [
            (
                [("a", 64), ("b", 104), ("c", 64)],
                "3 scenarios (3 endpoints, 1 interval)",
            ),
            (
                [("a", 64), ("b", 64), ("c", 64)],
                "3 scenarios (3 endpoints, 1 interval, 1 request size)",
            ),
            (
                [("a", 64), ("a", 1472), ("b", 64)],
                "3 scenarios (2 endpoints, 1 interval, 2 request sizes; not all combinations are planned)",
            ),
        ] {
            let scenarios = sizes.map(|(endpoint, size)| scenario(endpoint, size));
            let scenarios: Vec<&Scenario> = scenarios.iter().collect();
            assert_eq!(scenarios_text(&scenarios), expected);
        }
    }
}
