//! Which pairs a figure shows if there are more than a page can hold: those with the largest effect.

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

/// Whether nothing happens to its paths: one class at most, no path change, no lost flow. A queue does not
/// count.
fn is_uneventful(pair: &Pair<'_>) -> bool {
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
    uneventful: usize,
    /// How many more are left out.
    smaller_effects: usize,
}

impl<'a> SelectedPairs<'a> {
    /// All of what fits a page. Of more, those in which something happens; of more than `limit`, those with
    /// the largest effect, each in the block in which it is the largest.
    pub(super) fn of(pairs: Vec<Pair<'a>>, (page, limit): (usize, usize)) -> Self {
        let mut selection = Self {
            noun: noun(&pairs),
            pairs,
            is_one_block: false,
            uneventful: 0,
            smaller_effects: 0,
        };
        if selection.pairs.len() <= page {
            return selection;
        }
        if selection.pairs.len() > limit {
            let before = selection.pairs.len();
            selection.pairs = largest_blocks(selection.pairs);
            selection.is_one_block = selection.pairs.len() < before;
            selection.noun = noun(&selection.pairs);
        }
        let total = selection.pairs.len();
        if selection.pairs.iter().all(is_uneventful) {
            selection.pairs.truncate(page);
            selection.uneventful = total - selection.pairs.len();
            return selection;
        }
        selection.pairs.retain(|pair| !is_uneventful(pair));
        selection.uneventful = total - selection.pairs.len();
        if selection.uneventful > 0 || selection.pairs.len() > limit {
            selection
                .pairs
                .sort_by(|a, b| effect(a).larger_first(&effect(b)));
        }
        if selection.pairs.len() > limit {
            selection.smaller_effects = selection.pairs.len() - limit;
            selection.pairs.truncate(limit);
        }
        selection
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
        if self.smaller_effects > 0 {
            text.push_str(&format!(
                " Drawn: the {} with the largest inflation, then the most path changes; {} with less.",
                plural(self.pairs.len(), self.noun),
                self.left_out(self.smaller_effects)
            ));
        }
        if self.uneventful > 0 {
            text.push_str(&format!(
                " {} in which nothing happened: one latency class at most, no path change, no lost flow.",
                capital(&self.left_out(self.uneventful))
            ));
        }
        if self.smaller_effects + self.uneventful > 0 {
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
