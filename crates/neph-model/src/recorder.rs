//! The contract between a measurement and the storage of its records: a store, or a journal of an
//! agent.

use std::error::Error;
use std::fmt::{self, Debug};

use crate::{Event, ExperimentId, FleetMessage, Message, Sample};

/// Takes the measurements of a running experiment. The arguments of a call are safe once it has
/// returned.
pub trait Recorder: Debug + Send {
    /// The experiment it records.
    fn experiment(&self) -> ExperimentId;

    /// Records messages. Each (flow, seq) is given once.
    ///
    /// # Errors
    /// None of them is recorded.
    fn messages(&mut self, messages: &[Message]) -> Result<(), RecordError>;

    /// Records messages of a fleet. Weeks of them need no more memory than a minute.
    ///
    /// # Errors
    /// None of them is recorded, or work on earlier ones failed, of which nothing is lost.
    fn fleet(&mut self, messages: &[FleetMessage]) -> Result<(), RecordError>;

    /// Records an event.
    ///
    /// # Errors
    /// It is not recorded.
    fn event(&mut self, event: &Event) -> Result<(), RecordError>;

    /// Records a sample.
    ///
    /// # Errors
    /// It is not recorded.
    fn sample(&mut self, sample: &Sample) -> Result<(), RecordError>;
}

/// A recorder could not store a record. It prints as the error of the store or file behind it.
#[derive(Debug)]
pub struct RecordError {
    source: Box<dyn Error + Send + Sync>,
    is_disk_full: bool,
}

impl RecordError {
    /// For any reason but a full disk.
    pub fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            source: Box::new(source),
            is_disk_full: false,
        }
    }

    /// Because the disk has no room.
    pub fn disk_full(source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            is_disk_full: true,
            ..Self::new(source)
        }
    }

    /// Whether the disk was full: the stored data is complete, and more can be stored when there is
    /// room.
    pub const fn is_disk_full(&self) -> bool {
        self.is_disk_full
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
