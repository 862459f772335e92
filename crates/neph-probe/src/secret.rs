//! The secret of authenticated STAMP: its source, and its protection.
//!
//! Owns reading it, and the one place where it becomes a key. A secret is never an argument of a command:
//! `ps` shows those to every user of a host.

use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use neph_model::{BareSecret, SecretSource};
use neph_wire::stamp::Key;
use zeroize::Zeroizing;

use neph_text::FileKind;

use crate::private_file::{PrivateFileError, read_private};

/// A shared secret of authenticated STAMP; never empty. Its memory is zeroed when it is dropped, and `Debug`
/// shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why there is no secret. No variant holds any part of one.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The secret itself was given instead of its source.
    #[error(transparent)]
    Literal(#[from] BareSecret),
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The variable is not set.
    #[error("the environment variable {0} is not set: export it, or write file:PATH")]
    Unset(String),
    /// The source is empty.
    #[error("{0} is empty: it must hold the secret that both sides know")]
    Empty(String),
}

impl Secret {
    /// Reads the secret that `file:PATH` or `env:NAME` names.
    ///
    /// # Errors
    /// When it names neither, or the source is missing, exposed or empty.
    pub fn find(source: &str) -> Result<Self, SecretError> {
        Self::read(&source.parse()?)
    }

    /// Reads the secret from this source.
    ///
    /// # Errors
    /// When the source is missing, exposed or empty.
    pub fn read(source: &SecretSource) -> Result<Self, SecretError> {
        match source {
            SecretSource::File(path) => Self::in_file(Path::new(path)),
            SecretSource::Variable(name) => Self::in_variable(name),
        }
    }

    /// Reads a secret from a file that only its owner can read. One newline at its end is removed.
    ///
    /// # Errors
    /// When the file cannot be read, is exposed or is empty.
    pub fn in_file(path: &Path) -> Result<Self, SecretError> {
        let mut bytes = read_private(FileKind::Secret, path)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Self::of(bytes).ok_or_else(|| SecretError::Empty(format!("key file {}", path.display())))
    }

    fn in_variable(name: &str) -> Result<Self, SecretError> {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        let value = is_name.then(|| std::env::var_os(name)).flatten();
        let value = value.ok_or_else(|| SecretError::Unset(name.to_owned()))?;
        Self::of(Zeroizing::new(value.into_vec()))
            .ok_or_else(|| SecretError::Empty(format!("the environment variable {name}")))
    }

    /// The secret of these bytes; `None` if there are none.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        Self::of(Zeroizing::new(bytes.to_vec()))
    }

    fn of(bytes: Zeroizing<Vec<u8>>) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self(bytes))
    }

    /// The STAMP key that is derived from it.
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.0).expect("a secret is not empty")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_on_the_command_line_is_refused_and_not_printed() {
        for bare in ["hunter2", "", "/etc/key", "files:x"] {
            let error = Secret::find(bare).expect_err("bare").to_string();
            assert!(
                error.contains("file:PATH") && error.contains("env:NAME"),
                "{error}"
            );
            assert!(bare.is_empty() || !error.contains(bare), "{error}");
        }
    }

    #[test]
    fn an_unset_or_invalid_secret_variable_is_reported_by_name() {
        for name in ["NEPH_NO_SUCH_VARIABLE", "", "A=B"] {
            let error = Secret::find(&format!("env:{name}")).expect_err("not set");
            assert!(matches!(error, SecretError::Unset(_)), "{error}");
        }
        let path = std::env::var_os("PATH").expect("tests have a PATH");
        let secret = Secret::find("env:PATH").expect("it is set");
        assert_eq!(*secret.0, path.into_vec());
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let secret = Secret::new(b"hunter2").expect("not empty");
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        assert_eq!(Secret::new(b""), None);
    }
}
