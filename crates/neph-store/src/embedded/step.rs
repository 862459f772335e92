//! The steps of an experiment's life on disk, and where a test can end it.

#[cfg(test)]
use std::cell::Cell;

use crate::StoreError;
use crate::fleet::SegmentStep;

/// A step that is complete. After each of them a kill must be survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Begin: the journal is there, the catalog knows nothing. Recovery removes the journal, which
    /// is empty: nothing was acknowledged yet.
    JournalMade,
    /// Begin: the catalog says running.
    ExperimentAdded,
    /// End: a segment of the fleet is in a file under a temporary name. Recovery writes it again.
    SegmentWritten,
    /// End: the segment has its name; its journal, which says the same, is still there. Recovery
    /// writes it again.
    SegmentNamed,
    /// End: the segment's journal is gone. Recovery goes on with the next one.
    SegmentJournalRemoved,
    /// End: the messages are in a file under a temporary name. Recovery writes them again.
    ColumnsWritten,
    /// End: the file has its name, the catalog still says running. Recovery writes it again from
    /// the journal, which is still there.
    ColumnsNamed,
    /// End: the catalog says how it ended; the journal is superfluous. Recovery removes it.
    EndRecorded,
    /// End: all done.
    JournalRemoved,
    /// Reduction: the catalog has the minutes, and they count. Recovery removes the messages.
    Reduced,
    /// Reduction: the file of messages is gone; those of a fleet are there. Recovery removes them.
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
        Self::JournalMade,
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

/// Lets every step pass; in a test, all but the one that the test chose.
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
