//! Files that hold a secret: a key of STAMP, a private key of TLS.
//!
//! Owns who may be able to read such a file: only its owner, as ssh requires for its keys. Does not own the
//! content; `neph_text` limits its size and checks that it is a file.
//!
//! The rule is that of PostgreSQL's server keys: mode 0600 or stricter. A file of root may have 0640, so that
//! root can give a key to one group (Debian's `ssl-cert`, Kubernetes' `fsGroup`). Pipes from the shell have
//! no protecting mode; they are accepted, so that `/dev/fd/3` works.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use neph_text::{FileError, FileKind, open_file};
use zeroize::Zeroizing;

/// Permission bits of the group and of all others.
const NOT_OWNER: u32 = 0o077;
/// The group may read.
const GROUP_READ: u32 = 0o040;
const ROOT: u32 = 0;

/// Why a file with a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// It cannot be read.
    #[error("read {}: {source}{}", path.display(), then(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        source: FileError,
    },
    /// Others can read or replace the secret.
    #[error(
        "{} has mode {mode:04o}, so {who} can {what} the secret in it: run 'chmod 600 {}' (in \
         Kubernetes defaultMode: 0400), and replace the secret if others had access",
        path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Who has access: `its group` or `every user`.
        who: &'static str,
        /// What they can do: `read` or `replace`.
        what: &'static str,
    },
}

/// The remedy, where one is known.
fn then(error: &FileError) -> String {
    let remedy = error.remedy();
    remedy.map_or_else(String::new, |remedy| format!("; {remedy}"))
}

/// Reads a file that only its owner can read. The bytes are zeroed when dropped.
///
/// # Errors
/// When it cannot be read, when others can read or write it, or when it is too large for a key.
pub fn read_private(kind: FileKind, path: &Path) -> Result<Zeroizing<Vec<u8>>, PrivateFileError> {
    let largest = kind.largest();
    let unreadable = |source: FileError| PrivateFileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let failed = |error: io::Error| unreadable(error.into());
    // Of the open file: a name may be given to another file in between.
    let file = open(kind, path)?;
    // Allocated at once: a vector that grows leaves copies that are not zeroed.
    let room = file.metadata().map_err(failed)?.len().min(largest);
    let room = usize::try_from(room).unwrap_or(0).max(64 << 10);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room + 1));
    file.take(largest + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > largest {
        return Err(unreadable(FileError::TooLarge {
            size: None,
            largest,
        }));
    }
    Ok(bytes)
}

/// Whether a file with a secret can be used, without reading it.
///
/// # Errors
/// As [`read_private`].
pub fn check_private(kind: FileKind, path: &Path) -> Result<(), PrivateFileError> {
    open(kind, path).map(drop)
}

fn open(kind: FileKind, path: &Path) -> Result<File, PrivateFileError> {
    let unreadable = |source: FileError| PrivateFileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = open_file(kind, path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(|error| unreadable(error.into()))?;
    if metadata.is_file()
        && let Some((exposed_to, exposure_kind)) = exposure(metadata.mode(), metadata.uid())
    {
        return Err(PrivateFileError::Exposed {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
            who: exposed_to,
            what: exposure_kind,
        });
    }
    Ok(file)
}

/// Access of users other than the owner to a regular file.
fn exposure(mode: u32, owner: u32) -> Option<(&'static str, &'static str)> {
    let accepted = if owner == ROOT { GROUP_READ } else { 0 };
    match mode & NOT_OWNER & !accepted {
        0 => None,
        bits if bits & 0o004 != 0 => Some(("every user", "read")),
        bits if bits & 0o002 != 0 => Some(("every user", "replace")),
        bits if bits & 0o020 != 0 => Some(("its group", "replace")),
        bits if bits & 0o040 != 0 => Some(("its group", "read")),
        // Permission to execute a key file has no effect.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_or_a_group_set_by_root_may_access_a_private_file() {
        const USER: u32 = 1000;
        for (mode, owner, expected) in [
            (0o100_600, USER, None),
            (0o100_400, USER, None),
            (0o100_640, USER, Some(("its group", "read"))),
            (0o100_644, USER, Some(("every user", "read"))),
            (0o100_602, USER, Some(("every user", "replace"))),
            (0o100_640, ROOT, None),
            (0o100_440, ROOT, None),
            (0o100_660, ROOT, Some(("its group", "replace"))),
            (0o100_644, ROOT, Some(("every user", "read"))),
        ] {
            assert_eq!(exposure(mode, owner), expected, "{mode:o} of {owner}");
        }
    }

    #[test]
    fn a_world_readable_key_is_refused_with_a_remedy_command() {
        let path = std::env::temp_dir().join(format!("neph-private-{}", std::process::id()));
        fs::write(&path, "secret").expect("a file");
        let with_mode = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
            read_private(FileKind::Secret, &path).map(|bytes| bytes.to_vec())
        };
        let refused = with_mode(0o644).expect_err("readable").to_string();
        let private = with_mode(0o600);
        fs::remove_file(&path).expect("it is there");
        assert!(refused.contains("has mode 0644"), "{refused}");
        assert!(
            refused.contains(&format!("'chmod 600 {}'", path.display())),
            "{refused}"
        );
        assert_eq!(private.expect("mode 0600"), b"secret");
    }

    #[test]
    fn a_pipe_is_accepted_and_a_folder_is_not() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        io::Write::write_all(&mut writer, b"piped").expect("there is room");
        drop(writer);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let bytes =
            read_private(FileKind::Secret, Path::new(&format!("/dev/fd/{fd}"))).expect("a pipe");
        assert_eq!(*bytes, b"piped");
        assert!(matches!(
            read_private(FileKind::Secret, Path::new("/")),
            Err(PrivateFileError::Unreadable { .. })
        ));
    }
}
