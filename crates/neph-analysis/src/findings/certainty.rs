//! How certain comparisons are: the end of a sentence about them.

use neph_stats::{Decision, Verdict, blocks_needed};

use super::compare::DecidedComparison;
use crate::numbers::millis;

/// How certain a set of comparisons is, as the end of a sentence.
pub(crate) fn certainty_text_of(decided: &[DecidedComparison]) -> String {
    let certainties = decided.iter().map(|decided_comparison| Certainty {
        blocks: decided_comparison.comparison.blocks,
        decision: decided_comparison.decision,
        margin: millis(decided_comparison.comparison.margin),
    });
    certainty_text(&certainties.collect::<Vec<_>>())
}

/// What the certainty of a comparison depends on.
#[derive(Clone, Debug)]
pub(crate) struct Certainty {
    /// Number of blocks that both have.
    pub(crate) blocks: usize,
    /// The judgement.
    pub(crate) decision: Decision,
    /// The smallest difference that matters, with its unit.
    pub(crate) margin: String,
}

/// How certain a set of comparisons is, as the end of a sentence.
pub(crate) fn certainty_text(decided: &[Certainty]) -> String {
    let blocks = decided.iter().map(|certainty| certainty.blocks).min();
    let blocks = blocks.unwrap_or(0);
    let family = decided.first().map_or(1, |first| first.decision.family);
    let needed = blocks_needed(family);
    let blocks_text = crate::text::plural(blocks, "block");
    if blocks < needed {
        let family_text = match family {
            0 | 1 => String::new(),
            n => format!(" for the {n} comparisons of this report"),
        };
        return format!("no verdict yet: {blocks_text} measured, {needed} needed{family_text}");
    }
    let is_decided = |certainty: &&Certainty| certainty.decision.verdict != Verdict::Inconclusive;
    let corrected = match family {
        0 | 1 => String::new(),
        count => format!(", corrected for {count} comparisons"),
    };
    match (decided.iter().filter(is_decided).count(), decided) {
        (0, [certainty]) => format!(
            "undecided over {blocks_text}: the difference may be above or below {}, the smallest that matters{corrected}",
            certainty.margin
        ),
        (0, _) => format!("undecided over {blocks_text}{corrected}"),
        (1, [certainty]) => {
            let subject = match certainty.decision.verdict {
                Verdict::Equivalent => "the equivalence is significant",
                _ => "significant",
            };
            format!(
                "{subject} over {blocks_text} (p {:.3}{corrected})",
                certainty.decision.p
            )
        }
        (decided_count, all) if decided_count == all.len() => {
            format!("significant over {blocks_text} in each{corrected}")
        }
        (decided_count, all) => {
            format!("significant in {decided_count} of {}{corrected}", all.len())
        }
    }
}
