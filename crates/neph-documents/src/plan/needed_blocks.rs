//! Whether a plan has enough blocks for the comparisons of its report. The report shows how many
//! are needed.

use neph_analysis::{blocks_to_compare, comparisons};
use neph_campaign::{Plan, expand};

use neph_text::counted::counted;

/// A sentence about a plan of several blocks that are too few for any verdict. A single block is no
/// comparison that was planned.
pub(super) fn note(plan: &Plan) -> Option<String> {
    let scenarios = expand::scenarios(plan);
    let has_fleet = scenarios.iter().any(|scenario| scenario.flows().is_some());
    if plan.blocks < 2 && !has_fleet {
        return None;
    }
    let needed = blocks_to_compare(&scenarios, plan.compares.len())?;
    let planned_blocks = plan.blocks as usize;
    (planned_blocks < needed).then(|| {
        format!(
            "{} cannot decide the {} of the report: set blocks = {needed} or more",
            counted(plan.blocks.into(), "block"),
            counted(
                comparisons(&scenarios, plan.compares.len()) as u64,
                "comparison"
            )
        )
    })
}
