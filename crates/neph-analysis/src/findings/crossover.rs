//! Endpoints that are faster than the baseline in some scenarios and slower in others, depending on the site,
//! the size or another parameter of the plan.
//!
//! Uses the comparisons with the baseline, and adds none to the family.

use neph_stats::Verdict;

use super::certainty::certainty_text_of;
use super::compare::{DecidedComparison, Decisions};
use super::levels::Level;
use super::{Finding, FindingKind};

/// A sentence for each endpoint that is somewhere slower than the baseline and somewhere faster.
pub(crate) fn findings(levels: &[Level], decisions: &Decisions) -> Vec<Finding> {
    let endpoints = levels.iter().filter(|level| level.is_endpoint());
    endpoints
        .filter_map(|level| sentence(level, decisions))
        .collect()
}

fn sentence(level: &Level, decisions: &Decisions) -> Option<Finding> {
    let decided = decisions.for_comparisons(level.pairs.iter().map(|(_, compared)| *compared));
    // Of several scenarios the one with the largest difference.
    let largest_with = |wanted: Verdict| {
        let pairs = level.pairs.iter().zip(&decided);
        let fitting = pairs.filter(|(_, comparison)| comparison.verdict() == wanted);
        let size = |comparison: &DecidedComparison| comparison.comparison.shift.abs();
        let largest = fitting.max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)));
        largest.map(|((title, _), comparison)| (title, *comparison))
    };
    let (slower, faster) = (
        largest_with(Verdict::Worse)?,
        largest_with(Verdict::Better)?,
    );
    let (name, baseline) = (&level.name, &level.baseline);
    let text = format!(
        "Whether {name} or {baseline} is faster depends on the other parameters: {} ({}), and {} ({}); {}.",
        slower.1.to_text(name, baseline),
        slower.0,
        // Swapped, so that both parts name the slower one first.
        faster.1.swapped().to_text(baseline, name),
        faster.0,
        certainty_text_of(&decided),
    );
    let finding = Finding::new(FindingKind::Notable, "crossover", text)
        .about(name)
        .about(baseline)
        .with("first_slower_ms", slower.1.comparison.shift)
        .with("second_slower_ms", -faster.1.comparison.shift);
    Some(finding)
}
