//! Why a text file that was named cannot be read, and what to do.

use std::io::{Error, ErrorKind};

/// The reason.
pub(crate) fn why(error: &Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "it is no text (UTF-8)".to_owned(),
        ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

/// The reason and what to do, as the end of a sentence; `where_it_is` says how to name a file that is
/// there.
pub(crate) fn remedy(error: &Error, where_it_is: &str) -> String {
    let then = match error.kind() {
        ErrorKind::InvalidData => "name another file",
        ErrorKind::IsADirectory => "name a file in it",
        _ => where_it_is,
    };
    format!("{}; {then}", why(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_text_has_another_remedy_than_one_that_is_not_there() {
        let at = "write its path as seen from this folder";
        let told = |kind: ErrorKind| remedy(&kind.into(), at);
        assert_eq!(
            told(ErrorKind::InvalidData),
            "it is no text (UTF-8); name another file"
        );
        assert_eq!(told(ErrorKind::NotFound), format!("entity not found; {at}"));
    }
}
