//! Alarms of a running campaign, reported immediately: a line, and the webhook. The exit status
//! shows whether there were any.

use neph_documents::alarm::{AlarmDocument, ExperimentReference, format_alarm_line};
use neph_documents::rows::json_line;
use neph_model::alarm::Change;
use neph_model::{Campaign, EventKind, Experiment, Scenario, Wall};
use neph_store::Store;

use crate::exit::Failure;
use crate::output;
use crate::resolving::addresses;
use neph_export::{Url, Webhook};

/// The destinations of alarms.
#[derive(Debug)]
pub(super) struct AlarmReporter {
    webhook: Option<Webhook>,
}

impl AlarmReporter {
    pub(super) fn new(webhook: Option<Url>) -> Self {
        let webhook = webhook.map(|url| Webhook::begin(url, "neph run", output::say, addresses));
        Self { webhook }
    }

    pub(super) fn report(&self, experiment: &Experiment, scenario: &Scenario, change: &Change) {
        let time = experiment.started + change.at;
        let (text, label) = (
            format_alarm_line(time, change, "round trip"),
            scenario.label(),
        );
        output::say(&format!("{text} [{label}]"));
        if let Some(webhook) = &self.webhook {
            webhook.report(json_line(&build_document(time, experiment, &label, change)));
        }
    }

    /// Waits until all alarms were reported or failed, for a limited time.
    pub(super) fn finish(self) {
        if let Some(webhook) = self.webhook {
            webhook.finish();
        }
    }
}

fn build_document(
    time: Wall,
    experiment: &Experiment,
    label: &str,
    change: &Change,
) -> AlarmDocument<ExperimentReference> {
    let experiment_ref = ExperimentReference {
        campaign: experiment.campaign.to_string(),
        experiment: experiment.id.to_string(),
        scenario: label.to_owned(),
        block: experiment.block + 1,
        since_start_ns: change.at,
    };
    AlarmDocument::of_round_trips(time, change, experiment_ref)
}

/// Whether an alarm was raised in any experiment of a campaign, including those of an earlier process.
pub(super) fn was_raised(store: &dyn Store, campaign: &Campaign) -> Result<bool, Failure> {
    for experiment in store.experiments(campaign.id)? {
        let events = store.events(experiment.id)?;
        if events
            .iter()
            .any(|event| event.kind == EventKind::AlarmRaised)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
