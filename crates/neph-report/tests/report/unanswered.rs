//! What the sentences say of messages and experiments that came to nothing.

use neph_analysis::{CampaignData, ExperimentData};
use neph_model::{ExperimentStatus, Outcome};

use crate::findings::{sentences, terminal_report};
use crate::synthetic::{self, CONTINENT, METRO};

/// Each of the scenario's first messages ends so.
pub(crate) fn set_outcomes(
    data: &mut CampaignData,
    scenario: usize,
    messages: usize,
    outcome: Outcome,
) {
    let of_scenario = |experiment: &&mut ExperimentData| experiment.scenario == scenario;
    for experiment in data.experiments.iter_mut().filter(of_scenario) {
        for exchange in experiment.flows[0].exchanges.iter_mut().take(messages) {
            exchange.outcome = outcome;
            (exchange.response, exchange.service) = (None, None);
        }
    }
}

#[test]
fn messages_that_could_not_be_sent_do_not_vanish() {
    let mut data = synthetic::campaign_over(&[METRO], 1);
    set_outcomes(&mut data, 0, 200, Outcome::Failed);
    let text = sentences(&data);
    assert!(
        text.contains("100 of them answered, 0 lost (0 %), 200 not sent."),
        "{text}"
    );
    assert!(text.contains("0 of 100 messages that were sent were lost: "));
    assert!(text.contains("200 messages could not be sent, in 1 of 1 scenario, most in 'metro"));
    assert!(!text.contains("messages were lost:"));
    let terminal_report = terminal_report(&data, 100);
    let mut lines = terminal_report.lines();
    let heading = lines.find(|line| line.contains("loss  not sent"));
    let row = lines.next().unwrap();
    assert!(
        heading.is_some() && row.contains("0 %       200"),
        "{terminal_report}"
    );
    assert!(
        row.contains("   not sent   not sent"),
        "more than half went unanswered: {row}"
    );
    // The worst case: nothing was sent, and there is no loss to speak of.
    set_outcomes(&mut data, 0, 300, Outcome::Failed);
    let text = sentences(&data);
    assert!(text.contains("300 messages could not be sent") && !text.contains("were lost:"));
}

#[test]
fn failed_experiments_are_reported_with_reason_and_remedy() {
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], 3);
    for experiment in &mut data.experiments {
        experiment.experiment.warnings.clear();
    }
    let (failed, complete): (Vec<_>, Vec<_>) = data
        .experiments
        .drain(..)
        .partition(|experiment| experiment.scenario == 1);
    data.experiments = complete;
    data.left_out = failed
        .into_iter()
        .map(|experiment| experiment.experiment)
        .collect();
    for experiment in &mut data.left_out {
        experiment.status = ExperimentStatus::Failed;
        experiment.reason = Some(format!("refused in block {}", experiment.block));
    }
    let text = sentences(&data);
    assert!(
        text.contains("Flagged failed: 3 experiments failed: continent · every 100 ms · 1 KiB. The first reason: refused in block 0."),
        "{text}"
    );
    assert!(!text.contains("No warnings"), "{text}");
    // Only a plan can be gone on with.
    for (plan, remedy) in [
        ("", "remove the cause and repeat"),
        ("version = 1", "remove the cause, then run neph resume"),
    ] {
        data.campaign.plan_text = plan.to_owned();
        let text = sentences(&data);
        assert!(text.contains(remedy), "{text}");
    }
    let terminal_report = terminal_report(&data, 400);
    assert!(
        terminal_report.contains("3 experiments failed"),
        "{terminal_report}"
    );
    // Tried again, it succeeded: told, but nothing is left to do.
    let mut changed = data.clone();
    changed.left_out.truncate(1);
    let mut experiment = changed.experiments[0].clone();
    experiment.experiment.scenario = changed.left_out[0].scenario;
    experiment.scenario = 1;
    changed.experiments.push(experiment);
    let text = sentences(&changed);
    assert!(
        text.contains("1 experiment failed at first and succeeded later: continent")
            && text.contains("The reason: refused in block 0.")
            && !text.contains("neph resume"),
        "{text}"
    );
    // Nothing but failures: no matrix of nothing, and the reason still.
    data.experiments.clear();
    let text = sentences(&data);
    assert!(
        text.contains(
            "No experiment is complete. 2 scenarios of the plan have nothing to show yet."
        ) && text.contains("3 experiments failed")
            && !text.contains("No warnings"),
        "{text}"
    );
}
