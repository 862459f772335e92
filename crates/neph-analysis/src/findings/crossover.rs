//! Endpoints of which now one is the faster one and now the other: depending on where one measures
//! from, on the size, or on whatever else the plan varies.
//!
//! It rests on the comparisons with the baseline, and adds none to the family.

use neph_stats::Verdict;

use super::compare::{Decided, Judged, sureness};
use super::levels::Level;
use super::{Finding, FindingKind};

/// A sentence for each endpoint that is somewhere slower than the baseline and somewhere faster.
pub(crate) fn findings(levels: &[Level], judged: &Judged) -> Vec<Finding> {
    let endpoints = levels.iter().filter(|level| level.is_endpoint());
    endpoints
        .filter_map(|level| sentence(level, judged))
        .collect()
}

fn sentence(level: &Level, judged: &Judged) -> Option<Finding> {
    let decided = judged.all(level.pairs.iter().map(|(_, compared)| *compared));
    // Of several places the one where it matters most.
    let most = |wanted: Verdict| {
        let all = level.pairs.iter().zip(&decided);
        let fitting = all.filter(|(_, one)| one.verdict() == wanted);
        let size = |one: &Decided| one.comparison.shift.abs();
        let most = fitting.max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)));
        most.map(|((title, _), one)| (title, *one))
    };
    let (slower, faster) = (most(Verdict::Worse)?, most(Verdict::Better)?);
    let (name, other) = (&level.name, &level.baseline);
    let text = format!(
        "Whether {name} or {other} is faster depends on the other parameters: {} ({}), and {} ({}); {}.",
        slower.1.in_words(name, other),
        slower.0,
        // Turned, so that both sentences are about what is slower.
        faster.1.turned().in_words(other, name),
        faster.0,
        sureness(&decided),
    );
    let finding = Finding::new(FindingKind::Notable, "crossover", text)
        .about(name)
        .about(other)
        .with("first_slower_ms", slower.1.comparison.shift)
        .with("second_slower_ms", -faster.1.comparison.shift);
    Some(finding)
}
