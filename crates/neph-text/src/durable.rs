//! State and key files of neph, at paths that no user chooses. They survive a loss of power, and
//! one process at a time uses them. For files at paths of users see `whole`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::output_file::alongside;

/// Using a state file or folder failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}", path = path.display())]
pub struct DiskError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl DiskError {
    /// Adds the operation and the path to a system error.
    pub fn of(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            operation,
            path,
            source,
        }
    }
}

/// Exclusive use of a folder by this process, until this value is dropped.
///
/// Drop unlocks the file, because closing it is not enough: a forked child has it open until it
/// executes its program.
#[derive(Debug)]
pub struct FolderLock(Option<File>);

impl FolderLock {
    /// Locks a folder; `None` if another process has locked it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn take(folder: &Path) -> Result<Option<Self>, DiskError> {
        let path = folder.join("lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path).map_err(DiskError::of("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(DiskError::of("lock", &path)(error)),
        }
    }

    /// The lock file for a child, which locks the folder as long as it keeps the file open.
    pub fn into_stdio(mut self) -> Stdio {
        self.0.take().map_or_else(Stdio::null, Stdio::from)
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // If this fails, closing the file unlocks it.
            let _ = file.unlock();
        }
    }
}

/// Removes a folder with its contents; succeeds if there is none.
///
/// # Errors
/// The disk refuses.
pub fn remove_folder(path: &Path) -> Result<(), DiskError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(DiskError::of("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Writes a file that is complete when this returns, also after a loss of power. Replaces a file of
/// that name; other users cannot read it.
///
/// # Errors
/// The disk refuses.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = alongside(path)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(&partial)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_locked_by_one_owner_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let take = || FolderLock::take(folder.path()).expect("writable");
        let first = take();
        assert!(first.is_some());
        assert!(take().is_none());
        // Like a forked child that has not executed its program yet.
        let file = first.as_ref().and_then(|lock| lock.0.as_ref());
        let forked = file.map(File::try_clone);
        drop(first);
        assert!(take().is_some());
        drop(forked);
        let handed_over = take().expect("free").into_stdio();
        assert!(take().is_none());
        drop(handed_over);
        assert!(take().is_some());
        let missing_folder = folder.path().join("gone");
        let error = FolderLock::take(&missing_folder)
            .expect_err("no such folder")
            .to_string();
        assert!(
            error.starts_with("cannot open ") && error.contains("gone/lock"),
            "{error}"
        );
        remove_folder(&missing_folder).expect("there is none");
    }

    #[test]
    fn a_file_is_replaced_atomically_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        for content in ["first and longer", "second"] {
            write_durable(&path, content.as_bytes()).expect("writable");
            assert_eq!(fs::read_to_string(&path).expect("readable"), content);
        }
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let names = fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(names, 1, "nothing is left of the writing");
    }
}
