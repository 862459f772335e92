//! What the sentences say of messages and experiments that came to nothing.

use neph_analysis::{CampaignData, ExperimentData};
use neph_model::{ExperimentStatus, Outcome};

use crate::findings::{sentences, shown};
use crate::synthetic::{self, CONTINENT, METRO};

/// Each of the scenario's first messages ends so.
pub(crate) fn ending(data: &mut CampaignData, scenario: usize, messages: usize, outcome: Outcome) {
    let of_scenario = |one: &&mut ExperimentData| one.scenario == scenario;
    for experiment in data.experiments.iter_mut().filter(of_scenario) {
        for exchange in experiment.flows[0].exchanges.iter_mut().take(messages) {
            exchange.outcome = outcome;
            (exchange.response, exchange.service) = (None, None);
        }
    }
}

#[test]
fn messages_that_could_not_be_sent_do_not_vanish() {
    let mut data = synthetic::over(&[METRO], 1);
    ending(&mut data, 0, 200, Outcome::Failed);
    let said = sentences(&data);
    assert!(
        said.contains("100 of them answered, 0 lost (0 %), 200 not sent."),
        "{said}"
    );
    assert!(said.contains("No message that was sent was lost, of 100 messages"));
    assert!(said.contains("200 messages could not be sent, in 1 of 1 scenario, most in metro"));
    assert!(!said.contains("No message was lost"));
    let shown = shown(&data, 100);
    let row = shown.lines().last().unwrap();
    assert!(
        shown.contains("lost  not sent") && row.contains("0 %       200"),
        "{shown}"
    );
    assert!(
        row.contains("   not sent   not sent"),
        "more than half went unanswered: {row}"
    );
    // The worst case: nothing was sent, and there is no loss to speak of.
    ending(&mut data, 0, 300, Outcome::Failed);
    let said = sentences(&data);
    assert!(said.contains("300 messages could not be sent") && !said.contains("No message"));
}

#[test]
fn what_failed_is_told_with_its_reason_and_is_not_nothing_flagged() {
    let mut data = synthetic::over(&[METRO, CONTINENT], 3);
    for experiment in &mut data.experiments {
        experiment.experiment.warnings.clear();
    }
    let (dead, alive): (Vec<_>, Vec<_>) = data
        .experiments
        .drain(..)
        .partition(|one| one.scenario == 1);
    data.experiments = alive;
    data.left_out = dead.into_iter().map(|one| one.experiment).collect();
    for experiment in &mut data.left_out {
        experiment.status = ExperimentStatus::Failed;
        experiment.reason = Some(format!("refused in block {}", experiment.block));
    }
    let said = sentences(&data);
    assert!(
        said.contains("Flagged failed: 3 experiments failed: continent · every 100 ms · 1 KiB. The first reason: refused in block 0."),
        "{said}"
    );
    assert!(!said.contains("Nothing was flagged"), "{said}");
    // Only a plan can be gone on with.
    for (plan, remedy) in [
        ("", "mend the cause and measure again"),
        (
            "version = 1",
            "mend the cause; neph resume tries them again",
        ),
    ] {
        data.campaign.plan_text = plan.to_owned();
        let said = sentences(&data);
        assert!(said.contains(remedy), "{said}");
    }
    let shown = shown(&data, 400);
    assert!(shown.contains("3 experiments failed"), "{shown}");
    // Tried again, it succeeded: told, but nothing is left to do.
    let mut again = data.clone();
    again.left_out.truncate(1);
    let mut experiment = again.experiments[0].clone();
    experiment.experiment.scenario = again.left_out[0].scenario;
    experiment.scenario = 1;
    again.experiments.push(experiment);
    let said = sentences(&again);
    assert!(
        said.contains("1 experiment failed at first and succeeded later: continent")
            && said.contains("The reason: refused in block 0.")
            && !said.contains("neph resume"),
        "{said}"
    );
    // Nothing but failures: no matrix of nothing, and the reason still.
    data.experiments.clear();
    let said = sentences(&data);
    assert!(
        said.contains("Nothing was measured. 2 scenarios of the plan have nothing to show yet.")
            && said.contains("3 experiments failed")
            && !said.contains("Nothing was flagged"),
        "{said}"
    );
}
