//! Messages that take much longer than an ICMP echo alongside, and why. The network is blamed only if its
//! stage was measured separately.

use neph_model::{Span, Stage, StageSet};

use super::compare::median;
use super::{Finding, FindingKind};
use crate::data::{Exchange, FlowData};
use crate::numbers::millis;
use crate::text::{plural, to_f64};
use crate::{CampaignData, Diagnosis, PlotSettings};

/// Minimum ratio of a round trip to an echo that is reported: distance does not explain it.
const MIN_RATIO: f64 = 2.0;
/// Smallest difference that is reported, in milliseconds.
const MIN_EXCESS_MS: f64 = 1.0;
/// Topic that root causes may explain.
const TRANSMISSION: &str = "transmission";

/// A scenario whose messages are under way for much longer than its echoes.
struct FarAboveEcho {
    scenario: usize,
    /// The stages that the time covers.
    stages: StageSet,
    /// Median of the ledger entry with the network, in milliseconds.
    network: f64,
    /// The same with the wait for TCP's window, which fills behind the same bottleneck, if the network was
    /// measured separately.
    time: f64,
    /// The fastest echo in milliseconds. Echoes alongside messages wait in the same queue, so only the
    /// fastest shows the path alone.
    echo: f64,
}

impl FarAboveEcho {
    /// The time above the echo, in milliseconds.
    fn excess(&self) -> f64 {
        self.time - self.echo
    }

    fn is_network(&self) -> bool {
        is_network(self.stages)
    }

    /// Whether the network stage, less the explained milliseconds, is still far above an echo. The wait for
    /// the window does not count: on a path without a queue it consists of round trips.
    fn is_far_without(&self, explained: f64) -> bool {
        let unexplained = self.network - explained;
        unexplained > self.echo * MIN_RATIO && unexplained - self.echo > MIN_EXCESS_MS
    }
}

/// Whether the stages contain no application: the network alone, or with the peer's send path, whose end only
/// the next reply shows.
fn is_network(set: StageSet) -> bool {
    let network_only = StageSet::only(Stage::Network);
    set == network_only || set == network_only.with(Stage::PeerSend)
}

/// One sentence about network stages that no root cause explains, one about network stages merged with
/// others.
pub(crate) fn findings(
    data: &CampaignData,
    settings: &PlotSettings,
    causes: &[Diagnosis],
) -> Vec<Finding> {
    let mut comparisons: Vec<FarAboveEcho> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| far_above_echo(data, settings, scenario))
        .collect();
    comparisons.sort_by(|a, b| b.excess().total_cmp(&a.excess()));
    let (mut network, merged): (Vec<FarAboveEcho>, Vec<FarAboveEcho>) =
        comparisons.into_iter().partition(FarAboveEcho::is_network);
    network
        .retain(|comparison| comparison.is_far_without(explained_ms(causes, comparison.scenario)));
    let transmission = worst_finding(data, &network, TRANSMISSION, transmission_text);
    transmission
        .into_iter()
        .chain(worst_finding(
            data,
            &merged,
            "beyond_ping",
            merged_stages_text,
        ))
        .collect()
}

/// How many milliseconds of a scenario's messages root causes explain.
fn explained_ms(causes: &[Diagnosis], scenario: usize) -> f64 {
    let causes = causes.iter();
    causes
        .filter_map(|cause| cause.explains(TRANSMISSION, scenario))
        .sum()
}

/// The sentence of the first one, with the number of the others.
fn worst_finding(
    data: &CampaignData,
    members: &[FarAboveEcho],
    topic: &'static str,
    sentence: fn(&CampaignData, &FarAboveEcho) -> String,
) -> Option<Finding> {
    let worst = members.first()?;
    let mut text = sentence(data, worst);
    if members.len() > 1 {
        let more_scenarios = plural(members.len() - 1, "more scenario");
        text.push_str(&format!(" The same holds for {more_scenarios}, by less."));
    }
    let finding = Finding::new(FindingKind::Notable, topic, text)
        .with("network_ms", worst.network)
        .with("with_window_ms", worst.time)
        .with("icmp_ms", worst.echo)
        .with("scenarios", to_f64(members.len()));
    Some(finding)
}

fn transmission_text(data: &CampaignData, measured: &FarAboveEcho) -> String {
    let scenario = &data.scenarios[measured.scenario];
    format!(
        "{} of the median of {} ({}) are transmission and queueing of {} in '{}', not propagation: the fastest ICMP echo takes {}.",
        millis(measured.excess()),
        millis(measured.time),
        measured.stages.with(Stage::SendWindow),
        scenario.request_size.exact(),
        scenario.label(),
        millis(measured.echo),
    )
}

fn merged_stages_text(data: &CampaignData, measured: &FarAboveEcho) -> String {
    format!(
        "In '{}' the median of the stages {} is {}, but the minimum ICMP RTT is {}: at least {} is not path latency. Timestamps between the stages are missing, so it is unknown whether {} added it.",
        data.scenarios[measured.scenario].label(),
        measured.stages,
        millis(measured.time),
        millis(measured.echo),
        millis(measured.excess()),
        suspects(measured.stages),
    )
}

/// What may have caused the time of an entry: `the network or the server`.
fn suspects(set: StageSet) -> String {
    let server = [Stage::PeerKernel, Stage::PeerApp, Stage::PeerSend];
    let is_of = |others: &[Stage]| others.iter().any(|stage| set.contains(*stage));
    let local_stages: Vec<Stage> = Stage::ALL
        .into_iter()
        .filter(|stage| *stage != Stage::Network && !server.contains(stage))
        .collect();
    let mut names = vec!["the network"];
    if is_of(&server) {
        names.push("the server");
    }
    if is_of(&local_stages) {
        names.push("the client host");
    }
    names.join(" or ")
}

fn far_above_echo(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
) -> Option<FarAboveEcho> {
    let (stages, network, time) = median_network_times(data.main_flows(scenario, settings))?;
    let companions = data
        .experiments_of(scenario, settings)
        .filter_map(|experiment| experiment.companion());
    let echo = companions
        .flat_map(|flow| {
            flow.exchanges
                .iter()
                .filter_map(|exchange| flow.round_trip(exchange))
        })
        .min()?
        .millis_f64();
    let comparison = FarAboveEcho {
        scenario,
        stages,
        network,
        time,
        echo,
    };
    comparison.is_far_without(0.0).then_some(comparison)
}

/// A message's entry that contains the network.
struct NetworkTime {
    stages: StageSet,
    network: Span,
    /// With the wait for TCP's window.
    time: Span,
}

impl NetworkTime {
    fn of(flow: &FlowData, exchange: &Exchange) -> Option<Self> {
        let mut entries = flow.ledger(exchange);
        let (set, network) = entries.find(|(set, _)| set.contains(Stage::Network))?;
        let window = StageSet::only(Stage::SendWindow);
        let waited: Span = flow
            .ledger(exchange)
            .filter(|(other, _)| *other == window && is_network(set))
            .map(|(_, time)| time)
            .sum();
        let time = network + waited;
        Some(Self {
            stages: set,
            network,
            time,
        })
    }
}

/// The stages that cover the time under way, the median of their entries, and the same with the wait for the
/// window. Uses the network's own entries if most messages have one, else all stages that some message merges
/// with it.
fn median_network_times<'a>(
    flows: impl Iterator<Item = &'a FlowData>,
) -> Option<(StageSet, f64, f64)> {
    let mut entries: Vec<NetworkTime> = flows
        .flat_map(|flow| flow.exchanges.iter().map(move |exchange| (flow, exchange)))
        .filter_map(|(flow, exchange)| NetworkTime::of(flow, exchange))
        .collect();
    let network_only_count = entries
        .iter()
        .filter(|entry| is_network(entry.stages))
        .count();
    let is_mostly_network_only = 2 * network_only_count > entries.len();
    entries.retain(|entry| is_network(entry.stages) == is_mostly_network_only);
    let stages = entries
        .iter()
        .flat_map(|entry| entry.stages.iter())
        .fold(StageSet::EMPTY, StageSet::with);
    let median_of = |time: fn(&NetworkTime) -> Span| {
        let mut times: Vec<f64> = entries
            .iter()
            .map(|entry| time(entry).millis_f64())
            .collect();
        median(&mut times)
    };
    Some((
        stages,
        median_of(|entry| entry.network)?,
        median_of(|entry| entry.time)?,
    ))
}
