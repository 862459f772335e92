//! The records of a truth file, one after the other.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{HEADER_BYTES, MAGIC, RECORD_BYTES, Record};

/// A truth file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// The operating system refused.
    #[error("read the truth file {path}: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The bytes are not what this version writes.
    #[error("{path} is no truth file: {what}")]
    Strange {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// Another version of neph wrote it.
    #[error(
        "the truth file {path} has version {found} of the format, this neph reads version {}: \
         record again, or read it with the neph that wrote it", char::from(MAGIC[7])
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// The version it has.
        found: char,
    },
}

/// A truth file being read: an iterator over its records. A record that was cut short by a
/// crash ends the iteration.
#[derive(Debug)]
pub struct TruthFile {
    file: BufReader<File>,
    path: PathBuf,
    link: String,
    every: u32,
}

impl TruthFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Self, TruthError> {
        let unreadable = |source| TruthError::Unreadable {
            path: path.into(),
            source,
        };
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(unreadable)?;
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (kind, version) = header[..8].split_at(7);
        if kind != &MAGIC[..7] {
            let path = path.into();
            let what = "the header differs";
            return Err(TruthError::Strange { path, what });
        }
        if version != &MAGIC[7..] || number(8) as usize != RECORD_BYTES {
            return Err(TruthError::Version {
                path: path.into(),
                found: char::from(version[0]),
            });
        }
        let name: Vec<u8> = header[16..]
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .collect();
        let link = String::from_utf8_lossy(&name).into_owned();
        Ok(Self {
            file,
            path: path.into(),
            link,
            every: number(12),
        })
    }

    /// The link's name.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// One in how many packets was recorded.
    pub fn every(&self) -> u32 {
        self.every
    }
}

impl Iterator for TruthFile {
    type Item = Result<Record, TruthError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = [0; RECORD_BYTES];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => Some(Record::decode(&bytes).ok_or_else(|| TruthError::Strange {
                path: self.path.clone(),
                what: "a record of an unknown kind",
            })),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(source) => Some(Err(TruthError::Unreadable {
                path: self.path.clone(),
                source,
            })),
        }
    }
}
