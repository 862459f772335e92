//! Differences between the levels of a factor, with everything else the same: between endpoints,
//! and between the values of a parameter that the plan varies.

use neph_model::Scenario;
use neph_stats::Verdict;

use super::certainty::certainty_text_of;
use super::compare::{
    Comparison, DecidedComparison, Decisions, Family, Medians, MinEffect, compare, format_millis,
    infinity_reason,
};
use super::{Finding, FindingKind};
use crate::circuits;
use crate::data::{Factor, factors};
use crate::text::{plural, to_f64};
use crate::view::groups;
use crate::{CampaignData, PlotSettings};

/// The smallest difference of medians that matters, as a share of the baseline's.
pub const MIN_SHARE: f64 = 0.05;

/// The smallest difference of levels that matters. Waking up a thread takes up to 0.02 ms.
pub(crate) const MIN_EFFECT: MinEffect = MinEffect {
    share: MIN_SHARE,
    millis: 0.02,
};

/// The topic of sentences about endpoints.
const ENDPOINT: &str = "endpoint";

/// Scenarios that differ in their level of one factor only.
pub(crate) struct LevelGroup {
    /// What they have in common.
    pub title: String,
    /// Each level with its medians, in the plan's order.
    pub(crate) levels: Vec<(String, Medians)>,
}

impl LevelGroup {
    pub(crate) fn medians_of(&self, level: &str) -> Option<&Medians> {
        let mut levels = self.levels.iter();
        levels
            .find(|(name, _)| *name == level)
            .map(|(_, medians)| medians)
    }
}

/// The groups of scenarios that differ in their level of a factor only.
pub(crate) fn level_groups(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
) -> Vec<LevelGroup> {
    level_groups_with(data, settings, factor, |index| {
        Medians::of(data, settings, index)
    })
}

/// As [`level_groups`], with other medians of each scenario.
pub(crate) fn level_groups_with(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
    medians: impl Fn(usize) -> Medians,
) -> Vec<LevelGroup> {
    groups(&data.scenarios, &data.measured(settings), factor)
        .into_iter()
        .map(|group| LevelGroup {
            title: group.title,
            levels: group
                .members
                .into_iter()
                .map(|(index, level)| (level, medians(index)))
                .collect(),
        })
        .collect()
}

/// A level against the baseline of its factor, in everything that both were measured in.
#[derive(Debug)]
pub(crate) struct Level {
    topic: &'static str,
    pub name: String,
    pub(crate) baseline: String,
    /// What was the same, and how they compare there.
    pub(crate) pairs: Vec<(String, Comparison)>,
}

/// Every endpoint, and every value of a parameter, against the baseline.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<Level> {
    let indices = data.measured(settings);
    let scenarios: Vec<&Scenario> = indices
        .iter()
        .map(|index| &data.scenarios[*index])
        .collect();
    factors(&scenarios)
        .iter()
        // Circuits are compared over networks, one by one.
        .filter(|factor| !(factor.is_place() && circuits::are_named(&data.scenarios)))
        .filter_map(|factor| Some((factor, topic(factor)?)))
        .flat_map(|(factor, topic)| compare_levels(data, settings, factor, topic, family))
        .collect()
}

/// One sentence for each.
pub(crate) fn findings(levels: &[Level], decisions: &Decisions) -> Vec<Finding> {
    let findings = levels.iter().filter_map(|level| level.sentence(decisions));
    findings.collect()
}

/// Whether sentences compare the levels of this factor with a baseline.
pub(crate) const fn is_compared(factor: &Factor) -> bool {
    topic(factor).is_some()
}

/// Intervals have their own findings; that a larger message takes longer is not reported.
const fn topic(factor: &Factor) -> Option<&'static str> {
    match factor {
        Factor::Endpoint => Some(ENDPOINT),
        Factor::Parameter(_) => Some("parameter"),
        Factor::Interval | Factor::Size => None,
    }
}

fn compare_levels(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
    topic: &'static str,
    family: &mut Family,
) -> Vec<Level> {
    let groups = level_groups(data, settings, factor);
    let levels = baseline_first(data, &data.measured(settings), settings, factor);
    let Some((baseline, others)) = levels.split_first() else {
        return Vec::new();
    };
    let mut compared_levels = Vec::new();
    for name in others {
        let mut pairs = Vec::new();
        for group in &groups {
            let both_medians = group.medians_of(name).zip(group.medians_of(baseline));
            let compared = both_medians.and_then(|(median, baseline_median)| {
                compare(family, median, baseline_median, MIN_EFFECT)
            });
            pairs.extend(compared.map(|compared| (group.title.clone(), compared)));
        }
        pairs.sort_by(|(_, a), (_, b)| a.shift.total_cmp(&b.shift));
        compared_levels.push(Level {
            topic,
            name: name.clone(),
            baseline: baseline.clone(),
            pairs,
        });
    }
    compared_levels
}

/// The levels of a factor as the plan lists them, the baseline first: the one that the settings name,
/// or the plan's first. Which one that is must not depend on what was measured: the fastest one of
/// equals looks faster than it is.
pub(crate) fn baseline_first(
    data: &CampaignData,
    shown: &[usize],
    settings: &PlotSettings,
    factor: &Factor,
) -> Vec<String> {
    let mut levels: Vec<String> = Vec::new();
    for index in shown {
        let level = factor.level(&data.scenarios[*index]);
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let baseline = settings.baseline.as_ref();
    if let Some(index) = baseline.and_then(|name| levels.iter().position(|level| level == name)) {
        levels[..=index].rotate_right(1);
    }
    levels
}

impl Level {
    pub(crate) fn is_endpoint(&self) -> bool {
        self.topic == ENDPOINT
    }

    fn sentence(&self, decisions: &Decisions) -> Option<Finding> {
        let Self {
            topic,
            name,
            baseline,
            pairs,
        } = self;
        let (smallest, largest) = (pairs.first()?, pairs.last()?);
        let decided = decisions.for_comparisons(pairs.iter().map(|(_, compared)| *compared));
        let result_text = if let [only] = decided.as_slice() {
            format!("{} at the median", only.to_text(name, baseline))
        } else {
            combinations_text(name, baseline, &decided, pairs)
        };
        let text = format!(
            "{result_text}; {}.{}",
            certainty_text_of(&decided),
            infinity_reason(&decided)
        );
        let share = |compared: &Comparison| compared.shift / compared.baseline;
        let finding = Finding::new(FindingKind::Notable, topic, text)
            .about(name)
            .about(baseline)
            .with("shift_least_ms", smallest.1.shift)
            .with("share_most", share(&largest.1))
            .with("shift_most_ms", largest.1.shift)
            .with("combinations", to_f64(pairs.len()))
            .with("slower", to_f64(count(&decided, Verdict::Worse)))
            .with("faster", to_f64(count(&decided, Verdict::Better)))
            .with("blocks", to_f64(smallest.1.blocks));
        Some(finding)
    }
}

/// `a is slower than b in 3 of 4 combinations, undecided in 1: its median is higher by 1.00 ms (x) to 2.00 ms
/// (y)`; without a verdict `The median of a is higher than that of b by 1.00 ms (x) to 2.00 ms (y), over 4
/// combinations`.
fn combinations_text(
    name: &str,
    baseline: &str,
    decided: &[DecidedComparison],
    pairs: &[(String, Comparison)],
) -> String {
    let count_of = |verdict: Verdict| count(decided, verdict);
    let combinations = plural(decided.len(), "combination");
    let mut parts: Vec<String> = [
        (count_of(Verdict::Worse), format!("slower than {baseline}")),
        (count_of(Verdict::Better), format!("faster than {baseline}")),
        (
            count_of(Verdict::Equivalent),
            format!("as fast as {baseline}"),
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, verdict_text)| format!("{verdict_text} in {count} of {combinations}"))
    .collect();
    if parts.is_empty() {
        let range = range_text(pairs, &format!(" than that of {baseline}"));
        return format!("The median of {name} is {range}, over {combinations}");
    }
    match count_of(Verdict::Inconclusive) {
        0 => {}
        undecided => parts.push(format!("undecided in {undecided}")),
    }
    let parts = parts.join(", ");
    format!("{name} is {parts}: its median is {}", range_text(pairs, ""))
}

/// `higher by 1.00 ms (x) to 2.00 ms (y)`: the smallest and the largest shift of pairs in ascending order, each
/// with its combination. `than` follows the first word.
fn range_text(pairs: &[(String, Comparison)], than: &str) -> String {
    let (Some(lowest), Some(highest)) = (pairs.first(), pairs.last()) else {
        return String::new();
    };
    let (low, high) = (lowest.1.shift, highest.1.shift);
    let (at_low, at_high) = (&lowest.0, &highest.0);
    let size = |shift: f64| format_millis(shift.abs());
    if low >= 0.0 {
        format!(
            "higher{than} by {} ({at_low}) to {} ({at_high})",
            size(low),
            size(high)
        )
    } else if high <= 0.0 {
        format!(
            "lower{than} by {} ({at_high}) to {} ({at_low})",
            size(high),
            size(low)
        )
    } else {
        format!(
            "from {} lower ({at_low}) to {} higher ({at_high}){than}",
            size(low),
            size(high)
        )
    }
}

fn count(decided: &[DecidedComparison], verdict: Verdict) -> usize {
    let has_verdict = |comparison: &&DecidedComparison| comparison.verdict() == verdict;
    decided.iter().filter(has_verdict).count()
}
