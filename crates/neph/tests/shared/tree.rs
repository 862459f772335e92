//! The files of this repository, for tests that read them. Owns no rule about them.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root of the repository")
}

/// Every file below a folder, sorted. Build results (`target`) are none.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of ours") {
            let path = entry.expect("an entry").path();
            if !path.is_dir() {
                files.push(path);
            } else if !path.ends_with("target") {
                folders.push(path);
            }
        }
    }
    files.sort();
    files
}
