//! What can go wrong in a store, each with the operation and the place.

use std::io;
use std::path::{Path, PathBuf};

use neph_journal::{JournalError, is_disk_full};
use neph_model::{ExperimentId, ExperimentStatus, RecordError};
use parquet::errors::ParquetError;

/// A store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
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
    /// SQLite refused.
    #[error("cannot {operation} in {path}: {source}", path = path.display())]
    Catalog {
        /// What was tried.
        operation: &'static str,
        /// The catalog's file.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// A file of messages could not be written or read.
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    Columns {
        /// What was tried.
        operation: &'static str,
        /// The Parquet file.
        path: PathBuf,
        /// Why not.
        source: ParquetError,
    },
    /// Single messages were asked for, which a retention policy has removed.
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
        /// Which minute, from 0.
        minute: u32,
    },
    /// Stored bytes that mean nothing to this version.
    #[error("{path} is damaged or not ours: {what}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// Somebody else holds the workspace for writing.
    #[error(
        "the workspace {path} is being written by another neph{writer}: wait until it ends, or use another workspace",
        path = path.display()
    )]
    Locked {
        /// The workspace.
        path: PathBuf,
        /// ` (process 123)`, or nothing if the holder left no number.
        writer: String,
    },
    /// A writing operation on a workspace that was opened for reading.
    #[error("cannot {operation}: {path} was opened for reading only", path = path.display())]
    ReadOnly {
        /// What was tried.
        operation: &'static str,
        /// The workspace.
        path: PathBuf,
    },
    /// The catalog was made by a newer version.
    #[error(
        "{path} has schema version {found}, and this neph knows none above {known}: use the neph that wrote it, or a newer one",
        path = path.display()
    )]
    NewerSchema {
        /// The catalog's file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The highest version known here.
        known: u32,
    },
    /// The catalog is older than this version, and reading must not change it.
    #[error(
        "{path} has schema version {found}, older than {known}: `neph resume` or any measurement into this workspace brings it up to date",
        path = path.display()
    )]
    OlderSchema {
        /// The catalog's file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version known here.
        known: u32,
    },
    /// Reading where nothing was ever written.
    #[error("there is no workspace at {path}: neph run and neph flows --save make one", path = path.display())]
    NoWorkspace {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A URL whose scheme is not in [`crate::STORES`].
    #[error("no store answers to '{scheme}://' (known: {known})")]
    UnknownScheme {
        /// The scheme asked for.
        scheme: String,
        /// The schemes there are.
        known: String,
    },
    /// An experiment was finished that the recorder does not belong to, or as still running.
    #[error("cannot finish experiment {experiment}: {why}")]
    WrongFinish {
        /// The experiment.
        experiment: ExperimentId,
        /// What is wrong.
        why: String,
    },
    /// An experiment was begun that the store has.
    #[error("experiment {experiment} is in the store already ({}): an experiment is recorded once", status.name())]
    ExperimentExists {
        /// The experiment.
        experiment: ExperimentId,
        /// How it stands.
        status: ExperimentStatus,
    },
    /// An experiment was to be taken in that has no journal.
    #[error(
        "cannot take in experiment {experiment}: there is no journal {path}; copy the folder again from the \
         host that measured", path = path.display()
    )]
    NoJournal {
        /// The experiment.
        experiment: ExperimentId,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// An experiment that ended was to be taken in, and a part of its messages is missing.
    #[error(
        "cannot take in experiment {experiment}: its journal has {found} of {expected} messages; copy the \
         folder again from the host that measured"
    )]
    JournalCutOff {
        /// The experiment.
        experiment: ExperimentId,
        /// Messages of its main flow, or of its fleet, that are there.
        found: u64,
        /// Those that it had when it ended.
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
    /// A recorder could not keep a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An export could not be written out.
    #[error("cannot write the {format} export: {source}")]
    Output {
        /// The format.
        format: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A folder in which nothing could be imported.
    #[error("nothing to import in {path}: {why}", path = path.display())]
    NothingToImport {
        /// The folder.
        path: PathBuf,
        /// What was looked for.
        why: String,
    },
    /// A test ended the work here, as a kill would.
    #[cfg(test)]
    #[error("stopped by a test")]
    Stopped,
}

impl StoreError {
    /// Whether the disk had no room: what is there is whole, and more fits once there is.
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
    fn a_full_disk_is_known_wherever_it_was_met() {
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
