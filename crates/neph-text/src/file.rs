//! Reads whole files that a user names. Each kind has a maximum size, so that no file takes all
//! memory. Devices, sockets and named pipes are refused before they are opened, so that no read
//! blocks.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The kind of a file, by its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A plan, or a settings file of the Latency Tester.
    Plan,
    /// A topology.
    Topology,
    /// A policy of an agent.
    Policy,
    /// Delays for a link to replay.
    Delays,
    /// Frame sizes of a video.
    VideoTrace,
    /// Times or rates of a load.
    LoadProfile,
    /// A secret shared with a peer.
    Secret,
    /// PEM: a private key.
    PrivateKey,
    /// PEM: certificates; all public authorities together have 0.3 MiB.
    Certificates,
    /// A program that a lab runs.
    Program,
}

impl FileKind {
    /// The maximum size in bytes.
    pub const fn largest(self) -> u64 {
        match self {
            Self::Plan | Self::Topology | Self::Certificates => 16 << 20,
            Self::Delays | Self::VideoTrace | Self::LoadProfile => 64 << 20,
            Self::Secret => 64 << 10,
            Self::PrivateKey | Self::Policy => 1 << 20,
            Self::Program => 512 << 20,
        }
    }
}

/// Why a file cannot be read. Displayed without the file's name.
#[derive(Debug)]
pub enum FileError {
    /// A system error.
    Io(io::Error),
    /// It is a folder.
    Folder,
    /// It is a device, a pipe or a socket.
    NoFile(&'static str),
    /// It exceeds the maximum size of its kind; with its size if known.
    TooLarge {
        /// Its size in bytes.
        size: Option<u64>,
        /// The maximum size in bytes.
        largest: u64,
    },
    /// It is not UTF-8.
    NoText,
}

impl FileError {
    /// The remedy, where it does not depend on the purpose of the file.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Io(_) => None,
            Self::Folder => Some("name a file in it"),
            Self::NoFile(_) => Some("name a regular file, or write it to one first"),
            Self::TooLarge { .. } => Some("name another file, or write a smaller one"),
            Self::NoText => Some("name another file"),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Folder => f.write_str("it is a folder"),
            Self::NoFile(kind) => write!(f, "it is {kind}, not a file"),
            Self::TooLarge { size, largest } => {
                match size {
                    Some(size) => write!(f, "it has {size} bytes")?,
                    None => f.write_str("it is too large")?,
                }
                write!(f, ", and at most {largest} are read")
            }
            Self::NoText => f.write_str("it is no text (UTF-8)"),
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Folders of the pipes that a shell creates for a process (`<(command)`, `>(command)`).
const HANDED_OVER: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// Whether this path is an input that the process was started with.
fn is_input_handed_over(path: &Path) -> bool {
    is_within(path, &["/dev/stdin"])
}

/// Whether this path is an output that the process was started with.
pub fn is_output_handed_over(path: &Path) -> bool {
    is_within(path, &["/dev/stdout", "/dev/stderr"])
}

fn is_within(path: &Path, extra_folders: &[&str]) -> bool {
    let places = HANDED_OVER.iter().chain(extra_folders);
    places.into_iter().any(|folder| path.starts_with(folder))
}

/// Opens a file of this kind after checking its size. A pipe from the shell (`<(command)`,
/// `/dev/stdin`) is read like a file; a named pipe is refused.
///
/// # Errors
/// It cannot be opened, is no regular file, or is too large.
pub fn open_file(kind: FileKind, path: &Path) -> Result<File, FileError> {
    let metadata = fs::metadata(path)?;
    let file_type = metadata.file_type();
    if file_type.is_dir() {
        return Err(FileError::Folder);
    }
    if file_type.is_fifo() && is_input_handed_over(path) {
        return Ok(File::open(path)?);
    }
    if !file_type.is_file() {
        return Err(FileError::NoFile(if file_type.is_fifo() {
            "a pipe"
        } else if file_type.is_socket() {
            "a socket"
        } else {
            "a device"
        }));
    }
    if metadata.len() > kind.largest() {
        return Err(FileError::TooLarge {
            size: Some(metadata.len()),
            largest: kind.largest(),
        });
    }
    Ok(File::open(path)?)
}

/// The bytes of a file.
///
/// # Errors
/// As [`open_file`]; also if it grows beyond the maximum size while it is read.
pub fn read_bytes(kind: FileKind, path: &Path) -> Result<Vec<u8>, FileError> {
    let largest = kind.largest();
    let mut bytes = Vec::new();
    open_file(kind, path)?
        .take(largest + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(FileError::TooLarge {
            size: None,
            largest,
        });
    }
    Ok(bytes)
}

/// The text of a file.
///
/// # Errors
/// As [`read_bytes`], or it is not UTF-8.
pub fn read_text(kind: FileKind, path: &Path) -> Result<String, FileError> {
    String::from_utf8(read_bytes(kind, path)?).map_err(|_| FileError::NoText)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn rejection_reason(path: &Path) -> String {
        let error = read_text(FileKind::Secret, path).expect_err("refused");
        format!("{error}; {}", error.remedy().unwrap_or_default())
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
    fn devices_folders_and_pipes_are_refused_at_once() {
        let device = "it is a device, not a file; name a regular file, or write it to one first";
        assert_eq!(rejection_reason(Path::new("/dev/zero")), device);
        assert_eq!(
            rejection_reason(Path::new("/")),
            "it is a folder; name a file in it"
        );
        let folder = std::env::temp_dir().join(format!("neph-text-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let pipe = folder.join("pipe");
        let status = Command::new("mkfifo").arg(&pipe).status();
        assert!(status.expect("mkfifo runs").success());
        assert!(rejection_reason(&pipe).starts_with("it is a pipe, not a file"));
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_large_file_is_refused_with_its_size_and_the_limit() {
        let path = std::env::temp_dir().join(format!("neph-large-{}", std::process::id()));
        let file = File::create(&path).expect("a file");
        file.set_len(1 << 40).expect("it is sparse");
        assert!(
            rejection_reason(&path)
                .starts_with("it has 1099511627776 bytes, and at most 65536 are read")
        );
        file.set_len(1 << 16).expect("it is smaller");
        assert_eq!(
            read_bytes(FileKind::Secret, &path).expect("it fits").len(),
            1 << 16
        );
        fs::remove_file(&path).expect("removed");
    }
}
