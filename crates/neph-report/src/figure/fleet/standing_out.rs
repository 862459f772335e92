//! Which pairs stand out where there are more than a page or a sentence holds: those with the largest effect.

use neph_analysis::fleet::Effect;
use neph_analysis::fleet::Pair;
use neph_analysis::text::capital;
use neph_analysis::text::plural;
use std::collections::{BTreeMap, BTreeSet};

fn effect(pair: &Pair<'_>) -> Effect {
    let inflation = pair
        .pair_view
        .inflation
        .map(|inflation| inflation.ratio - 1.0);
    Effect::new(inflation, pair.pair_view.changes)
}

/// Whether nothing happens to its paths: one class at most, no path change, no lost flow. A queue is none of
/// its paths.
fn is_quiet(pair: &Pair<'_>) -> bool {
    let view = pair.pair_view;
    let has_one_path = view.changes == 0 && pair.classes().len() <= 1;
    has_one_path && !view.mostly_lost && pair.latency_bins().iter().all(|bin| bin.lost == 0)
}

/// The pairs of a figure that has a panel for each.
#[derive(Clone, Debug)]
pub(super) struct SelectedPairs<'a> {
    /// Those to draw.
    pub(super) pairs: Vec<Pair<'a>>,
    /// Whether of each pair only one block is drawn.
    is_one_block: bool,
    /// What is counted: `pair`, or `experiment` where a pair has several.
    noun: &'static str,
    /// How many are left out because nothing happens in them.
    quiet: usize,
    /// How many more are left out.
    smaller: usize,
}

impl<'a> SelectedPairs<'a> {
    /// All of what fits a page. Of more, those in which something happens; of more than `most`, those with
    /// the largest effect, each in the block in which it is the largest.
    pub(super) fn of(pairs: Vec<Pair<'a>>, (page, limit): (usize, usize)) -> Self {
        let mut shown = Self {
            noun: noun(&pairs),
            pairs,
            is_one_block: false,
            quiet: 0,
            smaller: 0,
        };
        if shown.pairs.len() <= page {
            return shown;
        }
        if shown.pairs.len() > limit {
            let before = shown.pairs.len();
            shown.pairs = largest_blocks(shown.pairs);
            shown.is_one_block = shown.pairs.len() < before;
            shown.noun = noun(&shown.pairs);
        }
        let total = shown.pairs.len();
        if shown.pairs.iter().all(is_quiet) {
            shown.pairs.truncate(page);
            shown.quiet = total - shown.pairs.len();
            return shown;
        }
        shown.pairs.retain(|pair| !is_quiet(pair));
        shown.quiet = total - shown.pairs.len();
        if shown.quiet > 0 || shown.pairs.len() > limit {
            shown
                .pairs
                .sort_by(|a, b| effect(a).larger_first(&effect(b)));
        }
        if shown.pairs.len() > limit {
            shown.smaller = shown.pairs.len() - limit;
            shown.pairs.truncate(limit);
        }
        shown
    }

    fn left_out(&self, count: usize) -> String {
        let verb = if count == 1 { "is" } else { "are" };
        format!(
            "{} {verb} left out",
            plural(count, &format!("more {}", self.noun))
        )
    }

    /// What is left out, for the caption; nothing where all are drawn.
    pub(super) fn sentence(&self) -> String {
        let mut text = String::new();
        if self.is_one_block {
            text.push_str(" Of each pair the block with its largest effect is drawn.");
        }
        if self.smaller > 0 {
            text.push_str(&format!(
                " Drawn: the {} with the largest inflation, then the most path changes; {} with less.",
                plural(self.pairs.len(), self.noun),
                self.left_out(self.smaller)
            ));
        }
        if self.quiet > 0 {
            text.push_str(&format!(
                " {} in which nothing happened: one latency class at most, no path change, no lost flow.",
                capital(&self.left_out(self.quiet))
            ));
        }
        if self.smaller + self.quiet > 0 {
            text.push_str(" The table flow-pairs has all.");
        }
        text
    }
}

/// What these are, of which a pair may be there in several blocks.
fn noun(pairs: &[Pair<'_>]) -> &'static str {
    let kinds: BTreeSet<(usize, usize)> = pairs
        .iter()
        .map(|pair| (pair.scenario, pair.endpoint))
        .collect();
    if kinds.len() < pairs.len() {
        "experiment"
    } else {
        "pair"
    }
}

/// Of each pair the block with the largest effect, in the order of the pairs.
fn largest_blocks(pairs: Vec<Pair<'_>>) -> Vec<Pair<'_>> {
    let mut largest: BTreeMap<(usize, usize), Pair<'_>> = BTreeMap::new();
    for pair in pairs {
        let key = (pair.scenario, pair.endpoint);
        let is_smaller = largest
            .get(&key)
            .is_some_and(|known| effect(&pair).larger_first(&effect(known)).is_ge());
        if !is_smaller {
            largest.insert(key, pair);
        }
    }
    largest.into_values().collect()
}
