//! Takes the messages of a running fleet: into the journal of the open segment, and each full
//! segment on to the thread that closes it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use neph_model::FleetMessage;

use super::journal::Writer;
use super::{FleetPlace, SEGMENT_MESSAGES, SEGMENT_TIME, close};
use crate::StoreError;
use crate::columns::FileFacts;

/// The only writer of one experiment's fleet. Dropped, it waits for the segment that is being
/// closed; the open one keeps its journal.
#[derive(Debug)]
pub(crate) struct FleetRecorder {
    place: FleetPlace,
    facts: FileFacts,
    open: Option<Open>,
    /// The number of the next segment.
    next: u32,
    closer: Option<Closer>,
}

/// The open segment.
#[derive(Debug)]
struct Open {
    number: u32,
    writer: Writer,
    messages: u64,
    /// When the first of its messages was sent.
    begun: i64,
}

impl FleetRecorder {
    /// Of an experiment of which nothing was recorded.
    pub(crate) fn new(place: FleetPlace, facts: FileFacts) -> Result<Self, StoreError> {
        place.make()?;
        Ok(Self {
            place,
            facts,
            open: None,
            next: 1,
            closer: None,
        })
    }

    pub(crate) fn append(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        if let Some(error) = self.closer.as_ref().and_then(Closer::failure) {
            return Err(error);
        }
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
            return Ok(());
        };
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(first)?,
        };
        let appended = open.writer.append(messages);
        if appended.is_ok() {
            open.messages += messages.len() as u64;
        }
        let lasted = last.sent.nanos().saturating_sub(open.begun);
        if open.messages >= SEGMENT_MESSAGES || lasted >= SEGMENT_TIME {
            self.hand_over(open.number)?;
        } else {
            self.open = Some(open);
        }
        appended
    }

    fn begin(&mut self, first: &FleetMessage) -> Result<Open, StoreError> {
        let number = self.next;
        let writer = Writer::create(&self.place, number)?;
        self.next += 1;
        Ok(Open {
            number,
            writer,
            messages: 0,
            begun: first.sent.nanos(),
        })
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
        let told = Arc::clone(&failed);
        let folder = place.segments.clone();
        let thread = Builder::new()
            .name("neph-segments".to_owned())
            .spawn(move || close_each(&place, &facts, &waiting, &told))
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
    told: &Mutex<Option<StoreError>>,
) {
    for number in waiting {
        if let Err(error) = close(place, number, facts, &mut |_| Ok(())) {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
    }
}
