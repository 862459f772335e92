//! Endpoints of which now one is the faster one and now the other: depending on where one measures
//! from, on the size, or on whatever else the plan varies.

use neph_stats::Verdict;

use super::compare::{Comparison, any_differs, compare, sureness, verdicts};
use super::levels::{Compared, MATTERS, compared};
use super::{Finding, FindingKind};
use crate::data::Factor;
use crate::{CampaignData, PlotSettings};

/// One endpoint against another in everything that both were measured in.
struct Pair<'g> {
    names: [&'g str; 2],
    /// What was the same, and how they compare there.
    places: Vec<(&'g str, Comparison)>,
}

/// A sentence for each pair of endpoints of which each is somewhere slower than the other.
pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let groups = compared(data, settings, &Factor::Endpoint);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in groups.iter().flat_map(|group| &group.levels) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let pairs = names.iter().enumerate().flat_map(|(place, one)| {
        let later = names[place + 1..].iter();
        later.map(|other| [*one, *other])
    });
    pairs
        .filter_map(|names| sentence(&Pair::of(&groups, names)))
        .collect()
}

impl<'g> Pair<'g> {
    fn of(groups: &'g [Compared], names: [&'g str; 2]) -> Self {
        let places = groups.iter().filter_map(|group| {
            let differ = any_differs(group.levels.iter().map(|(_, medians)| medians));
            let compared = compare(group.of(names[0])?, group.of(names[1])?, MATTERS)?;
            Some((group.title.as_str(), compared.following(differ)))
        });
        Self {
            names,
            places: places.collect(),
        }
    }
}

fn sentence(pair: &Pair<'_>) -> Option<Finding> {
    let comparisons: Vec<Comparison> = pair.places.iter().map(|(_, c)| *c).collect();
    let verdicts = verdicts(&comparisons);
    // Of several places the one where it matters most.
    let most = |wanted: Verdict| {
        let judged = pair.places.iter().zip(&verdicts);
        let fitting = judged.filter(|(_, verdict)| **verdict == wanted);
        let places = fitting.map(|(place, _)| place);
        places.max_by(|(_, a), (_, b)| a.shift.abs().total_cmp(&b.shift.abs()))
    };
    let (slower, faster) = (most(Verdict::Worse)?, most(Verdict::Better)?);
    let [name, other] = pair.names;
    let text = format!(
        "Which of {name} and {other} answers sooner depends on the rest: {} ({}), and {} ({}); {}.",
        slower.1.in_words(Verdict::Worse, name, other),
        slower.0,
        // Turned, so that both are told as how much slower.
        faster.1.turned().in_words(Verdict::Worse, other, name),
        faster.0,
        sureness(&comparisons),
    );
    let finding = Finding::new(FindingKind::StandsOut, "crossover", text)
        .about(name)
        .about(other)
        .with("first_slower_ms", slower.1.shift)
        .with("second_slower_ms", -faster.1.shift);
    Some(finding)
}
