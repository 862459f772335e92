//! Endpoints that are nearer by distance and still slower: packets may travel a detour.

use neph_model::{Scenario, Span};
use neph_stats::Verdict;

use super::certainty::certainty_text_of;
use super::compare::{Comparison, DecidedComparison, Decisions, Family, compare};
use super::levels::{MIN_EFFECT, level_groups};
use super::{Finding, FindingKind};
use crate::data::Factor;
use crate::numbers::millis;
use crate::{CampaignData, PlotSettings};

/// Distance for a round trip of 1 ms in optical fibre, in kilometres: 200,000 km/s, both directions.
const KM_PER_MS: f64 = 100.0;

/// An endpoint with a distance in the plan.
#[derive(Clone, Debug)]
struct EndpointDistance {
    name: String,
    km: f64,
}

/// An endpoint that is nearer than another one, and their comparison with all other parameters equal.
#[derive(Debug)]
pub(crate) struct Pair {
    near: EndpointDistance,
    far: EndpointDistance,
    compared: Comparison,
}

/// Number of pairs of these endpoints of which one is nearer.
pub(crate) fn pairs_among(scenarios: &[Scenario], names: &[&str]) -> usize {
    let mut endpoints = endpoints_with_distance(scenarios);
    endpoints.retain(|endpoint| names.contains(&endpoint.name.as_str()));
    pairs(&endpoints).count()
}

/// Every pair of endpoints of which one is nearer.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<Pair> {
    let endpoints = endpoints_with_distance(&data.scenarios);
    let mut compared_pairs = Vec::new();
    for group in level_groups(data, settings, &Factor::Endpoint) {
        for (near, far) in pairs(&endpoints) {
            let medians = group
                .medians_of(&near.name)
                .zip(group.medians_of(&far.name));
            let compared = medians.and_then(|(near_median, far_median)| {
                compare(family, near_median, far_median, MIN_EFFECT)
            });
            compared_pairs.extend(compared.map(|compared| Pair {
                near: near.clone(),
                far: far.clone(),
                compared,
            }));
        }
    }
    compared_pairs
}

/// The endpoints with a distance in the plan.
fn endpoints_with_distance(scenarios: &[Scenario]) -> Vec<EndpointDistance> {
    let mut endpoints: Vec<EndpointDistance> = Vec::new();
    for scenario in scenarios {
        let km = scenario
            .parameters
            .distance()
            .map(|distance| distance.get());
        if let Some(km) = km.filter(|_| {
            endpoints
                .iter()
                .all(|endpoint| endpoint.name != scenario.endpoint)
        }) {
            let name = scenario.endpoint.clone();
            endpoints.push(EndpointDistance { name, km });
        }
    }
    endpoints
}

/// A sentence about the greatest detour: a nearer endpoint that is slower.
pub(crate) fn findings(
    data: &CampaignData,
    settings: &PlotSettings,
    pairs: &[Pair],
    decisions: &Decisions,
) -> Option<Finding> {
    let decided = pairs
        .iter()
        .map(|pair| (pair, decisions.for_comparison(pair.compared)));
    let (pair, decided) = decided
        .filter(|(_, decided)| decided.verdict() == Verdict::Worse)
        .max_by(|(a, _), (b, _)| a.compared.shift.total_cmp(&b.compared.shift))?;
    let min_round_trip = min_round_trip(data, settings, &pair.near.name)?;
    Some(sentence(pair, &decided, min_round_trip))
}

/// Every pair of which the first is nearer.
fn pairs(
    endpoints: &[EndpointDistance],
) -> impl Iterator<Item = (&EndpointDistance, &EndpointDistance)> {
    endpoints.iter().flat_map(|near| {
        let farther = endpoints.iter().filter(|far| far.km > near.km);
        farther.map(move |far| (near, far))
    })
}

/// The fastest round trip to an endpoint in milliseconds: of an echo alongside the messages if there is one,
/// else of a message.
fn min_round_trip(data: &CampaignData, settings: &PlotSettings, endpoint: &str) -> Option<f64> {
    let scenarios = data.measured(settings).into_iter();
    let scenarios = scenarios.filter(|index| data.scenarios[*index].endpoint == endpoint);
    let experiments = scenarios.flat_map(|index| data.experiments_of(index, settings));
    let flows =
        experiments.filter_map(|experiment| experiment.companion().or_else(|| experiment.main()));
    let times = flows.flat_map(|flow| {
        flow.exchanges
            .iter()
            .filter_map(|exchange| flow.round_trip(exchange))
    });
    times.min().map(Span::millis_f64)
}

fn sentence(pair: &Pair, decided: &DecidedComparison, min_round_trip: f64) -> Finding {
    let Pair {
        near,
        far,
        compared,
    } = pair;
    let path = min_round_trip * KM_PER_MS;
    let text = format!(
        "{0} is nearer than {1} ({2} km, {1}: {3} km), but {4} at the median; {5}. The fastest round trip to {0} takes {6}. In this time, light in fibre covers {path:.0} km in each direction.",
        near.name,
        far.name,
        near.km,
        far.km,
        decided.to_text("it", &far.name),
        certainty_text_of(&[*decided]),
        millis(min_round_trip),
    );
    Finding::new(FindingKind::Notable, "position", text)
        .about(&near.name)
        .about(&far.name)
        .with("shift_ms", compared.shift)
        .with("nearer_km", near.km)
        .with("farther_km", far.km)
        .with("path_km", path)
}
