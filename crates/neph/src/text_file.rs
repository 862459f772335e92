//! Reading the text files that a user names: plans and topologies.

use std::path::Path;

use neph_text::{FileKind, Outside, Source, read_text};

use crate::exit::Failure;

/// The kind of a text file: its name in messages, and its maximum size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noun(pub(crate) &'static str, pub(crate) FileKind);

/// A plan, or a settings file of the Latency Tester.
pub(crate) const PLAN: Noun = Noun("plan", FileKind::Plan);
/// A topology.
pub(crate) const TOPOLOGY: Noun = Noun("topology", FileKind::Topology);
/// Sizes of a video's frames.
pub(crate) const TRACE: Noun = Noun("trace", FileKind::Frames);

/// The text of a file, named by its path.
///
/// # Errors
/// The kind of file (`noun`), why it cannot be read, and the remedy. `where_it_is` explains how to
/// name an existing file.
pub(crate) fn read(noun: Noun, path: &Path, where_it_is: &str) -> Result<Source, Failure> {
    let Noun(noun, kind) = noun;
    let text = read_text(kind, path).map_err(|error| {
        let then = error.remedy().unwrap_or(where_it_is);
        let name = Outside::path(path);
        Failure::Usage(format!("{noun} {name} cannot be read: {error}; {then}"))
    })?;
    Ok(Source::new(path.display().to_string(), text))
}

/// As above, for a sentence that ends with the reason.
pub(crate) fn load(noun: Noun, path: &Path) -> Result<Source, String> {
    let Noun(noun, kind) = noun;
    let name = Outside::path(path);
    let text =
        read_text(kind, path).map_err(|error| format!("{noun} {name} cannot be read: {error}"))?;
    Ok(Source::new(path.display().to_string(), text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_no_text_has_another_remedy_than_one_that_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = "write its path as seen from this folder";
        let sentence = |path: &Path| match read(PLAN, path, at) {
            Err(Failure::Usage(sentence)) => sentence,
            other => panic!("{other:?}"),
        };
        let path = folder.path().join("plan.toml");
        let begins = format!("plan {} cannot be read: ", path.display());
        let missing = sentence(&path);
        assert!(
            missing.starts_with(&begins) && missing.ends_with(at),
            "{missing}"
        );
        fs::write(&path, [0xff, 0xfe]).expect("written");
        let binary = format!("{begins}it is no text (UTF-8); name another file");
        assert_eq!(sentence(&path), binary);
        let directory = sentence(folder.path());
        assert!(
            directory.ends_with("it is a folder; name a file in it"),
            "{directory}"
        );
    }
}
