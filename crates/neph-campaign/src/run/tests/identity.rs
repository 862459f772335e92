//! A campaign continues with the same plan and the same kind of server.

use super::*;

#[test]
fn after_a_reflector_answered_a_third_party_server_is_refused() {
    use FakeOutcome::{Complete, CtrlC, Refused};
    let mut lab = Lab::new(PLAN, &[Refused, Complete, CtrlC]);
    lab.executor.reflector = true;
    lab.run_campaign().expect("it runs");
    assert_eq!(lab.executor.expected_reflectors, [false, false, true]);
    lab.executor.expected_reflectors.clear();
    lab.run_campaign().expect("it goes on");
    assert_eq!(
        lab.executor.expected_reflectors, [true; 5],
        "also after a resume"
    );
}

#[test]
fn a_campaign_cannot_be_resumed_with_another_plan() {
    let mut lab = Lab::new(PLAN, &[FakeOutcome::CtrlC]);
    lab.run_campaign().expect("it runs");
    lab.plan = parse(&Source::new("p.toml", PLAN.replace("256", "512"))).expect("no mistakes");
    assert!(matches!(
        lab.run_campaign(),
        Err(RunError::MatrixDiffers { .. })
    ));
}
