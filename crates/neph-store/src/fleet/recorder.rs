//! Takes the messages of a running fleet: into the journal of the open segment, and each full
//! segment on to the thread that closes it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use neph_journal::FleetWriter;
use neph_model::FleetMessage;

use super::{FleetPlace, close};
use crate::StoreError;
use crate::columns::FileFacts;

/// The only writer of one experiment's fleet. Dropped, it waits for the segment that is being
/// closed; the open one keeps its journal.
#[derive(Debug)]
pub(crate) struct FleetRecorder {
    place: FleetPlace,
    facts: FileFacts,
    writer: FleetWriter,
    closer: Option<Closer>,
}

impl FleetRecorder {
    /// Of an experiment of which nothing was recorded.
    pub(crate) fn new(place: FleetPlace, facts: FileFacts) -> Result<Self, StoreError> {
        place.make()?;
        Ok(Self {
            writer: FleetWriter::new(&place.journals, place.experiment),
            place,
            facts,
            closer: None,
        })
    }

    pub(crate) fn append(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        if let Some(error) = self.closer.as_ref().and_then(Closer::failure) {
            return Err(error);
        }
        match self.writer.append(messages)? {
            Some(full) => self.hand_over(full),
            None => Ok(()),
        }
    }

    fn hand_over(&mut self, number: u32) -> Result<(), StoreError> {
        if self.closer.is_none() {
            self.closer = Some(Closer::start(self.place.clone(), self.facts.clone())?);
        }
        if let Some(Closer {
            full: Some(full), ..
        }) = &self.closer
        {
            // A closer that failed has gone; its failure is told by the next call.
            let _gone = full.send(number);
        }
        Ok(())
    }
}

/// The thread that closes segments. A number waits for it in four bytes, a journal on the disk: so
/// a slow disk costs room on it, never memory and never the measurement's time.
#[derive(Debug)]
struct Closer {
    /// `None` while it is being ended.
    full: Option<Sender<u32>>,
    failed: Arc<Mutex<Option<StoreError>>>,
    thread: Option<JoinHandle<()>>,
}

impl Closer {
    fn start(place: FleetPlace, facts: FileFacts) -> Result<Self, StoreError> {
        let (full, waiting) = channel();
        let failed = Arc::new(Mutex::new(None));
        let reported = Arc::clone(&failed);
        let folder = place.segments.clone();
        let thread = Builder::new()
            .name("neph-segments".to_owned())
            .spawn(move || close_each(&place, &facts, &waiting, &reported))
            .map_err(StoreError::file("start a thread that writes", &folder))?;
        Ok(Self {
            full: Some(full),
            failed,
            thread: Some(thread),
        })
    }

    /// Why it gave up, told once.
    fn failure(&self) -> Option<StoreError> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take()
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            // Whatever it did not close is closed at the experiment's end, or by recovery.
            let _ended = thread.join();
        }
    }
}

fn close_each(
    place: &FleetPlace,
    facts: &FileFacts,
    waiting: &Receiver<u32>,
    reported: &Mutex<Option<StoreError>>,
) {
    for number in waiting {
        if let Err(error) = close(place, number, facts, &mut |_| Ok(())) {
            *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
    }
}
