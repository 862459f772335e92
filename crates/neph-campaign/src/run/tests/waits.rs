//! What happens while a campaign waits.

use super::*;

#[test]
fn the_executor_is_polled_while_the_campaign_waits_for_a_block() {
    let plan = PLAN.replace("pause = \"1s\"", "pause = \"0s\"");
    let mut lab = Lab::new(&plan, &[]);
    lab.run_campaign().expect("it is carried out");
    // A block of three experiments of 10 s, a check of 5 s: the wait takes some 25 s of the minute.
    let polls = lab.executor.idle_polls;
    assert!((20..200).contains(&polls), "{polls}");
}
