//! What can go wrong with a journal.

use std::io;
use std::path::{Path, PathBuf};

use neph_model::RecordError;

/// A journal could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system refused a file operation.
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A record larger than the journal takes.
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
        /// Where the record begins.
        start: u64,
    },
}

impl JournalError {
    /// Whether the disk had no room: what is there is whole, and more fits once there is.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::File { source, .. } if is_disk_full(source))
    }

    /// For `map_err`: a file operation that failed.
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

/// Whether a file operation failed because the disk, or the user's part of it, had no room.
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
