//! Whether the network carries what the scenarios ask of it.

use std::collections::BTreeMap;

use neph_model::{BitRate, Scenario, Throughput, cross_flows};

use super::compare::median;
use super::{Finding, FindingKind};
use crate::axis::percent;
use crate::{CampaignData, PlotSettings};

/// From this share of the measured throughput on, messages queue behind each other.
const NEARLY_FULL: f64 = 0.8;

/// An endpoint and the site that measures it.
type Pair<'a> = (&'a str, Option<&'a str>);

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut pairs: BTreeMap<Pair<'_>, Vec<&Scenario>> = BTreeMap::new();
    for index in data.measured(settings) {
        let scenario = &data.scenarios[index];
        let pair = (scenario.endpoint.as_str(), site_of(data, index));
        pairs.entry(pair).or_default().push(scenario);
    }
    let mut loads: Vec<(&Scenario, f64, f64)> = pairs
        .into_iter()
        .filter_map(|(pair, scenarios)| {
            let goodput = goodput(data, settings, pair)?;
            let (scenario, needed) = scenarios
                .into_iter()
                .map(|scenario| (scenario, needed(scenario)))
                .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
            Some((scenario, needed, goodput))
        })
        .collect();
    loads.sort_by(|a, b| (b.1 / b.2).total_cmp(&(a.1 / a.2)));
    let crowded: Vec<Finding> = loads
        .iter()
        .filter(|(_, needed, goodput)| *needed > NEARLY_FULL * goodput)
        .map(|load| {
            sentence(
                "needs",
                "of",
                load,
                " Its messages wait for each other: read its latency as that of a full link.",
            )
        })
        .collect();
    let shared = shared(data, settings);
    if crowded.is_empty() {
        let most = loads.first();
        let most = most.map(|load| sentence("asks most of its link, with", "of", load, ""));
        return most.into_iter().chain(shared).collect();
    }
    crowded.into_iter().chain(shared).collect()
}

/// Of each pair, the check that found the least, where that is as if others shared the link of which
/// the best one found the capacity.
fn shared(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut pairs: BTreeMap<Pair<'_>, Vec<&Throughput>> = BTreeMap::new();
    let shown = data.throughputs.iter();
    for check in shown.filter(|check| check.failure.is_none() && settings.shows_block(check.block))
    {
        let pair = (check.endpoint.as_str(), check.site.as_deref());
        pairs.entry(pair).or_default().push(check);
    }
    pairs.values().filter_map(|checks| least(checks)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "bits per second")]
fn least(checks: &[&Throughput]) -> Option<Finding> {
    let best = checks.iter().map(|check| check.goodput).max()?;
    let least = checks.iter().min_by_key(|check| check.goodput)?;
    let others = cross_flows(best, least.goodput).filter(|others| *others > 0)?;
    let [own, capacity] = [least.goodput, best].map(|rate| rate.bits_per_second() as f64);
    let text = format!(
        "In block {}, the throughput check of {} found {} of the {} that another one found: as if \
         {others} other bulk flow{} had shared the link.",
        least.block + 1,
        least.endpoint,
        rate(own),
        rate(capacity),
        if others == 1 { "" } else { "s" },
    );
    Some(
        Finding::new(FindingKind::StandsOut, "throughput", text)
            .with("goodput_bit_s", own)
            .with("capacity_bit_s", capacity)
            .with("cross_flows", others as f64),
    )
}

fn sentence(verb: &str, of: &str, load: &(&Scenario, f64, f64), why: &str) -> Finding {
    let (scenario, needed, goodput) = load;
    let text = format!(
        "{} {verb} {} {of} the {} that the throughput checks found ({}).{why}",
        scenario.label(),
        rate(*needed),
        rate(*goodput),
        percent(needed / goodput),
    );
    Finding::new(FindingKind::StandsOut, "throughput", text)
        .with("needed_bit_s", *needed)
        .with("goodput_bit_s", *goodput)
}

/// Request payload bits per second.
#[expect(clippy::cast_precision_loss, reason = "bytes of one message")]
fn needed(scenario: &Scenario) -> f64 {
    let seconds = scenario.interval.secs_f64().max(1e-9);
    scenario.request_size.bytes() as f64 * 8.0 / seconds
}

/// The site that a scenario's experiments ran in.
fn site_of(data: &CampaignData, scenario: usize) -> Option<&str> {
    let experiments = data.experiments.iter();
    let mut own = experiments.filter(|one| one.scenario == scenario);
    own.find_map(|one| one.provenance.as_ref()?.site.as_deref())
}

/// The median of a pair's checks, in bits per second. A check that tells no site is of the host as
/// it is, or of an older version that measured from one site only.
#[expect(clippy::cast_precision_loss, reason = "bits per second")]
fn goodput(
    data: &CampaignData,
    settings: &PlotSettings,
    (endpoint, site): Pair<'_>,
) -> Option<f64> {
    let mut rates: Vec<f64> = data
        .throughputs
        .iter()
        .filter(|check| check.endpoint == endpoint && check.failure.is_none())
        .filter(|check| check.site.is_none() || check.site.as_deref() == site)
        .filter(|check| settings.shows_block(check.block))
        .map(|check| check.goodput.bits_per_second() as f64)
        .collect();
    median(&mut rates).filter(|rate| *rate > 0.0)
}

/// To three significant digits, as the model prints rates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive and far below 2^64"
)]
fn rate(bits: f64) -> String {
    let unit = 10_f64.powf((bits.max(1.0).log10() - 2.0).floor());
    BitRate(((bits / unit).round() * unit) as u64).to_string()
}
