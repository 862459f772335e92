//! Whether the network carries what the scenarios ask of it.

use neph_model::{BitRate, Scenario};

use super::compare::median;
use super::{Finding, FindingKind};
use crate::axis::percent;
use crate::{CampaignData, PlotSettings};

/// From this share of the measured throughput on, messages queue behind each other.
const NEARLY_FULL: f64 = 0.8;

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut endpoints: Vec<&str> = Vec::new();
    for check in &data.throughputs {
        if !endpoints.contains(&check.endpoint.as_str()) {
            endpoints.push(&check.endpoint);
        }
    }
    let shown = data.measured(settings);
    let mut loads: Vec<(&Scenario, f64, f64)> = endpoints
        .into_iter()
        .filter_map(|endpoint| {
            let goodput = goodput(data, settings, endpoint)?;
            let scenarios = shown.iter().map(|index| &data.scenarios[*index]);
            let (scenario, needed) = scenarios
                .filter(|scenario| scenario.endpoint == endpoint)
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
    if crowded.is_empty() {
        return loads
            .first()
            .map(|load| sentence("asks most of its link, with", "of", load, ""))
            .into_iter()
            .collect();
    }
    crowded
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

/// The median of an endpoint's checks, in bits per second.
#[expect(clippy::cast_precision_loss, reason = "bits per second")]
fn goodput(data: &CampaignData, settings: &PlotSettings, endpoint: &str) -> Option<f64> {
    let mut rates: Vec<f64> = data
        .throughputs
        .iter()
        .filter(|check| check.endpoint == endpoint && check.failure.is_none())
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
