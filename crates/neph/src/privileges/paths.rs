//! The paths that a restricted process must be able to write, from the given paths.

use std::path::{Path, PathBuf};

/// The path that must be writable to write `file`: its folder, because a file is replaced as a
/// whole; a device or pipe itself. Nothing for `-`.
pub(super) fn writable_target(file: &Path) -> Option<PathBuf> {
    if file == Path::new("-") {
        return None;
    }
    // Symbolic links such as /dev/stdout are followed. Any other link is refused before anything is
    // written.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if target.exists() && !target.is_file() && !target.is_dir() {
        return Some(target);
    }
    Some(writable_folder(
        target.parent().unwrap_or_else(|| Path::new("/")),
    ))
}

/// An existing empty file is written in place: it may belong to another user.
pub(super) fn existing_file(file: &Path) -> Option<PathBuf> {
    let target = file.canonicalize().ok()?;
    target.is_file().then_some(target)
}

/// The path that must be writable to create and fill `folder`: itself, or its nearest existing parent.
pub(super) fn writable_folder(folder: &Path) -> PathBuf {
    let ancestors = folder.ancestors();
    let existing = ancestors.into_iter().find(|path| path.is_dir());
    let is_not_empty = |path: &&Path| !path.as_os_str().is_empty();
    existing
        .filter(is_not_empty)
        .unwrap_or_else(|| Path::new("."))
        .to_owned()
}

/// The files directly in a folder; none if it does not exist.
pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_its_folder_and_a_device_only_its_own_path() {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = temporary.path().canonicalize().expect("it is there");
        let file = folder.join("a.csv");
        assert_eq!(writable_target(&file), Some(folder.clone()));
        std::fs::write(&file, "x").expect("written");
        assert_eq!(writable_target(&file), Some(folder.clone()));
        // The writing code refuses such a link, so its target does not become writable.
        let link = folder.join("link");
        std::os::unix::fs::symlink("deep/b.csv", &link).expect("a link");
        assert_eq!(writable_target(&link), Some(folder));
        assert_eq!(
            writable_target(Path::new("/dev/null")),
            Some("/dev/null".into())
        );
        assert_eq!(writable_target(Path::new("-")), None);
        assert_eq!(writable_target(Path::new("a.csv")), Some(".".into()));
    }

    #[test]
    fn a_missing_folder_needs_its_nearest_existing_parent() {
        let temporary = tempfile::tempdir().expect("a folder");
        assert_eq!(
            writable_folder(&temporary.path().join("x/y")),
            temporary.path()
        );
        assert_eq!(writable_folder(temporary.path()), temporary.path());
        assert_eq!(
            writable_folder(Path::new("no-such-folder/x")),
            Path::new(".")
        );
        assert_eq!(writable_folder(Path::new(".neph-no-such")), Path::new("."));
    }
}
