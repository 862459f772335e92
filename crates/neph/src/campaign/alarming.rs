//! Alarms of a running campaign, told at once: a line, and the webhook. Whether there were any decides
//! the exit status.

use neph_model::alarm::Change;
use neph_model::{Campaign, EventKind, Experiment, Scenario, Wall};
use neph_store::Store;
use serde_json::{Value, json};

use crate::alarm::{document, sentence};
use crate::exit::Failure;
use crate::output;
use crate::resolving::addresses;
use neph_export::{Url, Webhook};

/// Who is told.
#[derive(Debug)]
pub(super) struct Alarming {
    webhook: Option<Webhook>,
}

impl Alarming {
    pub(super) fn new(webhook: Option<Url>) -> Self {
        let webhook = webhook.map(|url| Webhook::begin(url, "neph run", output::say, addresses));
        Self { webhook }
    }

    pub(super) fn tell(&self, experiment: &Experiment, scenario: &Scenario, change: &Change) {
        let at = experiment.started + change.at;
        let (said, label) = (sentence(at, change, "round trip"), scenario.label());
        output::say(&format!("{said} [{label}]"));
        if let Some(webhook) = &self.webhook {
            webhook.tell(posted(at, experiment, &label, change).to_string());
        }
    }

    /// Waits until all were told, or could not be, but not for ever.
    pub(super) fn finish(self) {
        if let Some(webhook) = self.webhook {
            webhook.finish();
        }
    }
}

fn posted(at: Wall, experiment: &Experiment, label: &str, change: &Change) -> Value {
    let mut told = document(at, change, "round_trips");
    told["campaign"] = json!(experiment.campaign.to_string());
    told["experiment"] = json!(experiment.id.to_string());
    told["scenario"] = json!(label);
    told["block"] = json!(experiment.block + 1);
    told["since_start_ns"] = json!(change.at.nanos());
    told
}

/// Whether an alarm was raised in any of a campaign's experiments, those of an earlier process
/// included.
pub(super) fn was_raised(store: &dyn Store, campaign: &Campaign) -> Result<bool, Failure> {
    for experiment in store.experiments(campaign.id).map_err(Failure::refused)? {
        let events = store.events(experiment.id).map_err(Failure::refused)?;
        if events.iter().any(|one| one.kind == EventKind::AlarmRaised) {
            return Ok(true);
        }
    }
    Ok(false)
}
