//! Endpoints of which now one is the faster one and now the other: depending on where one measures
//! from, on the size, or on whatever else the plan varies.
//!
//! It rests on the comparisons with the baseline, and adds none to the family.

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
    let decided = decisions.all(level.pairs.iter().map(|(_, compared)| *compared));
    // Of several places the one where it matters most.
    let largest = |wanted: Verdict| {
        let pairs = level.pairs.iter().zip(&decided);
        let fitting = pairs.filter(|(_, comparison)| comparison.verdict() == wanted);
        let size = |comparison: &DecidedComparison| comparison.comparison.shift.abs();
        let largest = fitting.max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)));
        largest.map(|((title, _), comparison)| (title, *comparison))
    };
    let (slower, faster) = (largest(Verdict::Worse)?, largest(Verdict::Better)?);
    let (name, baseline) = (&level.name, &level.baseline);
    let text = format!(
        "Whether {name} or {baseline} is faster depends on the other parameters: {} ({}), and {} ({}); {}.",
        slower.1.to_text(name, baseline),
        slower.0,
        // Turned, so that both sentences are about what is slower.
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
