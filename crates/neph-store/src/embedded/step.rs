//! The steps of an experiment's life on disk. A test can stop after each of them.

#[cfg(test)]
use std::cell::Cell;

use crate::StoreError;
use crate::fleet::SegmentStep;

/// A completed step. A kill after any of them loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Begin: the journal exists, the catalog does not know the experiment. Recovery removes the
    /// journal, which is empty: nothing was acknowledged yet.
    JournalCreated,
    /// Begin: the catalog has the status running.
    ExperimentAdded,
    /// End: a segment of the fleet is in a file with a temporary name. Recovery writes it once
    /// more.
    SegmentWritten,
    /// End: the segment has its name; its journal still exists with the same contents. Recovery
    /// writes it once more.
    SegmentNamed,
    /// End: the segment's journal is removed. Recovery continues with the next one.
    SegmentJournalRemoved,
    /// End: the messages are in a file with a temporary name. Recovery writes them once more.
    ColumnsWritten,
    /// End: the file has its name, the catalog still has the status running. Recovery rewrites the
    /// file from the journal, which still exists.
    ColumnsNamed,
    /// End: the catalog has the final status; the journal is superfluous. Recovery removes it.
    EndRecorded,
    /// End: complete.
    JournalRemoved,
    /// Reduction: the catalog has the minutes and marks the experiment as reduced. Recovery removes
    /// the messages.
    Reduced,
    /// Reduction: the file of messages is removed, those of a fleet still exist. Recovery removes
    /// them.
    MessagesRemoved,
}

impl From<SegmentStep> for Step {
    fn from(step: SegmentStep) -> Self {
        match step {
            SegmentStep::Written => Self::SegmentWritten,
            SegmentStep::Named => Self::SegmentNamed,
            SegmentStep::JournalRemoved => Self::SegmentJournalRemoved,
        }
    }
}

#[cfg(test)]
impl Step {
    pub(super) const ALL: [Self; 9] = [
        Self::JournalCreated,
        Self::ExperimentAdded,
        Self::SegmentWritten,
        Self::SegmentNamed,
        Self::SegmentJournalRemoved,
        Self::ColumnsWritten,
        Self::ColumnsNamed,
        Self::EndRecorded,
        Self::JournalRemoved,
    ];
}

/// Lets every step pass, except the one that a test chose.
#[derive(Debug, Default)]
pub(super) struct Gate {
    #[cfg(test)]
    stop_after: Cell<Option<Step>>,
}

impl Gate {
    #[cfg(not(test))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "only a test can stop here"
    )]
    pub(super) const fn passed(&self, _step: Step) -> Result<(), StoreError> {
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn passed(&self, step: Step) -> Result<(), StoreError> {
        if self.stop_after.get() == Some(step) {
            return Err(StoreError::Stopped);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn stop_after(&self, step: Step) {
        self.stop_after.set(Some(step));
    }
}
