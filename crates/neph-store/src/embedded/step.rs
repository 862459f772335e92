//! The steps of an experiment's life on disk, and where a test can end it.

#[cfg(test)]
use std::cell::Cell;

use crate::StoreError;

/// A step that is complete. After each of them a kill must be survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Begin: the journal is there, the catalog knows nothing. Recovery removes the journal, which
    /// is empty: nothing was acknowledged yet.
    JournalMade,
    /// Begin: the catalog says running.
    ExperimentAdded,
    /// End: the messages are in a file under a temporary name. Recovery writes them again.
    ColumnsWritten,
    /// End: the file has its name, the catalog still says running. Recovery writes it again from
    /// the journal, which is still there.
    ColumnsNamed,
    /// End: the catalog says how it ended; the journal is superfluous. Recovery removes it.
    EndRecorded,
    /// End: all done.
    JournalRemoved,
}

#[cfg(test)]
impl Step {
    pub(super) const ALL: [Self; 6] = [
        Self::JournalMade,
        Self::ExperimentAdded,
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
