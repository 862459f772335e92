//! Errors of journals.

use std::io;
use std::path::{Path, PathBuf};

use neph_model::RecordError;

/// Writing or reading a journal failed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    File {
        /// The operation.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A record above the maximum size.
    #[error("a record of {bytes} bytes is too large for the journal {path}", path = path.display())]
    TooLarge {
        /// The journal.
        path: PathBuf,
        /// Its size.
        bytes: usize,
    },
    /// A record changed between two reads of it.
    #[error("{path} is damaged or not ours: the record at byte {start} changed while it was read", path = path.display())]
    Changed {
        /// The journal.
        path: PathBuf,
        /// The offset of the record.
        start: u64,
    },
}

impl JournalError {
    /// Whether the disk was full: the journal is intact, and can grow once there is space.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::File { source, .. } if is_disk_full(source))
    }

    /// For `map_err`: a failed file operation.
    pub(crate) fn file(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File {
            operation,
            path,
            source,
        }
    }
}

/// Whether a file operation failed because the disk or the user's quota was full.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

impl From<JournalError> for RecordError {
    fn from(error: JournalError) -> Self {
        if error.is_disk_full() {
            Self::disk_full(error)
        } else {
            Self::new(error)
        }
    }
}
