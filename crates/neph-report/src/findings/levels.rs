//! Differences between the levels of a factor, with everything else the same: between endpoints,
//! and between the values of a parameter that the plan varies.

use std::collections::BTreeMap;

use neph_model::Scenario;
use neph_stats::{Level, Verdict};

use super::compare::{
    Comparison, LeastEffect, Medians, any_differs, compare, medians, sureness, told, verdicts,
    why_infinite,
};
use super::{Finding, FindingKind, plural, real};
use crate::data::{Factor, factors};
use crate::figure::{Latencies, groups};
use crate::{CampaignData, PlotSettings};

/// Levels differ if by 5 % of the faster one, and by more than the waking of a thread.
pub(super) const MATTERS: LeastEffect = LeastEffect {
    share: 0.05,
    millis: 0.02,
};

/// Scenarios that differ in their level of one factor only.
pub(super) struct Compared {
    /// What they have in common.
    pub(super) title: String,
    /// Each level with its medians, in the plan's order.
    pub(super) levels: Vec<(String, Medians)>,
}

impl Compared {
    pub(super) fn of(&self, level: &str) -> Option<&Medians> {
        let mut all = self.levels.iter();
        all.find(|(name, _)| *name == level)
            .map(|(_, medians)| medians)
    }
}

/// The groups of scenarios that differ in their level of a factor only.
pub(super) fn compared(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
) -> Vec<Compared> {
    compared_by(data, settings, factor, |index| {
        medians(data, settings, index)
    })
}

/// As [`compared`], by other medians of each scenario.
pub(super) fn compared_by(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
    medians: impl Fn(usize) -> Medians,
) -> Vec<Compared> {
    groups(&data.scenarios, &data.measured(settings), factor)
        .into_iter()
        .map(|group| Compared {
            title: group.title,
            levels: group
                .members
                .into_iter()
                .map(|(index, level)| (level, medians(index)))
                .collect(),
        })
        .collect()
}

/// One sentence for each endpoint, and for each value of a parameter, against the fastest one.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let shown = data.measured(settings);
    let scenarios: Vec<&Scenario> = shown.iter().map(|index| &data.scenarios[*index]).collect();
    factors(&scenarios)
        .iter()
        .filter_map(|factor| Some((factor, topic(factor)?)))
        .flat_map(|(factor, topic)| of_factor(data, settings, factor, topic))
        .collect()
}

/// Intervals have findings of their own; that a larger message takes longer is none.
const fn topic(factor: &Factor) -> Option<&'static str> {
    match factor {
        Factor::Endpoint => Some("endpoint"),
        Factor::Parameter(_) => Some("parameter"),
        Factor::Interval | Factor::Size => None,
    }
}

fn of_factor(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
    topic: &'static str,
) -> Vec<Finding> {
    let groups = compared(data, settings, factor);
    let differ: Vec<Option<f64>> = groups
        .iter()
        .map(|group| any_differs(group.levels.iter().map(|(_, medians)| medians)))
        .collect();
    let levels = fastest_first(data, settings, factor);
    let Some((fastest, others)) = levels.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .filter_map(|name| {
            let pairs: Vec<(String, Comparison)> = groups
                .iter()
                .zip(&differ)
                .filter_map(|(group, differ)| {
                    let compared = compare(group.of(name)?, group.of(fastest)?, MATTERS)?;
                    Some((group.title.clone(), compared.following(*differ)))
                })
                .collect();
            sentence(topic, (name, fastest), pairs)
        })
        .collect()
}

/// The levels of a factor: first the one whose least scenario median is the smallest, then the
/// others as the plan lists them. Nothing if no scenario has a median.
fn fastest_first(data: &CampaignData, settings: &PlotSettings, factor: &Factor) -> Vec<String> {
    let mut least: BTreeMap<String, f64> = BTreeMap::new();
    let mut levels: Vec<String> = Vec::new();
    for index in data.measured(settings) {
        let level = factor.level(&data.scenarios[index]);
        if !levels.contains(&level) {
            levels.push(level.clone());
        }
        let latencies = Latencies::of(data.main_flows(index, settings), settings.basis);
        if let Some(Level::At(median)) = latencies.median() {
            let known = least.entry(level).or_insert(median);
            *known = known.min(median);
        }
    }
    let by_median = |a: &&String, b: &&String| least[*a].total_cmp(&least[*b]);
    let answered = levels.iter().filter(|level| least.contains_key(*level));
    let Some(fastest) = answered.min_by(by_median).cloned() else {
        return Vec::new();
    };
    levels.retain(|level| *level != fastest);
    levels.insert(0, fastest);
    levels
}

fn sentence(
    topic: &'static str,
    (name, fastest): (&str, &str),
    mut pairs: Vec<(String, Comparison)>,
) -> Option<Finding> {
    pairs.sort_by(|(_, a), (_, b)| a.shift.total_cmp(&b.shift));
    let comparisons: Vec<Comparison> = pairs.iter().map(|(_, c)| *c).collect();
    let verdicts = verdicts(&comparisons);
    let (least, most) = (pairs.first()?, pairs.last()?);
    let how = if let [only] = comparisons.as_slice() {
        format!(
            "{} at the median",
            only.in_words(verdicts[0], name, fastest)
        )
    } else {
        format!(
            "{} goes from {} ({}) to {} ({}) over {}",
            counted(name, fastest, &verdicts),
            told(least.1.shift),
            least.0,
            told(most.1.shift),
            most.0,
            plural(pairs.len(), "combination"),
        )
    };
    let text = format!(
        "{how}; {}.{}",
        sureness(&comparisons),
        why_infinite(&comparisons)
    );
    let slower = count(&verdicts, Verdict::Worse);
    let share = |compared: &Comparison| compared.shift / compared.baseline;
    let finding = Finding::new(FindingKind::StandsOut, topic, text)
        .about(name)
        .about(fastest)
        .with("shift_least_ms", least.1.shift)
        .with("share_most", share(&most.1))
        .with("shift_most_ms", most.1.shift)
        .with("combinations", real(pairs.len()))
        .with("slower", real(slower))
        .with("blocks", real(least.1.blocks));
    Some(finding)
}

/// `a is slower than b in 3 of 4 combinations, undecided in 1: the median shift`; without a verdict
/// `The median shift from b to a`.
fn counted(name: &str, fastest: &str, verdicts: &[Verdict]) -> String {
    let of = |verdict: Verdict| count(verdicts, verdict);
    let all = plural(verdicts.len(), "combination");
    let mut parts: Vec<String> = [
        (of(Verdict::Worse), format!("slower than {fastest}")),
        (of(Verdict::Better), format!("faster than {fastest}")),
        (of(Verdict::Equivalent), format!("as fast as {fastest}")),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, how)| format!("{how} in {count} of {all}"))
    .collect();
    if parts.is_empty() {
        return format!("The median shift from {fastest} to {name}");
    }
    match of(Verdict::Inconclusive) {
        0 => {}
        open => parts.push(format!("undecided in {open}")),
    }
    format!("{name} is {}: the median shift", parts.join(", "))
}

fn count(verdicts: &[Verdict], wanted: Verdict) -> usize {
    verdicts
        .iter()
        .filter(|verdict| **verdict == wanted)
        .count()
}
