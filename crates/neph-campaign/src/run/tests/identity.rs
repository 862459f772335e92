//! A campaign continues with the same plan and the same kind of server.

use super::*;

#[test]
fn once_a_reflector_has_answered_only_a_reflector_is_accepted() {
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
fn another_plan_does_not_go_on_with_this_campaign() {
    let mut lab = Lab::new(PLAN, &[FakeOutcome::CtrlC]);
    lab.run_campaign().expect("it runs");
    lab.plan = parse(&Source::new("p.toml", PLAN.replace("256", "512"))).expect("no mistakes");
    assert!(matches!(
        lab.run_campaign(),
        Err(RunError::MatrixDiffers { .. })
    ));
}
