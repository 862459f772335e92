//! Files of our own that must survive a loss of power: state, keys. For files that people name see `whole`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::whole::beside;

/// Writes a file that is there, whole, when this returns, also after the power goes. A file of that name is
/// replaced; others may not read it.
///
/// # Errors
/// The disk refuses.
pub fn write_durable(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = beside(path)?;
    let mut options = fs::OpenOptions::new();
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
