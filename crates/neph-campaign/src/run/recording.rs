//! Where results of an experiment go: record by record into the store, or all at its end.
//!
//! Owns the difference. If the journals of an experiment come from another host, the store gets nothing
//! before all are here. A kill in between leaves either all of them or nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use neph_journal::{Contents, JournalError, fleet_folder, journal_path, visit_fleet};
use neph_model::{
    Event, Experiment, ExperimentId, FleetMessage, FlowTrace, Message, Provenance, RecordError,
    Recorder, Sample,
};
use neph_store::{Journalled, Store};

use super::{RunError, map_store_error};
use crate::meter::{Meter, MeteredRecorder};

/// Messages that are looked at together.
const BATCH_MESSAGES: usize = 1000;

/// Where an experiment's records go.
pub(super) enum Recording {
    /// Into the store, as they come.
    Direct(MeteredRecorder),
    /// They are in a journal that comes at the end.
    FromJournal(JournalRecording),
}

/// What has come of an experiment that is measured by another host.
pub(super) struct JournalRecording {
    metered: MeteredRecorder,
    found_events: Arc<Mutex<Vec<Event>>>,
    meter: Arc<Mutex<Meter>>,
    /// The folder of its journals, once they are here.
    folder: Option<PathBuf>,
}

/// How an experiment ended.
pub(super) struct ExperimentOutcome<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) provenance: &'a Provenance,
    pub(super) flow_trace: Option<&'a FlowTrace>,
}

impl Recording {
    /// Begins in the store.
    pub(super) fn direct(recorder: Box<dyn Recorder>, meter: &Arc<Mutex<Meter>>) -> Self {
        Self::Direct(MeteredRecorder::new(recorder, Arc::clone(meter)))
    }

    /// Waits for a journal.
    pub(super) fn from_journal(experiment: ExperimentId, meter: &Arc<Mutex<Meter>>) -> Self {
        let found_events = Arc::default();
        let found_event_recorder = FoundEventRecorder {
            experiment,
            found_events: Arc::clone(&found_events),
        };
        Self::FromJournal(JournalRecording {
            metered: MeteredRecorder::new(Box::new(found_event_recorder), Arc::clone(meter)),
            found_events,
            meter: Arc::clone(meter),
            folder: None,
        })
    }

    /// The recorder for alarms and other findings of this process.
    pub(super) const fn recorder(&mut self) -> &mut MeteredRecorder {
        match self {
            Self::Direct(recorder) => recorder,
            Self::FromJournal(journal_recording) => &mut journal_recording.metered,
        }
    }

    /// Its journals are here: what is in them is counted.
    /// `visitor` gets the messages too.
    pub(super) fn read_journals(
        &mut self,
        folder: PathBuf,
        visitor: &mut dyn FnMut(&[Message], &[FleetMessage]),
    ) -> Result<(), RunError> {
        let Self::FromJournal(journal_recording) = self else {
            return Ok(());
        };
        let result = journal_recording.read_journal(&folder, visitor);
        journal_recording.folder = Some(folder);
        result
    }

    /// Ends the experiment in the store.
    pub(super) fn finish(
        self,
        store: &mut dyn Store,
        outcome: &ExperimentOutcome<'_>,
    ) -> Result<(), RunError> {
        let recorder = match self {
            Self::Direct(recorder) => recorder.into_inner(),
            Self::FromJournal(journal_recording) => {
                let found_events = lock(&journal_recording.found_events).clone();
                let Some(folder) = journal_recording.folder else {
                    return store_without_journal(store, outcome, &found_events);
                };
                let result = store.take_in(&Journalled {
                    folder: &folder,
                    experiment: outcome.experiment,
                    provenance: Some(outcome.provenance),
                    events: &found_events,
                    flow_trace: outcome.flow_trace,
                });
                return map_store_error("take in an experiment", result).map(drop);
            }
        };
        add_trace(store, outcome)?;
        let finished = store.finish(recorder, outcome.experiment, outcome.provenance);
        map_store_error("finish an experiment", finished)
    }
}

fn add_trace(store: &mut dyn Store, outcome: &ExperimentOutcome<'_>) -> Result<(), RunError> {
    let Some(trace) = outcome.flow_trace else {
        return Ok(());
    };
    let added = store.add_flow_trace(outcome.experiment.id, trace);
    map_store_error("add the routes of flows", added)
}

/// An experiment of which nothing was recorded.
fn store_without_journal(
    store: &mut dyn Store,
    outcome: &ExperimentOutcome<'_>,
    found_events: &[Event],
) -> Result<(), RunError> {
    let recorder_result = store.begin(outcome.experiment);
    let mut recorder = map_store_error("begin an experiment", recorder_result)?;
    for event in found_events {
        map_store_error("record what happened", recorder.event(event))?;
    }
    add_trace(store, outcome)?;
    let finished = store.finish(recorder, outcome.experiment, outcome.provenance);
    map_store_error("finish an experiment", finished)
}

impl JournalRecording {
    fn read_journal(
        &mut self,
        folder: &Path,
        visitor: &mut dyn FnMut(&[Message], &[FleetMessage]),
    ) -> Result<(), RunError> {
        let id = self.metered.experiment();
        let path = journal_path(folder, id);
        let contents = map_store_error("read a journal", Contents::of(&path, id))?;
        let Some(contents) = contents else {
            return Ok(());
        };
        for event in &contents.events {
            crate::meter::lock(&self.meter).record_event(event);
        }
        let mut batch = Vec::with_capacity(BATCH_MESSAGES);
        contents.each_message(|message| {
            batch.push(message);
            if batch.len() == BATCH_MESSAGES {
                self.count(&batch)?;
                visitor(&batch, &[]);
                batch.clear();
            }
            Ok::<(), RunError>(())
        })?;
        self.count(&batch)?;
        visitor(&batch, &[]);
        let mut count_fleet = |batch: &[FleetMessage]| {
            map_store_error("count what was measured", self.metered.fleet(batch))?;
            visitor(&[], batch);
            Ok::<(), RunError>(())
        };
        visit_fleet(&fleet_folder(folder, id), id, &mut count_fleet)?;
        let samples = contents.samples.iter();
        for sample in samples {
            map_store_error("count what was measured", self.metered.sample(sample))?;
        }
        Ok(())
    }

    fn count(&mut self, batch: &[Message]) -> Result<(), RunError> {
        map_store_error("count what was measured", self.metered.messages(batch))
    }
}

/// Keeps the events that are found here; what was recorded is in the journal.
#[derive(Debug)]
struct FoundEventRecorder {
    experiment: ExperimentId,
    found_events: Arc<Mutex<Vec<Event>>>,
}

fn lock(found_events: &Mutex<Vec<Event>>) -> std::sync::MutexGuard<'_, Vec<Event>> {
    found_events
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Recorder for FoundEventRecorder {
    fn experiment(&self) -> ExperimentId {
        self.experiment
    }
    fn messages(&mut self, _messages: &[Message]) -> Result<(), RecordError> {
        Ok(())
    }
    fn fleet(&mut self, _messages: &[FleetMessage]) -> Result<(), RecordError> {
        Ok(())
    }
    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        lock(&self.found_events).push(event.clone());
        Ok(())
    }
    fn sample(&mut self, _sample: &Sample) -> Result<(), RecordError> {
        Ok(())
    }
}

impl From<JournalError> for RunError {
    fn from(source: JournalError) -> Self {
        Self::Store {
            operation: "read a journal",
            source: source.into(),
        }
    }
}
