//! What experiments measure, as it comes: record by record, or whole from another host.

use std::path::PathBuf;

use neph_model::{ExperimentId, Records};

use super::ActiveRun;
use crate::observer::CampaignEvent;
use crate::run::{Run, RunError, map_store_error};

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
        map_store_error(
            "record what is measured",
            active.recording.recorder().record_all(records),
        )?;
        self.participants
            .observer
            .report(&CampaignEvent::RecordsStored {
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
        let observer = &mut *self.participants.observer;
        active
            .recording
            .read_journals(folder, &mut |messages, fleet| {
                observer.report(&CampaignEvent::Received {
                    experiment,
                    messages,
                    fleet,
                });
            })
    }
}
