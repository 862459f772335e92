//! Files and folders of our own, which no user names: state and keys. They survive a loss of power, and one
//! process at a time has them. For files that people name see `whole`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::whole::beside;

/// A file or folder of our own could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}", path = path.display())]
pub struct DiskError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl DiskError {
    /// Gives an error of the system its operation and its path.
    pub fn of(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            operation,
            path,
            source,
        }
    }
}

/// Takes a folder for this process as long as the file is open; `None` if another has it.
///
/// # Errors
/// The disk refuses.
pub fn lock_folder(folder: &Path) -> Result<Option<File>, DiskError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(DiskError::of("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(DiskError::of("lock", &path)(error)),
    }
}

/// Removes a folder with all that is in it; that there is none is fine.
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

/// Writes a file that is there, whole, when this returns, also after the power goes. A file of that name is
/// replaced; others may not read it.
///
/// # Errors
/// The disk refuses.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = beside(path)?;
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
    fn a_folder_is_taken_by_one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = lock_folder(folder.path()).expect("writable");
        assert!(first.is_some());
        assert!(lock_folder(folder.path()).expect("readable").is_none());
        drop(first);
        assert!(lock_folder(folder.path()).expect("writable").is_some());
        let gone = folder.path().join("gone");
        let error = lock_folder(&gone).expect_err("no such folder").to_string();
        assert!(
            error.starts_with("cannot open ") && error.contains("gone/lock"),
            "{error}"
        );
        remove_folder(&gone).expect("there is none");
    }

    #[test]
    fn a_file_is_replaced_whole_and_is_for_its_owner_alone() {
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
