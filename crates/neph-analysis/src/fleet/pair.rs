//! The pairs that figures of fleets compare, one for each experiment.

use std::collections::BTreeSet;

use neph_flows::{Advice, Class, FleetView, FlowLatencyBin, PairView, PathChange, Spectrum};
use neph_model::{ClassTransfer, Instant, Local, Scenario, Span};

use crate::clock_time::ClockTimes;
use crate::data::{ExperimentData, Factor, factors};
use crate::{CampaignData, PlotSettings};

/// The flows from one site to one endpoint in one experiment.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// A unique label: scenario, endpoint and block, as far as needed.
    pub label: String,
    /// The label without the block.
    pub label_without_block: String,
    /// The label without the block, for sentences: it always contains the endpoint.
    pub name: String,
    /// The levels of the plan's parameters other than endpoints and sites, such as the season.
    pub setting: String,
    pub scenario: usize,
    /// The label of its scenario.
    pub(crate) scenario_label: String,
    /// The block, from 1.
    pub block: u32,
    /// When the fleet's first message was sent, `14:05:03 UTC`.
    pub start_text: String,
    pub view: &'a FleetView,
    /// Index of the endpoint in the fleet.
    pub endpoint: usize,
    pub pair_view: &'a PairView,
    experiment: &'a ExperimentData,
}

impl<'a> Pair<'a> {
    /// The endpoint's name.
    pub(crate) fn endpoint_name(&self) -> String {
        pair_name(self.pair_view, self.view, self.endpoint)
    }
    /// The advice; `None` if it was not requested.
    pub(crate) fn advice(&self) -> Option<&'a Advice> {
        self.view.advice.get(self.endpoint)
    }
    pub fn classes(&self) -> &'a [Class] {
        self.view
            .classes
            .get(self.endpoint)
            .map_or(&[], Vec::as_slice)
    }
    /// Transfers on the ports of the flows.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = &'a ClassTransfer> {
        let transfers = self.experiment.transfers.iter();
        let endpoint = self.endpoint;
        transfers.filter(move |transfer| transfer.endpoint == endpoint)
    }
    /// The path changes of the flows, by time.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &'a PathChange> {
        let (view, endpoint) = (self.view, self.endpoint);
        let is_own = move |change: &&PathChange| view.fleet.endpoint_of(change.slot) == endpoint;
        view.changes.iter().filter(is_own)
    }
    pub fn latency_bins(&self) -> &'a [FlowLatencyBin] {
        self.view
            .latency_bins
            .get(self.endpoint)
            .map_or(&[], Vec::as_slice)
    }
    pub fn spectrum(&self) -> Option<&'a Spectrum> {
        let spectrum = self.view.spectra.get(self.endpoint)?;
        (!spectrum.bins.is_empty()).then_some(spectrum)
    }
}

/// Every pair of every fleet that the settings show, by scenario, block and endpoint.
pub fn pairs<'a>(data: &'a CampaignData, settings: &'a PlotSettings) -> Vec<Pair<'a>> {
    let fleets = |scenario: usize| {
        let experiments = data.experiments_of(scenario, settings);
        experiments.filter_map(|experiment| Some((experiment, experiment.fleet.as_ref()?)))
    };
    let scenarios: Vec<usize> = data
        .measured(settings)
        .into_iter()
        .filter(|scenario| fleets(*scenario).next().is_some())
        .collect();
    let fleet_scenarios: Vec<&Scenario> = scenarios
        .iter()
        .map(|index| &data.scenarios[*index])
        .collect();
    let varied_factors = factors(&fleet_scenarios);
    let has_one_endpoint = !varied_factors.contains(&Factor::Endpoint);
    let mut pairs = Vec::new();
    for scenario in &scenarios {
        let blocks = fleets(*scenario).count();
        let level = |factor: &Factor| factor.level(&data.scenarios[*scenario]);
        let levels: Vec<String> = varied_factors.iter().map(level).collect();
        let other_factors = varied_factors.iter().filter(|factor| !factor.is_place());
        let setting = other_factors.map(level).collect::<Vec<_>>().join(" · ");
        let experiments = fleets(*scenario).map(|(experiment, _)| experiment);
        let times = ClockTimes::of(experiments, settings.utc_offset);
        for (experiment, view) in fleets(*scenario) {
            for (endpoint, pair_view) in view.pairs.iter().enumerate() {
                let scenario_label = data.label(*scenario);
                let mut parts = Vec::new();
                if scenarios.len() > 1 {
                    parts.extend(levels.iter().cloned());
                }
                if view.pairs.len() > 1 || scenarios.len() == 1 {
                    parts.push(pair_name(pair_view, view, endpoint));
                }
                let mut name = parts.join(" · ");
                if scenarios.len() > 1 && view.pairs.len() == 1 && has_one_endpoint {
                    name = format!("{} · {name}", pair_name(pair_view, view, endpoint));
                }
                let label_without_block = parts.join(" · ");
                if blocks > 1 {
                    parts.push(block_text(experiment, times));
                }
                pairs.push(Pair {
                    label: parts.join(" · "),
                    label_without_block,
                    name,
                    setting: setting.clone(),
                    scenario: *scenario,
                    scenario_label,
                    block: experiment.block(),
                    start_text: start_text(experiment, view, settings),
                    view,
                    endpoint,
                    pair_view,
                    experiment,
                });
            }
        }
    }
    pairs
}

fn pair_name(pair_view: &PairView, view: &FleetView, endpoint: usize) -> String {
    if !pair_view.endpoint.is_empty() {
        return pair_view.endpoint.clone();
    }
    let known_endpoint = view.fleet.endpoints.get(endpoint);
    known_endpoint.map_or_else(
        || format!("endpoint {}", endpoint + 1),
        |endpoint| endpoint.name.clone(),
    )
}

/// `block 3, 14:05`.
fn block_text(experiment: &ExperimentData, times: ClockTimes) -> String {
    let started = times.label(experiment.experiment.started);
    format!("block {}, {started}", experiment.block())
}

/// `Nov 25 14:05:03 UTC`, with the date if the fleet ran past midnight.
fn start_text(experiment: &ExperimentData, view: &FleetView, settings: &PlotSettings) -> String {
    let wall = |at: Instant<Local>| experiment.experiment.started + Span::from_nanos(at.nanos());
    let (first, last) = (wall(view.from), wall(view.until));
    let after_first = first + Span::from_nanos(1);
    let times = ClockTimes::over([first, after_first, last], settings.utc_offset);
    format!("{} {}", times.label(first), times.zone())
}

/// The scenarios of these pairs, each once.
pub fn scenarios(pairs: &[Pair<'_>]) -> Vec<usize> {
    let indices: BTreeSet<usize> = pairs.iter().map(|pair| pair.scenario).collect();
    indices.into_iter().collect()
}
