//! Errors of a store, each with the failed operation and its object.

use std::io;
use std::path::{Path, PathBuf};

use neph_journal::{JournalError, is_disk_full};
use neph_model::{ExperimentId, ExperimentStatus, RecordError};
use parquet::errors::ParquetError;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused a file operation.
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    File {
        /// The operation.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("cannot {operation} in {path}: {source}", path = path.display())]
    Catalog {
        /// The operation.
        operation: &'static str,
        /// The catalog's file.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// A file of messages could not be written or read.
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    Columns {
        /// The operation.
        operation: &'static str,
        /// The Parquet file.
        path: PathBuf,
        /// The cause.
        source: ParquetError,
    },
    /// Single messages were requested that a retention policy has removed.
    #[error(
        "the messages of experiment {experiment} were replaced by a histogram for each minute, and this needs single \
         messages; neph show {experiment} shows what is kept"
    )]
    Reduced {
        /// The experiment.
        experiment: ExperimentId,
    },
    /// A minute of a reduced experiment that cannot be read.
    #[error("minute {minute} of experiment {experiment} is damaged or of another version of neph")]
    Minute {
        /// The experiment.
        experiment: ExperimentId,
        /// The minute, from 0.
        minute: u32,
    },
    /// Stored bytes that this version cannot interpret.
    #[error("{path} is damaged or not ours: {reason}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another process has the workspace open for writing.
    #[error(
        "the workspace {path} is being written by another neph{writer}: wait until it ends, or use another workspace",
        path = path.display()
    )]
    Locked {
        /// The workspace.
        path: PathBuf,
        /// ` (process 123)`; empty if the lock file has no process id.
        writer: String,
    },
    /// A write operation on a workspace that was opened for reading.
    #[error("cannot {operation}: {path} was opened for reading only", path = path.display())]
    ReadOnly {
        /// The operation.
        operation: &'static str,
        /// The workspace.
        path: PathBuf,
    },
    /// A newer version created the catalog.
    #[error(
        "{path} has schema version {found}, and this neph knows none above {known}: use the neph that wrote it, or a newer one",
        path = path.display()
    )]
    NewerSchema {
        /// The catalog's file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The highest version that this program knows.
        known: u32,
    },
    /// The catalog is older than this program can read, and reading must not change it.
    #[error(
        "{path} has schema version {found}, older than {known}: `neph resume` or any measurement into this workspace brings it up to date",
        path = path.display()
    )]
    OlderSchema {
        /// The catalog's file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this program writes.
        known: u32,
    },
    /// Reading a workspace that does not exist.
    #[error("there is no workspace at {path}: neph run and neph flows --save make one", path = path.display())]
    NoWorkspace {
        /// The expected path.
        path: PathBuf,
    },
    /// A URL whose scheme is not in [`crate::STORES`].
    #[error("no store answers to '{scheme}://' (known: {known})")]
    UnknownScheme {
        /// The requested scheme.
        scheme: String,
        /// The known schemes.
        known: String,
    },
    /// `finish` with an experiment that is not the recorder's, or that is still running.
    #[error("cannot finish experiment {experiment}: {reason}")]
    WrongFinish {
        /// The experiment.
        experiment: ExperimentId,
        /// What is wrong.
        reason: String,
    },
    /// `begin` with an experiment that the store already has.
    #[error("experiment {experiment} is in the store already ({}): an experiment is recorded once", status.name())]
    ExperimentExists {
        /// The experiment.
        experiment: ExperimentId,
        /// Its status.
        status: ExperimentStatus,
    },
    /// Taking in an experiment without a journal.
    #[error(
        "cannot take in experiment {experiment}: there is no journal {path}; copy the folder again from the \
         host that measured", path = path.display()
    )]
    NoJournal {
        /// The experiment.
        experiment: ExperimentId,
        /// The expected path.
        path: PathBuf,
    },
    /// Taking in an ended experiment whose journal lacks some of its messages.
    #[error(
        "cannot take in experiment {experiment}: its journal has {found} of {expected} messages; copy the \
         folder again from the host that measured"
    )]
    JournalCutOff {
        /// The experiment.
        experiment: ExperimentId,
        /// Messages of its main flow, or of its fleet, in the journal.
        found: u64,
        /// Messages that it had at its end.
        expected: u64,
    },
    /// An experiment that is not in the catalog.
    #[error("there is no experiment {experiment} in {path}", path = path.display())]
    UnknownExperiment {
        /// The experiment.
        experiment: ExperimentId,
        /// The workspace.
        path: PathBuf,
    },
    /// A journal could not be written or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A recorder could not store a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An export could not be written.
    #[error("cannot write the {format} export: {source}")]
    Output {
        /// The format.
        format: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A folder without importable files.
    #[error("nothing to import in {path}: {reason}", path = path.display())]
    NothingToImport {
        /// The folder.
        path: PathBuf,
        /// What was missing.
        reason: String,
    },
    /// A test stopped the work here, as a kill would.
    #[cfg(test)]
    #[error("stopped by a test")]
    Stopped,
}

impl StoreError {
    /// Whether the disk is full: stored data is intact, and a retry succeeds once there is space.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::File { source, .. } | Self::Output { source, .. } => is_disk_full(source),
            Self::Catalog { source, .. } => {
                source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
            }
            Self::Columns {
                source: ParquetError::External(source),
                ..
            } => source.downcast_ref().is_some_and(is_disk_full),
            Self::Journal(error) => error.is_disk_full(),
            Self::Record(error) => error.is_disk_full(),
            _ => false,
        }
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
    /// For `map_err`: a Parquet operation that failed.
    pub(crate) fn columns(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(ParquetError) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Columns {
            operation,
            path,
            source,
        }
    }
    /// For `map_err`: an export that could not be written.
    pub(crate) fn output(format: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Output { format, source }
    }
}

impl From<StoreError> for RecordError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Record(error) => error,
            error if error.is_disk_full() => Self::disk_full(error),
            error => Self::new(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_a_full_disk_is_recognised() {
        let path = || PathBuf::from("there");
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let sqlite = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let catalog = |source| StoreError::Catalog {
            operation: "read",
            path: path(),
            source,
        };
        let columns = |source| StoreError::Columns {
            operation: "write",
            path: path(),
            source: ParquetError::External(source),
        };
        assert!(StoreError::file("write", &path())(full()).is_disk_full());
        assert!(StoreError::output("CSV")(full()).is_disk_full());
        assert!(catalog(sqlite(rusqlite::ffi::SQLITE_FULL)).is_disk_full());
        assert!(!catalog(sqlite(rusqlite::ffi::SQLITE_BUSY)).is_disk_full());
        assert!(columns(Box::new(full())).is_disk_full());
        let recorded = RecordError::from(StoreError::file("write", &path())(full()));
        assert!(recorded.is_disk_full() && StoreError::from(recorded).is_disk_full());
        assert!(!StoreError::NoWorkspace { path: path() }.is_disk_full());
    }
}
