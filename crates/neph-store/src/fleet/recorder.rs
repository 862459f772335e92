//! Records a running fleet: writes messages to the journal of the open segment and passes full
//! segments to the thread that closes them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use neph_journal::FleetWriter;
use neph_model::FleetMessage;

use super::{FleetPlace, close};
use crate::StoreError;
use crate::columns::FileFacts;

/// The only writer of one experiment's fleet. `drop` waits until full segments are closed; the
/// journal of the open segment stays.
#[derive(Debug)]
pub(crate) struct FleetRecorder {
    fleet_files: FleetPlace,
    facts: FileFacts,
    writer: FleetWriter,
    closer: Option<SegmentCloser>,
}

impl FleetRecorder {
    /// For an experiment without records.
    pub(crate) fn new(fleet_files: FleetPlace, facts: FileFacts) -> Result<Self, StoreError> {
        fleet_files.make()?;
        Ok(Self {
            writer: FleetWriter::new(&fleet_files.journals, fleet_files.experiment),
            fleet_files,
            facts,
            closer: None,
        })
    }

    pub(crate) fn append(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        if let Some(error) = self.closer.as_ref().and_then(SegmentCloser::failure) {
            return Err(error);
        }
        match self.writer.append(messages)? {
            Some(full) => self.hand_over(full),
            None => Ok(()),
        }
    }

    fn hand_over(&mut self, number: u32) -> Result<(), StoreError> {
        if self.closer.is_none() {
            self.closer = Some(SegmentCloser::start(
                self.fleet_files.clone(),
                self.facts.clone(),
            )?);
        }
        if let Some(SegmentCloser {
            full: Some(full), ..
        }) = &self.closer
        {
            // If the thread failed and ended, the next call returns its error.
            let _gone = full.send(number);
        }
        Ok(())
    }
}

/// The thread that closes segments. A waiting segment needs four bytes of memory and its journal on
/// disk. So a slow disk needs disk space, but no memory, and never delays the measurement.
#[derive(Debug)]
struct SegmentCloser {
    /// `None` while the thread ends.
    full: Option<Sender<u32>>,
    failed: Arc<Mutex<Option<StoreError>>>,
    thread: Option<JoinHandle<()>>,
}

impl SegmentCloser {
    fn start(fleet_files: FleetPlace, facts: FileFacts) -> Result<Self, StoreError> {
        let (full, waiting) = channel();
        let failed = Arc::new(Mutex::new(None));
        let failure_slot = Arc::clone(&failed);
        let folder = fleet_files.segments.clone();
        let thread = Builder::new()
            .name("neph-segments".to_owned())
            .spawn(move || close_each(&fleet_files, &facts, &waiting, &failure_slot))
            .map_err(StoreError::file("start a thread that writes", &folder))?;
        Ok(Self {
            full: Some(full),
            failed,
            thread: Some(thread),
        })
    }

    /// The error of the thread; returned once.
    fn failure(&self) -> Option<StoreError> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take()
    }
}

impl Drop for SegmentCloser {
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            // The experiment's end or recovery closes the remaining segments.
            let _ended = thread.join();
        }
    }
}

fn close_each(
    fleet_files: &FleetPlace,
    facts: &FileFacts,
    waiting: &Receiver<u32>,
    failure_slot: &Mutex<Option<StoreError>>,
) {
    for number in waiting {
        if let Err(error) = close(fleet_files, number, facts, &mut |_| Ok(())) {
            *failure_slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
    }
}
