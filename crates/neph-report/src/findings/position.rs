//! Endpoints that are nearer on the map and slower all the same: how far a packet travels is not how
//! far a place is.

use neph_model::Span;
use neph_stats::Verdict;

use super::compare::{Comparison, any_differs, compare, sureness, verdicts};
use super::levels::{MATTERS, compared};
use super::{Finding, FindingKind};
use crate::axis::millis;
use crate::data::Factor;
use crate::{CampaignData, PlotSettings};

/// The parameter in which a plan tells how far an endpoint is.
const DISTANCE: &str = "distance_km";
/// How far there and back light in glass comes within a millisecond, in kilometres: 200,000 km/s,
/// one way.
const KM_PER_MS: f64 = 100.0;

/// An endpoint whose distance the plan tells.
struct Placed<'d> {
    name: &'d str,
    km: f64,
}

/// One endpoint that is nearer than another one and slower.
struct Detour<'d> {
    near: &'d Placed<'d>,
    far: &'d Placed<'d>,
    compared: Comparison,
}

/// A sentence about the greatest detour.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Option<Finding> {
    let mut places: Vec<Placed<'_>> = Vec::new();
    for scenario in &data.scenarios {
        let told = scenario.parameters.get(DISTANCE);
        let km = told.and_then(|km| km.parse().ok());
        if let Some(km) = km.filter(|_| places.iter().all(|one| one.name != scenario.endpoint)) {
            let name = scenario.endpoint.as_str();
            places.push(Placed { name, km });
        }
    }
    let greatest = detours(data, settings, &places)
        .into_iter()
        .max_by(|a, b| a.compared.shift.total_cmp(&b.compared.shift))?;
    let quickest = quickest(data, settings, greatest.near.name)?;
    Some(sentence(&greatest, quickest))
}

/// Every pair of which the nearer one is the slower one, with everything else the same.
fn detours<'d>(
    data: &CampaignData,
    settings: &PlotSettings,
    places: &'d [Placed<'d>],
) -> Vec<Detour<'d>> {
    let mut found = Vec::new();
    for group in compared(data, settings, &Factor::Endpoint) {
        let differ = any_differs(group.levels.iter().map(|(_, medians)| medians));
        for (near, far) in pairs(places) {
            let medians = group.of(near.name).zip(group.of(far.name));
            let compared = medians.and_then(|(one, other)| compare(one, other, MATTERS));
            let compared = compared.map(|compared| compared.following(differ));
            let slower = compared.filter(|one| verdicts(&[*one]) == [Verdict::Worse]);
            found.extend(slower.map(|compared| Detour {
                near,
                far,
                compared,
            }));
        }
    }
    found
}

/// Every two of which the first is nearer.
fn pairs<'d>(places: &'d [Placed<'d>]) -> impl Iterator<Item = (&'d Placed<'d>, &'d Placed<'d>)> {
    places.iter().flat_map(|near| {
        let farther = places.iter().filter(|far| far.km > near.km);
        farther.map(move |far| (near, far))
    })
}

/// The quickest round trip to an endpoint in milliseconds: of an echo beside the messages where
/// there is one, else of a message.
fn quickest(data: &CampaignData, settings: &PlotSettings, endpoint: &str) -> Option<f64> {
    let there = data.measured(settings).into_iter();
    let there = there.filter(|index| data.scenarios[*index].endpoint == endpoint);
    let experiments = there.flat_map(|index| data.experiments_of(index, settings));
    let flows = experiments.filter_map(|one| one.companion().or_else(|| one.main()));
    let times = flows.flat_map(|flow| flow.exchanges.iter().filter_map(|one| flow.round_trip(one)));
    times.min().map(Span::millis_f64)
}

fn sentence(detour: &Detour<'_>, quickest: f64) -> Finding {
    let Detour {
        near,
        far,
        compared,
    } = detour;
    let path = quickest * KM_PER_MS;
    let text = format!(
        "{} is nearer than {} ({} km against {} km), and yet {} at the median; {}. Its quickest round trip takes {}, in which light in glass travels {path:.0} km and back.",
        near.name,
        far.name,
        near.km,
        far.km,
        compared.in_words(Verdict::Worse, "it", far.name),
        sureness(&[*compared]),
        millis(quickest),
    );
    Finding::new(FindingKind::StandsOut, "position", text)
        .about(near.name)
        .about(far.name)
        .with("shift_ms", compared.shift)
        .with("nearer_km", near.km)
        .with("farther_km", far.km)
        .with("path_km", path)
}
