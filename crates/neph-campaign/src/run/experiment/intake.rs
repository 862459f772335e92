//! What experiments measure, as it comes: record by record, or whole from another host.

use std::path::PathBuf;

use neph_model::{ExperimentId, Records};

use super::ActiveRun;
use crate::observer::CampaignEvent;
use crate::run::{Run, RunError, storing};

impl Run<'_, '_> {
    /// Keeps what an experiment measured.
    pub(super) fn record(
        &mut self,
        active_runs: &mut [ActiveRun],
        experiment: ExperimentId,
        records: &Records,
    ) -> Result<(), RunError> {
        let mut active_runs = active_runs.iter_mut();
        let Some(active) = active_runs.find(|active| active.order.experiment.id == experiment)
        else {
            return Ok(());
        };
        storing(
            "record what is measured",
            active.recording.recorder().keep(records),
        )?;
        self.crew.observer.report(&CampaignEvent::Kept {
            experiment,
            records,
        });
        Ok(())
    }

    /// Counts what an experiment at another host measured.
    pub(super) fn receive(
        &mut self,
        active_runs: &mut [ActiveRun],
        experiment: ExperimentId,
        folder: PathBuf,
    ) -> Result<(), RunError> {
        let mut active_runs = active_runs.iter_mut();
        let Some(active) = active_runs.find(|active| active.order.experiment.id == experiment)
        else {
            return Ok(());
        };
        let observer = &mut *self.crew.observer;
        active.recording.journals(folder, &mut |messages, fleet| {
            observer.report(&CampaignEvent::Received {
                experiment,
                messages,
                fleet,
            });
        })
    }
}
