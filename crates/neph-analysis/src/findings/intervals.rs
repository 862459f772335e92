//! The effect of the interval, with equal size and endpoint. A connection that is idle between messages
//! resets its congestion window (RFC 2861, RFC 5681 section 4.1), which costs round trips.

use neph_stats::Verdict;

use super::certainty::certainty_text_of;
use super::compare::{
    Comparison, DecidedComparison, Decisions, Family, Medians, MinEffect, compare, format_millis,
    infinity_reason, median,
};
use super::{Finding, FindingKind};
use crate::data::Factor;
use crate::text::plural;
use crate::view::groups;
use crate::{CampaignData, Diagnosis, PlotSettings};

/// The topic; a root cause may explain it.
const INTERVAL: &str = "interval";
/// Maximum number of sentences, strongest effects first; the others are counted.
const MAX_REPORTED: usize = 3;
/// The smallest difference that matters: 20 % of the shorter interval's median.
const MIN_EFFECT: MinEffect = MinEffect {
    share: 0.2,
    millis: 0.5,
};

/// The longest interval of a group against its shortest one.
#[derive(Debug)]
pub(crate) struct Effect {
    group: String,
    scenario: usize,
    baseline: usize,
    compared: Comparison,
}

/// Every endpoint and size that was measured at several intervals.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<Effect> {
    let mut effects: Vec<Effect> = Vec::new();
    for group in groups(&data.scenarios, &data.measured(settings), &Factor::Interval) {
        let [(baseline, _), .., (scenario, _)] = group.members.as_slice() else {
            continue;
        };
        let [candidate_medians, baseline_medians] =
            [scenario, baseline].map(|index| Medians::of(data, settings, *index));
        let compared = compare(family, &candidate_medians, &baseline_medians, MIN_EFFECT);
        effects.extend(compared.map(|compared| Effect {
            group: group.title,
            scenario: *scenario,
            baseline: *baseline,
            compared,
        }));
    }
    effects
}

pub(crate) fn findings(
    data: &CampaignData,
    settings: &PlotSettings,
    causes: &[Diagnosis],
    effects: &[Effect],
    decisions: &Decisions,
) -> Vec<Finding> {
    let (mut large, small): (Vec<&Effect>, Vec<&Effect>) = effects
        .iter()
        .partition(|effect| effect.compared.shift.abs() >= effect.compared.margin);
    if large.is_empty() {
        let small = small.iter().map(|effect| effect.compared);
        return no_effect(&decisions.for_comparisons(small))
            .into_iter()
            .collect();
    }
    large.sort_by(|a, b| b.compared.shift.abs().total_cmp(&a.compared.shift.abs()));
    let mut findings: Vec<Finding> = large
        .iter()
        .take(MAX_REPORTED)
        .map(|effect| {
            sentence(
                data,
                settings,
                causes,
                effect,
                decisions.for_comparison(effect.compared),
            )
        })
        .collect();
    let unreported = large.len().saturating_sub(MAX_REPORTED);
    if unreported > 0 {
        let text = format!(
            "The interval between messages also changes the median by 20 % or more in {}.",
            plural(unreported, "other combination")
        );
        findings.push(Finding::new(FindingKind::Notable, INTERVAL, text));
    }
    findings
}

/// States that no difference was found, and how many comparisons prove that there is none.
fn no_effect(small: &[DecidedComparison]) -> Option<Finding> {
    let is_equivalent =
        |comparison: &&DecidedComparison| comparison.verdict() == Verdict::Equivalent;
    let equal_count = small.iter().filter(is_equivalent).count();
    let compared = plural(small.len(), "comparison");
    let text = match (equal_count, small.len()) {
        (_, 0) => return None,
        (equal_count, total) if equal_count == total => format!(
            "The interval between messages changes no median by 20 % or more at the same endpoint and size ({compared})."
        ),
        (equal_count, _) => format!(
            "The interval between messages changes no median by 20 % or more at the same endpoint and size; {equal_count} of {compared} are significant."
        ),
    };
    Some(Finding::new(FindingKind::Notable, INTERVAL, text))
}

fn sentence(
    data: &CampaignData,
    settings: &PlotSettings,
    causes: &[Diagnosis],
    effect: &Effect,
    decided: DecidedComparison,
) -> Finding {
    let name = |scenario: usize| data.scenarios[scenario].interval.exact();
    let (long, short) = (name(effect.scenario), name(effect.baseline));
    let compared = effect.compared;
    let result_text = decided.to_text(
        &format!("a message every {long}"),
        &format!("one every {short}"),
    );
    let windows = median_window(data, settings, effect.scenario).zip(median_window(
        data,
        settings,
        effect.baseline,
    ));
    let reason = windows.map_or_else(String::new, |windows| {
        cause_text(data, settings, causes, effect, windows).unwrap_or_default()
    });
    let text = format!(
        "{}: {result_text} (whose median is {}); {}.{reason}{}",
        effect.group,
        format_millis(compared.baseline),
        certainty_text_of(&[decided]),
        infinity_reason(&[decided]),
    );
    let mut finding = Finding::new(FindingKind::Notable, INTERVAL, text)
        .about(&long)
        .about(&short)
        .with("shift_ms", compared.shift)
        .with("baseline_ms", compared.baseline)
        .with("p", decided.p());
    if let Some((idle, busy)) = windows {
        finding = finding
            .with("cwnd_segments", idle)
            .with("cwnd_baseline_segments", busy);
    }
    finding
}

/// Why the longer interval is slower, if the windows show it.
fn cause_text(
    data: &CampaignData,
    settings: &PlotSettings,
    causes: &[Diagnosis],
    effect: &Effect,
    (idle, busy): (f64, f64),
) -> Option<String> {
    if idle * 2.0 > busy || effect.compared.shift <= 0.0 {
        return None;
    }
    let interval_text = |scenario: usize| data.scenarios[scenario].interval.exact();
    let windows = format!(
        " The median congestion window is {idle:.0} segments at {} and {busy:.0} at {}: ",
        interval_text(effect.scenario),
        interval_text(effect.baseline),
    );
    match Growth::of(data, settings, effect.scenario) {
        Growth::First => Some(format!(
            "{windows}TCP was still in the slow start of a new connection. Measure for longer."
        )),
        // A root cause covers a window that grows after a reset, but not the first growth.
        Growth::AfterReset if is_explained(causes, effect.scenario) => None,
        Growth::AfterReset if resets_window_when_idle(data, settings, effect.scenario) => {
            Some(format!(
                "{windows}TCP repeats slow start after an idle period, so {} need several round trips.",
                data.scenarios[effect.scenario].request_size.exact()
            ))
        }
        Growth::AfterReset => None,
    }
}

fn is_explained(causes: &[Diagnosis], scenario: usize) -> bool {
    let mut causes = causes.iter();
    causes.any(|cause| cause.explains(INTERVAL, scenario).is_some())
}

/// Whether the sending hosts reset the window while idle; unknown hosts count as the Linux default: yes.
fn resets_window_when_idle(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> bool {
    let setting = "net.ipv4.tcp_slow_start_after_idle";
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| experiment.provenance.as_ref()?.host.sysctls.get(setting))
        .all(|value| value.trim() != "0")
}

/// How the congestion window developed from message to message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// For most messages it was larger than ever before in the connection.
    First,
    /// It returned to an earlier size.
    AfterReset,
}

impl Growth {
    /// Minimum ratio to every earlier window that shows first growth. After a reset the window ends slightly
    /// higher with each message, as the slow start threshold rises, but not by this factor.
    const MIN_GROWTH: f64 = 1.5;

    fn of(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Self {
        let (mut grown, mut total) = (0, 0);
        for flow in data.main_flows(scenario, settings) {
            let mut largest: Option<(u32, f64)> = None;
            for exchange in &flow.exchanges {
                let Some(window) = exchange.cwnd.map(f64::from) else {
                    continue;
                };
                let earlier = largest.filter(|(connection, _)| *connection == exchange.connection);
                // The first window of a connection has no predecessor.
                let earlier = earlier.map_or(0.0, |(_, window)| window);
                grown += usize::from(window > earlier * Self::MIN_GROWTH);
                total += 1;
                largest = Some((exchange.connection, earlier.max(window)));
            }
        }
        if 2 * grown > total {
            Self::First
        } else {
            Self::AfterReset
        }
    }
}

fn median_window(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Option<f64> {
    let mut windows: Vec<f64> = data
        .congestion_windows(scenario, settings)
        .map(f64::from)
        .collect();
    median(&mut windows)
}
