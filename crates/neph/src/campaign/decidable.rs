//! Whether a plan has blocks enough for what its report will compare. The report says how many it
//! takes.

use neph_campaign::{Plan, expand};
use neph_report::blocks_to_compare;

use crate::counted::counted;

/// A sentence about a plan whose fleets are compared in too few blocks to be told apart.
pub(super) fn note(plan: &Plan) -> Option<String> {
    let needed = blocks_to_compare(&expand::scenarios(plan))?;
    let has = plan.blocks as usize;
    (has < needed).then(|| {
        format!(
            "{} cannot decide what the report compares: with Holm's correction the signed-rank test takes {needed}; set blocks = {needed} or more",
            counted(plan.blocks.into(), "block")
        )
    })
}
