//! What a rule that was not evaluated needs.

use neph_model::{FlowIndex, Instant, Marks, Message, Outcome, Seq};

use super::world::World;
use crate::{ExperimentData, PlotSettings, diagnose};

/// Why each rule does not evaluate a campaign with these messages in each experiment.
fn not_evaluated(messages: &[Message]) -> Vec<String> {
    let mut data = World::default().campaign();
    for experiment in &mut data.experiments {
        *experiment =
            ExperimentData::new(experiment.experiment.clone(), experiment.scenario, messages);
    }
    diagnose(&data, &PlotSettings::default()).not_evaluated_text()
}

fn message(outcome: Outcome) -> Message {
    let micros_after_start = |micros: i64| Some(Instant::from_nanos(micros * 1000));
    let mut timestamps = Marks::intended_at(Instant::from_nanos(0));
    (
        timestamps.dialled,
        timestamps.connected,
        timestamps.app_recv,
    ) = (
        micros_after_start(3),
        micros_after_start(103),
        micros_after_start(103),
    );
    let mut message = Message::new(FlowIndex(0), Seq(0), timestamps);
    message.outcome = outcome;
    message
}

#[test]
fn rules_without_any_reply_report_that_they_need_one() {
    for messages in [vec![], vec![message(Outcome::Failed)]] {
        let reasons = not_evaluated(&messages);
        assert!(
            reasons.contains(&"slow start after idle, loss without a queue: needs a reply.".into())
        );
        assert!(
            !reasons.iter().any(|need| need.contains("Linux")),
            "{reasons:#?}"
        );
        // Where so many are asked for, one is not asked for too.
        assert!(
            !reasons
                .iter()
                .any(|need| need.contains("replies in an experiment; a reply")),
            "{reasons:#?}"
        );
    }
}

#[test]
fn connection_attempts_have_no_send_timestamps() {
    let reasons = not_evaluated(&[message(Outcome::Reply)]);
    let idle = reasons.iter().find(|need| need.starts_with("slow start"));
    assert_eq!(
        idle.map(String::as_str),
        Some("slow start after idle: needs requests over TCP (a connection attempt sends none).")
    );
    assert!(
        !reasons.iter().any(|need| need.contains("Linux")),
        "{reasons:#?}"
    );
}
