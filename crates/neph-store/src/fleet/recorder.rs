//! Records a running fleet: writes messages to the journal of the open segment and passes full
//! segments to the thread that closes them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use neph_journal::FleetWriter;
use neph_model::FleetMessage;

use super::{FleetFolders, close};
use crate::StoreError;
use crate::columns::FileMetadata;

/// The only writer of one experiment's fleet. `drop` waits until full segments are closed; the
/// journal of the open segment stays.
#[derive(Debug)]
pub(crate) struct FleetRecorder {
    fleet_folders: FleetFolders,
    metadata: FileMetadata,
    writer: FleetWriter,
    closer: Option<SegmentCloser>,
}

impl FleetRecorder {
    /// For an experiment without records.
    pub(crate) fn new(
        fleet_folders: FleetFolders,
        metadata: FileMetadata,
    ) -> Result<Self, StoreError> {
        fleet_folders.create()?;
        Ok(Self {
            writer: FleetWriter::new(&fleet_folders.journals, fleet_folders.experiment),
            fleet_folders,
            metadata,
            closer: None,
        })
    }

    pub(crate) fn append(&mut self, messages: &[FleetMessage]) -> Result<(), StoreError> {
        if let Some(error) = self.closer.as_ref().and_then(SegmentCloser::take_failure) {
            return Err(error);
        }
        match self.writer.append(messages)? {
            Some(full_segment) => self.close_segment(full_segment),
            None => Ok(()),
        }
    }

    fn close_segment(&mut self, number: u32) -> Result<(), StoreError> {
        if self.closer.is_none() {
            self.closer = Some(SegmentCloser::start(
                self.fleet_folders.clone(),
                self.metadata.clone(),
            )?);
        }
        if let Some(SegmentCloser {
            full_segments: Some(full_segments),
            ..
        }) = &self.closer
        {
            // If the thread failed and ended, the next call returns its error.
            let _send_result = full_segments.send(number);
        }
        Ok(())
    }
}

/// The thread that closes segments. A waiting segment needs four bytes of memory and its journal on
/// disk. So a slow disk needs disk space, but no memory, and never delays the measurement.
#[derive(Debug)]
struct SegmentCloser {
    /// `None` while the thread ends.
    full_segments: Option<Sender<u32>>,
    failure: Arc<Mutex<Option<StoreError>>>,
    thread: Option<JoinHandle<()>>,
}

impl SegmentCloser {
    fn start(fleet_folders: FleetFolders, metadata: FileMetadata) -> Result<Self, StoreError> {
        let (full_segments, segment_numbers) = channel();
        let failure = Arc::new(Mutex::new(None));
        let thread_failure = Arc::clone(&failure);
        let folder = fleet_folders.segments.clone();
        let thread = Builder::new()
            .name("neph-segments".to_owned())
            .spawn(move || {
                close_segments(&fleet_folders, &metadata, &segment_numbers, &thread_failure);
            })
            .map_err(StoreError::file("start a thread that writes", &folder))?;
        Ok(Self {
            full_segments: Some(full_segments),
            failure,
            thread: Some(thread),
        })
    }

    /// The error of the thread; returned once.
    fn take_failure(&self) -> Option<StoreError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

impl Drop for SegmentCloser {
    fn drop(&mut self) {
        self.full_segments = None;
        if let Some(thread) = self.thread.take() {
            // The experiment's end or recovery closes the remaining segments.
            let _ended = thread.join();
        }
    }
}

fn close_segments(
    fleet_folders: &FleetFolders,
    metadata: &FileMetadata,
    segment_numbers: &Receiver<u32>,
    failure: &Mutex<Option<StoreError>>,
) {
    for number in segment_numbers {
        if let Err(error) = close(fleet_folders, number, metadata, &mut |_| Ok(())) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
    }
}
