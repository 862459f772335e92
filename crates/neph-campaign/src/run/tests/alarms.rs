//! Alarms of a plan: judged within each experiment, kept with its messages, reported at once.

use neph_model::{CampaignStatus, EventKind, Experiment};

use super::Lab;
use super::fake::FakeOutcome;

/// Two experiments of a minute, a message a second.
const PLAN: &str = r#"
version = 1
name = "alarms"
interval = "1s"
messages = 60
blocks = 2
seed = 5
alarm = "round_trip > 10ms p50 for 6s"
[[endpoint]]
name = "a"
url = "ws://a"
"#;

/// The kinds and seconds of the events of each experiment.
fn events(lab: &Lab) -> Vec<Vec<(EventKind, i64)>> {
    let experiments = lab.experiments();
    let store = Lab::store(lab.folder.path());
    let events_of = |experiment: &Experiment| {
        let events = store.events(experiment.id).expect("events");
        let seconds = |at: i64| at / 1_000_000_000;
        events
            .iter()
            .map(|event| (event.kind, seconds(event.at)))
            .collect()
    };
    experiments.iter().map(events_of).collect()
}

fn alarm_lines(lab: &Lab) -> Vec<&str> {
    let lines = lab.event_log.0.iter().map(String::as_str);
    lines
        .filter(|line| line.contains(" at ") && !line.starts_with("block"))
        .collect()
}

#[test]
fn an_alarm_and_its_end_are_stored_and_reported_and_the_measurement_is_complete() {
    let mut lab = Lab::new(PLAN, &[FakeOutcome::Slow(20, 40)]);
    let (campaign, progress) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert_eq!(progress.complete, 2);
    // p50 needs six messages: from 18 s on most of six were slow, from 42 s on none.
    let expected = [(EventKind::AlarmRaised, 24), (EventKind::AlarmOver, 48)];
    assert_eq!(events(&lab), [expected.to_vec(), Vec::new()]);
    assert_eq!(alarm_lines(&lab), ["alarm at 24 s", "over at 48 s"]);
    assert_eq!(lab.experiments()[0].tally.replies, 60);
}

#[test]
fn alarms_are_evaluated_separately_in_each_experiment() {
    // Twelve slow seconds, but six in each.
    let plan_text = PLAN.replace("for 6s", "for 7s");
    let mut lab = Lab::new(
        &plan_text,
        &[FakeOutcome::Slow(54, 60), FakeOutcome::Slow(0, 6)],
    );
    lab.run_campaign().expect("it runs");
    assert_eq!(events(&lab), [Vec::new(), Vec::new()]);
    // As many in one are enough.
    let mut lab = Lab::new(&plan_text, &[FakeOutcome::Slow(24, 36)]);
    lab.run_campaign().expect("it runs");
    assert_eq!(alarm_lines(&lab), ["alarm at 36 s", "over at 48 s"]);
}

#[test]
fn alarms_are_evaluated_after_a_campaign_resumes() {
    let mut lab = Lab::new(
        PLAN,
        &[
            FakeOutcome::Complete,
            FakeOutcome::Killed,
            FakeOutcome::Slow(0, 60),
        ],
    );
    lab.run_campaign().expect_err("killed");
    lab.run_campaign().expect("it goes on");
    let raised_alarms: Vec<_> = events(&lab).into_iter().flatten().collect();
    assert_eq!(raised_alarms, [(EventKind::AlarmRaised, 6)]);
    assert_eq!(alarm_lines(&lab), ["alarm at 6 s"]);
}
