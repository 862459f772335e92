//! The effect of the interval with size and endpoint the same: a connection that idles between
//! messages loses its congestion window (RFC 2861, RFC 5681 section 4.1) and pays round trips.

use super::compare::{Comparison, compare, median, sureness};
use super::{Finding, FindingKind, plural};
use crate::axis::millis;
use crate::data::{Factor, plain_span};
use crate::figure::groups;
use crate::{CampaignData, PlotSettings};

/// Sentences for the strongest effects; the others are counted.
const TOLD: usize = 3;
/// Share of the baseline from which an effect matters.
const MATTERS: f64 = 0.2;
/// And its least size in milliseconds.
const LEAST: f64 = 0.5;

/// A longer interval against the shortest one of its group.
struct Effect {
    group: String,
    scenario: usize,
    baseline: usize,
    compared: Comparison,
}

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let shown = data.measured(settings);
    let mut tried = 0;
    let mut effects: Vec<Effect> = Vec::new();
    for group in groups(data, &shown, &Factor::Interval) {
        let [(baseline, _), .., (scenario, _)] = group.members.as_slice() else {
            continue;
        };
        let Some(compared) = compare(data, settings, *scenario, *baseline) else {
            continue;
        };
        tried += 1;
        if compared.shift.abs() > MATTERS * compared.baseline && compared.shift.abs() > LEAST {
            let (scenario, baseline) = (*scenario, *baseline);
            effects.push(Effect {
                group: group.title,
                scenario,
                baseline,
                compared,
            });
        }
    }
    if tried == 0 {
        return Vec::new();
    }
    if effects.is_empty() {
        let text = format!(
            "The interval makes no difference of 20 % or more at the same endpoint and size ({}).",
            plural(tried, "comparison")
        );
        return vec![Finding::new(FindingKind::StandsOut, "interval", text)];
    }
    effects.sort_by(|a, b| b.compared.shift.abs().total_cmp(&a.compared.shift.abs()));
    let mut found: Vec<Finding> = effects
        .iter()
        .take(TOLD)
        .map(|effect| sentence(data, settings, effect))
        .collect();
    let more = effects.len().saturating_sub(TOLD);
    if more > 0 {
        let text = format!(
            "The interval also changes the median by 20 % or more in {}.",
            plural(more, "other combination")
        );
        found.push(Finding::new(FindingKind::StandsOut, "interval", text));
    }
    found
}

fn sentence(data: &CampaignData, settings: &PlotSettings, effect: &Effect) -> Finding {
    let name = |scenario: usize| plain_span(data.scenarios[scenario].interval);
    let (long, short) = (name(effect.scenario), name(effect.baseline));
    let direction = if effect.compared.shift > 0.0 {
        "slower"
    } else {
        "faster"
    };
    let mut size = effect.compared;
    if size.shift < 0.0 {
        size.shift = -size.shift;
        size.interval = size.interval.map(|i| neph_stats::Interval {
            low: -i.high,
            high: -i.low,
        });
    }
    let windows =
        window(data, settings, effect.scenario).zip(window(data, settings, effect.baseline));
    let why = match windows {
        Some((idle, busy)) if idle * 2.0 <= busy && effect.compared.shift > 0.0 => format!(
            " The median congestion window is {idle:.0} segments against {busy:.0}: TCP begins slowly again after idling, and {} need several round trips.",
            data.scenarios[effect.scenario].request_size
        ),
        _ => String::new(),
    };
    let text = format!(
        "{}: a message every {long} is {} {direction} than one every {short} (median {} there); {}.{why}",
        effect.group,
        size.shift_in_words(),
        millis(effect.compared.baseline),
        sureness(&[effect.compared]),
    );
    let mut finding = Finding::new(FindingKind::StandsOut, "interval", text)
        .with("shift_ms", effect.compared.shift)
        .with("baseline_ms", effect.compared.baseline)
        .with("p", effect.compared.p);
    if let Some((idle, busy)) = windows {
        finding = finding
            .with("cwnd_segments", idle)
            .with("cwnd_baseline_segments", busy);
    }
    finding
}

fn window(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Option<f64> {
    let mut windows: Vec<f64> = data
        .main_flows(scenario, settings)
        .flat_map(|flow| flow.exchanges.iter().filter_map(|exchange| exchange.cwnd))
        .map(f64::from)
        .collect();
    median(&mut windows)
}
