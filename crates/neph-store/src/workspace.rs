//! The folder of an embedded store: its paths and its write lock.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use neph_journal::{fleet_folder, journal_path};
use neph_model::ExperimentId;

use crate::StoreError;
use crate::fleet::FleetFolders;

/// How long a writer waits for a short-lived holder of the lock. That is a reader that checks for a
/// writer, or a child of the last writer before its `exec`.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Paths within one workspace.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

/// Held by the writer until it ends. The kernel releases it at any end of the process, so a kill -9
/// leaves no stale lock.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: File,
}

impl Workspace {
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
    pub(crate) fn catalog_path(&self) -> PathBuf {
        self.root.join("catalog.sqlite")
    }
    pub(crate) fn messages_folder(&self) -> PathBuf {
        self.root.join("messages")
    }
    pub(crate) fn messages_path(&self, experiment: ExperimentId) -> PathBuf {
        self.messages_folder().join(format!("{experiment}.parquet"))
    }
    /// Temporary name of a file of messages until it is complete.
    pub(crate) fn partial_messages_path(&self, experiment: ExperimentId) -> PathBuf {
        self.messages_folder()
            .join(format!(".{experiment}.partial"))
    }
    /// Paths of the messages of an experiment's fleet.
    pub(crate) fn fleet_folders(&self, experiment: ExperimentId) -> FleetFolders {
        FleetFolders {
            experiment,
            segments: self.messages_folder().join(format!("{experiment}.fleet")),
            journals: fleet_folder(&self.journals_folder(), experiment),
        }
    }
    pub(crate) fn journals_folder(&self) -> PathBuf {
        self.root.join("journal")
    }
    pub(crate) fn journal_path(&self, experiment: ExperimentId) -> PathBuf {
        journal_path(&self.journals_folder(), experiment)
    }

    /// Creates missing folders.
    pub(crate) fn create_folders(&self) -> Result<(), StoreError> {
        for folder in [self.messages_folder(), self.journals_folder()] {
            fs::create_dir_all(&folder).map_err(StoreError::file("make the folder", &folder))?;
        }
        Ok(())
    }

    /// Locks the workspace for writing.
    pub(crate) fn lock(&self) -> Result<WriteLock, StoreError> {
        let path = self.root.join("lock");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(StoreError::file("open", &path))?;
        match lock_with_timeout(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked {
                    path: self.root.clone(),
                    writer: read_writer(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => {
                return Err(StoreError::file("lock", &path)(source));
            }
        }
        // The process id is only for users; the lock does not depend on it.
        file.set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(StoreError::file("write", &path))?;
        Ok(WriteLock { _file: file })
    }
}

impl Workspace {
    /// Whether a process has it open for writing. Checks with a shared lock, which is released at
    /// once.
    pub(crate) fn is_locked(&self) -> Result<bool, StoreError> {
        let path = self.root.join("lock");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(StoreError::file("open", &path)(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(StoreError::file("lock", &path)(source)),
        }
    }
}

/// Takes the lock; retries for [`LOCK_TIMEOUT`] while another process has it.
#[expect(
    clippy::disallowed_methods,
    reason = "this crate may not use neph-sys, and no lock of a file has a deadline"
)]
fn lock_with_timeout(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(RETRY_INTERVAL);
            }
            result => return result,
        }
    }
}

fn read_writer(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.is_empty() => format!(" (process {text})"),
        _ => String::new(),
    }
}

/// Makes a rename or removal in `folder` survive a power failure.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::file("sync the folder", folder))
}

/// Removes a file if it exists.
pub(crate) fn remove_if_exists(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
    fn a_writer_waits_for_a_reader_that_checks_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::at(folder.path());
        let reader_lock = File::create(folder.path().join("lock")).expect("a file");
        reader_lock.try_lock_shared().expect("free");
        let reader = thread::spawn(move || {
            thread::sleep(LOCK_TIMEOUT / 8);
            drop(reader_lock);
        });
        workspace.lock().expect("nobody writes");
        reader.join().expect("it looked");
    }

    #[test]
    fn a_workspace_has_one_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::at(folder.path());
        let _writer_lock = workspace.lock().expect("free");
        let error = workspace.lock().expect_err("taken");
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    }
}
