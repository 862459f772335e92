//! Uncertainty of a survival curve with correlated ends. One rerouting ends the stays of hundreds of flows at
//! once, and counts as one event.
//!
//! Time is divided into blocks. Each block has one number: the ends within it, minus those expected from the
//! running stays. The variance of these numbers gives that of log S (robust variance of the product-limit
//! estimate, clustered by calendar time).

use std::collections::BTreeSet;

use neph_model::Span;
use neph_stats::SurvivalStep;

use crate::stay::Stay;

/// The block length is doubled until there are at most this many blocks.
const MAX_BLOCKS: usize = 400;
/// It is also doubled until stays extend over at most this many blocks in total, or two each, but not below
/// `MIN_BLOCKS` blocks.
const MAX_PARTS: usize = 1 << 20;
const MIN_BLOCKS: usize = 8;

/// The uncertainty of a curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Uncertainty {
    /// Blocks that contain parts of stays.
    pub(crate) blocks: usize,
    /// Blocks in which a stay ended.
    pub(crate) blocks_with_ends: usize,
    /// The standard error of log S at each requested step.
    pub(crate) errors: Vec<f64>,
}

/// An event in a block: age and block.
type Event = (f64, usize);

/// Events in blocks, each by age.
#[derive(Debug, Default)]
struct Events {
    /// Ends of stays.
    ends: Vec<Event>,
    /// The starts of stays' parts within a block.
    starts: Vec<Event>,
    /// The ends of such parts.
    part_ends: Vec<Event>,
}

impl Events {
    fn sort(&mut self) {
        for events in [&mut self.ends, &mut self.starts, &mut self.part_ends] {
            events.sort_unstable_by(|event, other| event.0.total_cmp(&other.0));
        }
    }
}

/// The state of a block at the current age.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The effect on log S of the stays that ended in it.
    ended: f64,
    /// Number of parts that continue at this age.
    running: f64,
    /// Expected ends of its parts, minus `running` times the expectation at this age.
    expected: f64,
}

/// The uncertainty of the curve with these steps, at each index in `is_requested`.
pub(crate) fn uncertainty(
    stays: &[Stay],
    steps: &[SurvivalStep],
    bin: Span,
    is_requested: impl Fn(usize) -> bool,
) -> Uncertainty {
    let (block_width, blocks) = choose_block_width(stays, bin);
    let first_block = stays
        .iter()
        .map(|stay| stay.from.nanos() / block_width)
        .min();
    let first_block = first_block.unwrap_or(0);
    let block_at = |at: i64| usize::try_from(at / block_width - first_block).unwrap_or(0);
    let mut events = Events::default();
    for stay in stays {
        let (from, until) = (stay.from.nanos(), (stay.from + stay.length).nanos());
        // A stay that ends at the end of a block belongs to that block.
        let last_block = block_at(until - 1).max(block_at(from));
        if stay.ended {
            events.ends.push((nanos_to_f64(until - from), last_block));
        }
        for block in block_at(from)..=last_block {
            let begin = (i64::try_from(block).unwrap_or(0) + first_block) * block_width;
            let end = (begin + block_width).min(until);
            events
                .starts
                .push((nanos_to_f64((begin - from).max(0)), block));
            events.part_ends.push((nanos_to_f64(end - from), block));
        }
    }
    let blocks_with_ends: BTreeSet<usize> = events.ends.iter().map(|(_, block)| *block).collect();
    events.sort();
    Uncertainty {
        blocks,
        blocks_with_ends: blocks_with_ends.len(),
        errors: compute_errors(vec![Block::default(); blocks], &events, steps, is_requested),
    }
}

/// Processes ages in order: the ends in each block, and the expected ends.
fn compute_errors(
    mut blocks: Vec<Block>,
    events: &Events,
    steps: &[SurvivalStep],
    is_requested: impl Fn(usize) -> bool,
) -> Vec<f64> {
    let mut ends = events.ends.iter().peekable();
    let mut starts = events.starts.iter().peekable();
    let mut part_ends = events.part_ends.iter().peekable();
    let (mut hazard, mut errors) = (0.0, Vec::new());
    let block_count = count_to_f64(blocks.len());
    for (index, step) in steps.iter().enumerate() {
        // `hazard` is still without this step, which does not concern parts that stop before it.
        while let Some((_, block)) = starts.next_if(|(age, _)| *age < step.at) {
            let block = &mut blocks[*block];
            block.running += 1.0;
            block.expected -= hazard;
        }
        while let Some((_, block)) = part_ends.next_if(|(age, _)| *age < step.at) {
            let block = &mut blocks[*block];
            block.running -= 1.0;
            block.expected += hazard;
        }
        // The effect of one more end on log S.
        let weight = 1.0 / count_to_f64(step.at_risk - step.ended).max(1.0);
        hazard += count_to_f64(step.ended) / count_to_f64(step.at_risk) * weight;
        while let Some((_, block)) = ends.next_if(|(age, _)| *age <= step.at) {
            blocks[*block].ended += weight;
        }
        if is_requested(index) {
            let residual = |block: &Block| block.ended - block.expected - block.running * hazard;
            let squares: f64 = blocks.iter().map(|block| residual(block).powi(2)).sum();
            errors.push((squares * block_count / (block_count - 1.0).max(1.0)).sqrt());
        }
    }
    errors
}

/// Length of a block in nanoseconds, and number of blocks.
fn choose_block_width(stays: &[Stay], bin: Span) -> (i64, usize) {
    let mut block_width = bin.nanos().max(1);
    let count_blocks_and_parts = |block_width: i64| {
        let first = stays
            .iter()
            .map(|stay| stay.from.nanos() / block_width)
            .min();
        let last = stays
            .iter()
            .map(|stay| (stay.from + stay.length).nanos().saturating_sub(1) / block_width)
            .max();
        let blocks = last.zip(first).map_or(0, |(last, first)| last - first + 1);
        let parts: i64 = stays
            .iter()
            .map(|stay| stay.length.nanos() / block_width + 1)
            .sum();
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        (count(blocks), count(parts))
    };
    loop {
        let (blocks, parts) = count_blocks_and_parts(block_width);
        let is_within_limits = blocks <= MAX_BLOCKS && parts <= MAX_PARTS.max(2 * stays.len());
        if is_within_limits || blocks <= MIN_BLOCKS {
            return (block_width, blocks);
        }
        block_width = block_width.saturating_mul(2);
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
const fn nanos_to_f64(nanos: i64) -> f64 {
    nanos as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
const fn count_to_f64(number: usize) -> f64 {
    number as f64
}
