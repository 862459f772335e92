//! Differences between endpoints, with everything else the same.

use neph_stats::{Level, Verdict};

use super::compare::{
    Comparison, LeastEffect, Medians, any_differs, compare, medians, sureness, told, verdicts,
    why_infinite,
};
use super::{Finding, FindingKind, plural, real};
use crate::data::Factor;
use crate::figure::{Latencies, groups};
use crate::{CampaignData, PlotSettings};

/// Endpoints differ if by 5 % of the faster one, and by more than the waking of a thread.
const MATTERS: LeastEffect = LeastEffect {
    share: 0.05,
    millis: 0.02,
};

/// Scenarios that differ in their endpoint only.
struct Compared<'d> {
    title: String,
    endpoints: Vec<(&'d str, Medians)>,
}

impl Compared<'_> {
    fn of(&self, endpoint: &str) -> Option<&Medians> {
        let mut all = self.endpoints.iter();
        all.find(|(name, _)| *name == endpoint)
            .map(|(_, medians)| medians)
    }
}

/// One sentence for each endpoint against the fastest one.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let shown = data.measured(settings);
    let groups: Vec<Compared<'_>> = groups(data, &shown, &Factor::Endpoint)
        .into_iter()
        .map(|group| {
            let of = |index: usize| {
                let name = data.scenarios[index].endpoint.as_str();
                (name, medians(data, settings, index))
            };
            Compared {
                title: group.title,
                endpoints: group.members.iter().map(|(index, _)| of(*index)).collect(),
            }
        })
        .collect();
    let differ: Vec<Option<f64>> = groups
        .iter()
        .map(|group| any_differs(group.endpoints.iter().map(|(_, medians)| medians)))
        .collect();
    let Some(fastest) = fastest(data, settings, &shown) else {
        return Vec::new();
    };
    let mut others: Vec<&str> = Vec::new();
    for index in &shown {
        let name = data.scenarios[*index].endpoint.as_str();
        if name != fastest && !others.contains(&name) {
            others.push(name);
        }
    }
    others
        .into_iter()
        .filter_map(|name| {
            let pairs: Vec<(String, Comparison)> = groups
                .iter()
                .zip(&differ)
                .filter_map(|(group, differ)| {
                    let compared = compare(group.of(name)?, group.of(&fastest)?, MATTERS)?;
                    Some((group.title.clone(), compared.following(*differ)))
                })
                .collect();
            sentence(name, &fastest, pairs)
        })
        .collect()
}

/// The endpoint whose least scenario median is the smallest; none if no scenario has a median.
fn fastest(data: &CampaignData, settings: &PlotSettings, shown: &[usize]) -> Option<String> {
    let medians = shown.iter().filter_map(|index| {
        let latencies = Latencies::of(data.main_flows(*index, settings), settings.basis);
        let Level::At(median) = latencies.median()? else {
            return None;
        };
        Some((median, &data.scenarios[*index].endpoint))
    });
    let least = medians.min_by(|(a, _), (b, _)| a.total_cmp(b));
    least.map(|(_, name)| name.clone())
}

fn sentence(name: &str, fastest: &str, mut pairs: Vec<(String, Comparison)>) -> Option<Finding> {
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
            "{} median shift from {fastest} to {name} goes from {} ({}) to {} ({}) over {}",
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
    let finding = Finding::new(FindingKind::StandsOut, "endpoint", text)
        .with("shift_least_ms", least.1.shift)
        .with("shift_most_ms", most.1.shift)
        .with("combinations", real(pairs.len()))
        .with("slower", real(slower))
        .with("blocks", real(least.1.blocks));
    Some(finding)
}

/// `a is slower than b in 3 of 4 combinations, undecided in 1: the`; `The` without a verdict.
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
        return "The".to_owned();
    }
    match of(Verdict::Inconclusive) {
        0 => {}
        open => parts.push(format!("undecided in {open}")),
    }
    format!("{name} is {}: the", parts.join(", "))
}

fn count(verdicts: &[Verdict], wanted: Verdict) -> usize {
    verdicts
        .iter()
        .filter(|verdict| **verdict == wanted)
        .count()
}
