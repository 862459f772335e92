//! Reading the text files that a user names: plans and topologies.

use std::path::Path;

use neph_text::{FileKind, PrintableText, Source, read_text};

use crate::exit::Failure;

/// The kind of a text file: its name in messages, and its maximum size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextFileKind {
    name: &'static str,
    kind: FileKind,
}

/// A plan, or a settings file of the Latency Tester.
pub(crate) const PLAN: TextFileKind = TextFileKind {
    name: "plan",
    kind: FileKind::Plan,
};
/// A topology.
pub(crate) const TOPOLOGY: TextFileKind = TextFileKind {
    name: "topology",
    kind: FileKind::Topology,
};
/// Sizes of a video's frames.
pub(crate) const TRACE: TextFileKind = TextFileKind {
    name: "trace",
    kind: FileKind::VideoTrace,
};
/// Times or rates of a load.
pub(crate) const PROFILE: TextFileKind = TextFileKind {
    name: "profile",
    kind: FileKind::LoadProfile,
};
/// Levels of a load, as JSON.
pub(crate) const LEVELS: TextFileKind = TextFileKind {
    name: "levels",
    kind: FileKind::LoadProfile,
};

/// The text of a file, named by its path.
///
/// # Errors
/// The kind of the file, why it cannot be read, and the remedy. `path_hint` explains how to
/// name an existing file.
pub(crate) fn read(
    file_kind: TextFileKind,
    path: &Path,
    path_hint: &str,
) -> Result<Source, Failure> {
    let TextFileKind { name, kind } = file_kind;
    let text = read_text(kind, path).map_err(|error| {
        let remedy = error.remedy().unwrap_or(path_hint);
        let shown_path = PrintableText::path(path);
        Failure::Usage(format!(
            "{name} {shown_path} cannot be read: {error}; {remedy}"
        ))
    })?;
    Ok(Source::new(path.display().to_string(), text))
}

/// Reads the file; the error is a sentence that ends with the reason.
pub(crate) fn read_or_message(file_kind: TextFileKind, path: &Path) -> Result<Source, String> {
    let TextFileKind { name, kind } = file_kind;
    let shown_path = PrintableText::path(path);
    let text = read_text(kind, path)
        .map_err(|error| format!("{name} {shown_path} cannot be read: {error}"))?;
    Ok(Source::new(path.display().to_string(), text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_binary_file_and_a_missing_file_have_different_remedies() {
        let folder = tempfile::tempdir().expect("a folder");
        let path_hint = "write its path as seen from this folder";
        let sentence = |path: &Path| match read(PLAN, path, path_hint) {
            Err(Failure::Usage(sentence)) => sentence,
            other => panic!("{other:?}"),
        };
        let path = folder.path().join("plan.toml");
        let prefix = format!("plan {} cannot be read: ", path.display());
        let missing = sentence(&path);
        assert!(
            missing.starts_with(&prefix) && missing.ends_with(path_hint),
            "{missing}"
        );
        fs::write(&path, [0xff, 0xfe]).expect("written");
        let binary = format!("{prefix}it is no text (UTF-8); name another file");
        assert_eq!(sentence(&path), binary);
        let directory = sentence(folder.path());
        assert!(
            directory.ends_with("it is a folder; name a file in it"),
            "{directory}"
        );
    }
}
