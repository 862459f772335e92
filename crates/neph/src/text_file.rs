//! Reading the text files that a user names: plans and topologies.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

use neph_text::Source;

use crate::exit::Failure;

/// The text of a file, named by its path.
///
/// # Errors
/// What the file is (`noun`), why it cannot be read, and what to do; `where_it_is` says how to name a
/// file that exists.
pub(crate) fn read(noun: &str, path: &Path, where_it_is: &str) -> Result<Source, Failure> {
    text(path).map_err(|error| {
        let (name, why) = (path.display(), why(&error));
        let then = match error.kind() {
            ErrorKind::InvalidData => "name another file",
            ErrorKind::IsADirectory => "name a file in it",
            _ => where_it_is,
        };
        Failure::Usage(format!("{noun} {name} cannot be read: {why}; {then}"))
    })
}

/// The same where the sentence ends with the reason.
pub(crate) fn load(noun: &str, path: &Path) -> Result<Source, String> {
    let name = path.display();
    text(path).map_err(|error| format!("{noun} {name} cannot be read: {}", why(&error)))
}

fn text(path: &Path) -> Result<Source, Error> {
    let text = fs::read_to_string(path)?;
    Ok(Source::new(path.display().to_string(), text))
}

fn why(error: &Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "it is no text (UTF-8)".to_owned(),
        ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_text_has_another_remedy_than_one_that_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = "write its path as seen from this folder";
        let sentence = |path: &Path| match read("plan", path, at) {
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
