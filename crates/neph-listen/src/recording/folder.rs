//! The folder of a recording's captures: a specified or a temporary one.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::CaptureFile;
use crate::ListenError;

/// Maximum number of names that are tried.
const MAXIMUM: u32 = 100;

/// A folder for captures.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    goes_away: bool,
    /// Captures that were started.
    created_files: Vec<PathBuf>,
}

impl Folder {
    /// The folder `save`, created if necessary; else a temporary folder.
    pub(super) fn open(save: Option<&Path>) -> Result<Self, ListenError> {
        let refused = |path: &Path, error| {
            let path = path.display();
            ListenError::wrong(format!("make {path}: {error}; --save names another folder"))
        };
        if let Some(path) = save {
            fs::create_dir_all(path).map_err(|error| refused(path, error))?;
            let path = path.to_owned();
            return Ok(Self {
                path,
                goes_away: false,
                created_files: Vec::new(),
            });
        }
        let temporary = std::env::temp_dir();
        let path = make_new(&temporary).map_err(|error| refused(&temporary, error))?;
        Ok(Self {
            path,
            goes_away: true,
            created_files: Vec::new(),
        })
    }

    /// The path of a point's capture.
    pub(super) fn path_of(&self, point: &str) -> PathBuf {
        self.path.join(format!("{point}.pcap"))
    }

    /// Creates the capture of a point.
    pub(super) fn capture(&mut self, point: &str) -> Result<(PathBuf, CaptureFile), ListenError> {
        let path = self.path_of(point);
        match CaptureFile::create(&path) {
            Ok(file) => {
                self.created_files.push(path.clone());
                Ok((path, file))
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(ListenError::wrong(format!(
                    "{} is there already; --save names another folder",
                    path.display()
                )))
            }
            Err(error) => Err(ListenError::refused(format!(
                "write {}: {error}; --save names another folder",
                path.display()
            ))),
        }
    }

    /// Keeps a temporary folder.
    pub(super) const fn stay(&mut self) {
        self.goes_away = false;
    }

    /// Removes the captures of a failed recording, and no other files.
    pub(super) fn take_back(&mut self) {
        for capture in self.created_files.drain(..) {
            // If this fails, the next recording with this name reports it.
            let _ = fs::remove_file(capture);
        }
    }
}

/// Creates a new folder that only this user can read.
fn make_new(within: &Path) -> io::Result<PathBuf> {
    let mut tried = 0;
    loop {
        let path = within.join(format!("neph-hops-{}-{tried}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            // Left by a killed process with this ID.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tried < MAXIMUM => tried += 1,
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.goes_away {
            // If this fails, the rest remains in the folder for temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_captures_are_never_overwritten() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("deep/er");
        let mut folder = Folder::open(Some(&path)).expect("it is made");
        let (file, _) = folder.capture("a").expect("a new file");
        drop(folder);
        assert!(file.exists(), "it was asked for");
        let mut folder = Folder::open(Some(&path)).expect("it is there");
        let error = folder.capture("a").expect_err("it is there");
        assert!(
            matches!(error, ListenError::InvalidRequest(error) if error.contains("another folder"))
        );
    }

    #[test]
    fn a_failed_recording_removes_only_its_own_captures() {
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("b.pcap"), "somebody's").expect("a file");
        let mut folder = Folder::open(Some(place.path())).expect("it is there");
        let (file, _) = folder.capture("a").expect("a new file");
        folder.capture("b").expect_err("it is there");
        folder.take_back();
        assert!(!file.exists() && place.path().join("b.pcap").exists());
        folder.capture("a").expect("it is free again");
    }

    #[test]
    fn a_temporary_folder_is_removed_unless_it_is_kept() {
        let mut folder = Folder::open(None).expect("it is made");
        let (file, _) = folder.capture("a").expect("a new file");
        assert!(file.exists());
        let other = Folder::open(None).expect("another is made");
        drop(folder);
        assert!(other.path.exists());
        assert!(!file.exists());
        let mut kept_folder = other;
        let path = kept_folder.path.clone();
        kept_folder.stay();
        drop(kept_folder);
        assert!(path.exists());
        fs::remove_dir(path).expect("it is empty");
    }
}
