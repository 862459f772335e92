//! Whether the network has the capacity that the scenarios need.

use std::collections::BTreeMap;

use neph_model::{BitRate, Scenario, Throughput, cross_flows};

use super::capacity::{Capacity, Traffic, ended_early};
use super::{Finding, FindingKind};
use crate::numbers::percent;
use crate::{CampaignData, PlotSettings};

/// From this share of the capacity on, the link is full: messages queue behind each other.
const FULL_SHARE: f64 = 0.8;

/// An endpoint and the site that measures it.
type Pair<'a> = (&'a str, Option<&'a str>);

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut pairs: BTreeMap<Pair<'_>, Vec<&Scenario>> = BTreeMap::new();
    for index in data.measured(settings) {
        let scenario = &data.scenarios[index];
        let pair = (scenario.endpoint.as_str(), site_of(data, index));
        pairs.entry(pair).or_default().push(scenario);
    }
    let mut loads: Vec<Load<'_>> = pairs
        .into_iter()
        .filter_map(|(pair, scenarios)| highest_load(data, settings, pair, &scenarios))
        .collect();
    loads.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let shared_links = shared_link_findings(data, settings);
    let full_links: Vec<Finding> = loads.iter().filter_map(Load::full_link_finding).collect();
    if full_links.is_empty() {
        // A lower limit of the capacity does not show the utilisation.
        let with_known_capacity = loads.iter().find(|load| load.is_capacity_known());
        let max = with_known_capacity
            .or_else(|| loads.first())
            .map(Load::largest_share_finding);
        return max.into_iter().chain(shared_links).collect();
    }
    full_links.into_iter().chain(shared_links).collect()
}

/// The scenario of a pair that needs the highest rate.
struct Load<'a> {
    scenario: &'a Scenario,
    /// Bits per second.
    needed: f64,
    capacity: Capacity,
}

fn highest_load<'a>(
    data: &CampaignData,
    settings: &PlotSettings,
    pair: Pair<'_>,
    scenarios: &[&'a Scenario],
) -> Option<Load<'a>> {
    let traffic = Traffic::between(data, settings, pair.0, pair.1);
    let capacity = Capacity::of(&checks(data, settings, pair), traffic)?;
    let loads = scenarios
        .iter()
        .map(|scenario| (*scenario, needed_rate(scenario)));
    let (scenario, needed) = loads.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    // A need above a lower limit of the capacity proves nothing.
    let is_reported = match capacity {
        Capacity::Measured(_) => true,
        Capacity::AtLeast(min) => needed < min,
    };
    is_reported.then_some(Load {
        scenario,
        needed,
        capacity,
    })
}

impl Load<'_> {
    const fn rate(&self) -> f64 {
        match self.capacity {
            Capacity::Measured(rate) | Capacity::AtLeast(rate) => rate,
        }
    }

    fn share(&self) -> f64 {
        self.needed / self.rate()
    }

    const fn is_capacity_known(&self) -> bool {
        matches!(self.capacity, Capacity::Measured(_))
    }

    fn full_link_finding(&self) -> Option<Finding> {
        let is_full = self.is_capacity_known() && self.share() > FULL_SHARE;
        is_full.then(|| {
            self.finding(&format!(
                "needs {}. Its messages wait for each other, so its latency is that of a full link.",
                self.link_text()
            ))
        })
    }

    fn largest_share_finding(&self) -> Finding {
        self.finding(&format!(
            "uses {}. No other scenario uses a larger share of its link.",
            self.link_text()
        ))
    }

    /// The need and the capacity, as text.
    fn link_text(&self) -> String {
        let (needed, total, share) = (rate(self.needed), rate(self.rate()), percent(self.share()));
        if self.is_capacity_known() {
            format!("{share} of its link: {needed} of the {total} that the throughput checks found")
        } else {
            format!("at most {share} of its link: {needed} of at least {total}")
        }
    }

    fn finding(&self, predicate: &str) -> Finding {
        let text = format!("'{}' {predicate}", self.scenario.label());
        Finding::new(FindingKind::Notable, "throughput", text)
            .with("needed_bit_s", self.needed)
            .with("goodput_bit_s", self.rate())
    }
}

/// For each pair, the check with the lowest result, if it suggests that other traffic shared the link.
fn shared_link_findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut pairs: BTreeMap<Pair<'_>, Vec<&Throughput>> = BTreeMap::new();
    for check in data.successful_checks(settings) {
        let pair = (check.endpoint.as_str(), check.site.as_deref());
        pairs.entry(pair).or_default().push(check);
    }
    let findings = pairs.into_iter().filter_map(|(pair, mut checks)| {
        // A check that never filled the link does not show its capacity.
        let traffic = Traffic::between(data, settings, pair.0, pair.1);
        checks.retain(|check| !ended_early(check, traffic));
        lowest_goodput(&checks)
    });
    findings.collect()
}

#[expect(clippy::cast_precision_loss, reason = "bits per second")]
fn lowest_goodput(checks: &[&Throughput]) -> Option<Finding> {
    let best = checks.iter().map(|check| check.goodput).max()?;
    let slowest = checks.iter().min_by_key(|check| check.goodput)?;
    let cross_flow_count =
        cross_flows(best, slowest.goodput).filter(|cross_flow_count| *cross_flow_count > 0)?;
    let [lowest, capacity] = [slowest.goodput, best].map(|rate| rate.bits_per_second() as f64);
    let text = format!(
        "In block {}, the throughput check of {} found {} of the {} that another one found: as if \
         {cross_flow_count} other bulk flow{} had shared the link.",
        slowest.block + 1,
        slowest.endpoint,
        rate(lowest),
        rate(capacity),
        if cross_flow_count == 1 { "" } else { "s" },
    );
    Some(
        Finding::new(FindingKind::Notable, "throughput", text)
            .with("goodput_bit_s", lowest)
            .with("capacity_bit_s", capacity)
            .with("cross_flows", cross_flow_count as f64),
    )
}

/// Request payload bits per second.
#[expect(clippy::cast_precision_loss, reason = "bytes of one message")]
fn needed_rate(scenario: &Scenario) -> f64 {
    let seconds = scenario.interval.secs_f64().max(1e-9);
    scenario.request_size.bytes() as f64 * 8.0 / seconds
}

/// The site of a scenario's experiments.
fn site_of(data: &CampaignData, scenario: usize) -> Option<&str> {
    let experiments = data.experiments.iter();
    let mut of_scenario = experiments.filter(|experiment| experiment.scenario == scenario);
    of_scenario.find_map(|experiment| experiment.provenance.as_ref()?.site.as_deref())
}

/// A pair's checks that have a result. A check without a site ran on the host itself, or in an older version
/// with a single site.
fn checks<'a>(
    data: &'a CampaignData,
    settings: &PlotSettings,
    (endpoint, site): Pair<'_>,
) -> Vec<&'a Throughput> {
    let pair_checks = data.successful_checks(settings).filter(|check| {
        check.endpoint == endpoint && (check.site.is_none() || check.site.as_deref() == site)
    });
    pair_checks.collect()
}

/// Rounds to three significant digits, as the model prints rates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive and far below 2^64"
)]
fn rate(bits: f64) -> String {
    let unit = 10_f64.powf((bits.max(1.0).log10() - 2.0).floor());
    BitRate(((bits / unit).round() * unit) as u64).to_string()
}
