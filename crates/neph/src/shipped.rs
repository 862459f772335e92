//! Files that neph ships and writes into a folder, where the user can change them.

use std::io::{self, ErrorKind};
use std::path::Path;

use neph_text::{Existing, write_whole};
use neph_text::{FileError, FileKind, Source, read_text};

use crate::output;

/// Writes a shipped file, unless the user changed it: then the changed file is kept and used.
pub(crate) fn write_unless_changed(path: &Path, shipped: &str) -> std::io::Result<Source> {
    let name = path.display().to_string();
    let text = match read_text(FileKind::Plan, path) {
        Ok(text) if text != shipped => {
            output::say(&format!(
                "neph: {name} is not what this version of neph ships: it is kept and used as it \
                 is; without it, the shipped one is written again"
            ));
            text
        }
        Ok(text) => text,
        Err(FileError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            write_whole(path, shipped.as_bytes(), Existing::Keep)?;
            shipped.to_owned()
        }
        Err(FileError::Io(error)) => return Err(error),
        Err(error) => return Err(io::Error::other(error)),
    };
    Ok(Source::new(name, text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_changed_shipped_file_is_kept_and_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plan.toml");
        let used_text = |shipped| {
            write_unless_changed(&path, shipped)
                .expect("a file")
                .text()
                .to_owned()
        };
        assert_eq!(used_text("shipped"), "shipped");
        assert_eq!(used_text("shipped"), "shipped", "and again");
        fs::write(&path, "changed").expect("written");
        assert_eq!(used_text("shipped"), "changed");
        assert_eq!(fs::read_to_string(&path).expect("there"), "changed");
        fs::remove_file(&path).expect("removed");
        assert_eq!(used_text("shipped"), "shipped");
    }
}
