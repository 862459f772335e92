//! How uncertain a survival curve is whose lives end together: a reshuffle ends the stays of
//! hundreds of flows at once, and that is one event and not hundreds.
//!
//! Time is cut into blocks. What ended in a block, less what was to be expected of the stays that
//! went on in it, is one number a block; how these numbers vary tells how log S does (the robust
//! variance of the product-limit estimate, clustered by calendar time).

use std::collections::BTreeSet;

use neph_model::Span;
use neph_stats::SurvivalStep;

use crate::stay::Stay;

/// Blocks are doubled in length until there are no more than these.
const MOST_BLOCKS: usize = 400;
/// And until stays lie in no more of them, all together, or in two each; but not until there are
/// fewer than `LEAST_BLOCKS`.
const MOST_PARTS: usize = 1 << 20;
const LEAST_BLOCKS: usize = 8;

/// A curve's uncertainty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Uncertainty {
    /// Blocks of time that stays lie in.
    pub(crate) blocks: usize,
    /// Blocks in which a stay ended.
    pub(crate) ended_in: usize,
    /// The standard error of log S at each step that was asked for.
    pub(crate) errors: Vec<f64>,
}

/// At an age something happens in a block.
type Event = (f64, usize);

/// What happens in blocks, each by age.
#[derive(Debug, Default)]
struct Events {
    /// Stays end.
    ends: Vec<Event>,
    /// The part of a stay that lies in the block begins.
    begun: Vec<Event>,
    /// And it is over.
    over: Vec<Event>,
}

impl Events {
    fn sort(&mut self) {
        for events in [&mut self.ends, &mut self.begun, &mut self.over] {
            events.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        }
    }
}

/// What is known of a block while ages go by.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// What ended in it, by what it does to log S.
    ended: f64,
    /// Parts that go on at this age.
    running: f64,
    /// What was to be expected of its parts, less `running` times what it is at this age.
    expected: f64,
}

/// The uncertainty of the curve with these steps at each of them that is `asked`, by index.
pub(crate) fn uncertainty(
    stays: &[Stay],
    steps: &[SurvivalStep],
    bin: Span,
    asked: impl Fn(usize) -> bool,
) -> Uncertainty {
    let (width, blocks) = width(stays, bin);
    let first = stays.iter().map(|stay| stay.from.nanos() / width).min();
    let first = first.unwrap_or(0);
    let place = |at: i64| usize::try_from(at / width - first).unwrap_or(0);
    let mut events = Events::default();
    for stay in stays {
        let (from, until) = (stay.from.nanos(), (stay.from + stay.length).nanos());
        // What ends with a block ended in it.
        let last = place(until - 1).max(place(from));
        if stay.ended {
            events.ends.push((real(until - from), last));
        }
        for block in place(from)..=last {
            let begin = (i64::try_from(block).unwrap_or(0) + first) * width;
            let end = (begin + width).min(until);
            events.begun.push((real((begin - from).max(0)), block));
            events.over.push((real(end - from), block));
        }
    }
    let ended_in: BTreeSet<usize> = events.ends.iter().map(|(_, block)| *block).collect();
    events.sort();
    Uncertainty {
        blocks,
        ended_in: ended_in.len(),
        errors: walk(vec![Block::default(); blocks], &events, steps, asked),
    }
}

/// From age to age: what ended in each block, and what was to be expected.
fn walk(
    mut blocks: Vec<Block>,
    events: &Events,
    steps: &[SurvivalStep],
    asked: impl Fn(usize) -> bool,
) -> Vec<f64> {
    let mut ends = events.ends.iter().peekable();
    let mut begun = events.begun.iter().peekable();
    let mut over = events.over.iter().peekable();
    let (mut hazard, mut errors) = (0.0, Vec::new());
    let whole = real_count(blocks.len());
    for (index, step) in steps.iter().enumerate() {
        // Here `hazard` is as before this step: those that stop before it do not feel it.
        while let Some((_, block)) = begun.next_if(|(age, _)| *age < step.at) {
            let block = &mut blocks[*block];
            block.running += 1.0;
            block.expected -= hazard;
        }
        while let Some((_, block)) = over.next_if(|(age, _)| *age < step.at) {
            let block = &mut blocks[*block];
            block.running -= 1.0;
            block.expected += hazard;
        }
        // What one end more does to log S.
        let weight = 1.0 / real_count(step.at_risk - step.ended).max(1.0);
        hazard += real_count(step.ended) / real_count(step.at_risk) * weight;
        while let Some((_, block)) = ends.next_if(|(age, _)| *age <= step.at) {
            blocks[*block].ended += weight;
        }
        if asked(index) {
            let off = |block: &Block| block.ended - block.expected - block.running * hazard;
            let squares: f64 = blocks.iter().map(|block| off(block).powi(2)).sum();
            errors.push((squares * whole / (whole - 1.0).max(1.0)).sqrt());
        }
    }
    errors
}

/// How long blocks are, nanoseconds, and how many there are.
fn width(stays: &[Stay], bin: Span) -> (i64, usize) {
    let mut width = bin.nanos().max(1);
    let spread = |width: i64| {
        let first = stays.iter().map(|stay| stay.from.nanos() / width).min();
        let last = stays
            .iter()
            .map(|stay| (stay.from + stay.length).nanos().saturating_sub(1) / width)
            .max();
        let blocks = last.zip(first).map_or(0, |(last, first)| last - first + 1);
        let parts: i64 = stays
            .iter()
            .map(|stay| stay.length.nanos() / width + 1)
            .sum();
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        (count(blocks), count(parts))
    };
    loop {
        let (blocks, parts) = spread(width);
        let fits = blocks <= MOST_BLOCKS && parts <= MOST_PARTS.max(2 * stays.len());
        if fits || blocks <= LEAST_BLOCKS {
            return (width, blocks);
        }
        width = width.saturating_mul(2);
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
const fn real(nanos: i64) -> f64 {
    nanos as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
const fn real_count(number: usize) -> f64 {
    number as f64
}
