//! A lab before it has a name: its journal becomes visible only when it is locked and names its owner.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ROOT, folder, process_start_ticks};

/// A lab's folder under a name that no lab has, gone unless it becomes one.
pub(super) struct NewLabFolder(pub(super) PathBuf);

impl NewLabFolder {
    pub(super) fn make() -> io::Result<Self> {
        static FOLDER_COUNT: AtomicU64 = AtomicU64::new(0);
        let (pid, number) = (
            std::process::id(),
            FOLDER_COUNT.fetch_add(1, Ordering::Relaxed),
        );
        let path = Path::new(ROOT).join(format!(".{pid}.{number}"));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// `AlreadyExists` where the name is taken.
    pub(super) fn rename_to_lab(self, lab: &str) -> io::Result<()> {
        fs::rename(&self.0, folder(lab)).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty => io::ErrorKind::AlreadyExists.into(),
            _ => error,
        })
    }
}

impl Drop for NewLabFolder {
    fn drop(&mut self) {
        // Not there any more where it became a lab.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what processes left that ended before their lab had a name.
pub(super) fn remove_abandoned_folders() -> io::Result<()> {
    let entries = match fs::read_dir(ROOT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let owner = name
            .strip_prefix('.')
            .and_then(|name| name.split('.').next()?.parse().ok());
        if owner.is_some_and(|pid| process_start_ticks(pid).is_none()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}
