//! Reads the records of a truth file in order.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use neph_text::PrintableText;

use super::{HEADER_BYTES, MAGIC, RECORD_BYTES, Record};

/// A truth file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// The operating system reported an error.
    #[error("read the truth file {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file has another format.
    #[error("{path} is no truth file: {what}")]
    Strange {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// A record has another format.
    #[error(
        "the truth file {path} is damaged: byte {at} is not the beginning of a record; the records before it are complete"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the record in bytes.
        at: u64,
    },
    /// Another version of neph wrote it.
    #[error(
        "the truth file {path} has version {found} of the format, this neph reads version {}: \
         record again, or read it with the neph that wrote it", char::from(MAGIC[7])
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: char,
    },
}

/// An iterator over the records of a truth file; its memory does not depend on the length. An incomplete last
/// record (after a crash) ends the iteration.
#[derive(Debug)]
pub struct TruthFile<R = BufReader<File>> {
    file: R,
    path: PathBuf,
    link: String,
    every: u32,
    /// The offset of the next record.
    at: u64,
    cut_off: usize,
    is_over: bool,
}

impl TruthFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    pub fn open(path: &Path) -> Result<Self, TruthError> {
        let file = File::open(path).map_err(|source| TruthError::Unreadable {
            path: path.into(),
            source,
        })?;
        Self::of(BufReader::new(file), path)
    }
}

impl<R: Read> TruthFile<R> {
    /// Reads the header from `file`; `path` is for messages.
    ///
    /// # Errors
    /// As [`TruthFile::open`].
    pub fn of(mut file: R, path: &Path) -> Result<Self, TruthError> {
        let strange = |message| TruthError::Strange {
            path: path.into(),
            what: message,
        };
        let mut header = [0; HEADER_BYTES];
        let read = fill(&mut file, &mut header).map_err(|source| TruthError::Unreadable {
            path: path.into(),
            source,
        })?;
        if header[..7] != MAGIC[..7] {
            return Err(strange("it does not begin as one"));
        }
        if read < HEADER_BYTES {
            return Err(strange("it is shorter than a header"));
        }
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if header[7] != MAGIC[7] || number(8) as usize != RECORD_BYTES {
            return Err(TruthError::Version {
                path: path.into(),
                found: char::from(header[7]),
            });
        }
        let name = header[16..].split(|byte| *byte == 0).next();
        Ok(Self {
            file,
            path: path.into(),
            link: PrintableText::bytes(name.unwrap_or_default()).into(),
            every: number(12).max(1),
            at: HEADER_BYTES as u64,
            cut_off: 0,
            is_over: false,
        })
    }

    /// The link's name.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// One in this many packets was recorded.
    pub fn every(&self) -> u32 {
        self.every
    }

    /// Bytes of an incomplete last record, known at the end of the iteration: its writer was killed. 0
    /// without one.
    pub fn cut_off(&self) -> usize {
        self.cut_off
    }

    fn next_record(&mut self) -> Result<Option<Record>, TruthError> {
        let mut bytes = [0; RECORD_BYTES];
        let read = fill(&mut self.file, &mut bytes).map_err(|source| TruthError::Unreadable {
            path: self.path.clone(),
            source,
        })?;
        if read < RECORD_BYTES {
            self.cut_off = read;
            return Ok(None);
        }
        let record = Record::decode(&bytes).ok_or_else(|| TruthError::Damaged {
            path: self.path.clone(),
            at: self.at,
        })?;
        self.at += RECORD_BYTES as u64;
        Ok(Some(record))
    }
}

impl<R: Read> Iterator for TruthFile<R> {
    type Item = Result<Record, TruthError>;

    /// An error is returned once and ends the iteration.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.next_record().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads until `bytes` is full or the file ends; returns the number of bytes.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
