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
    #[error("{path} is no truth file: {reason}")]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// A record has another format.
    #[error(
        "the truth file {path} is damaged: byte {offset} is not the beginning of a record; the records before it are complete"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the record in bytes.
        offset: u64,
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
    offset: u64,
    cut_off: usize,
    is_finished: bool,
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
        Self::from_reader(BufReader::new(file), path)
    }
}

impl<R: Read> TruthFile<R> {
    /// Reads the header from `file`; `path` is for messages.
    ///
    /// # Errors
    /// As [`TruthFile::open`].
    pub fn from_reader(mut file: R, path: &Path) -> Result<Self, TruthError> {
        let wrong_format = |reason| TruthError::WrongFormat {
            path: path.into(),
            reason,
        };
        let mut header = [0; HEADER_BYTES];
        let byte_count = fill(&mut file, &mut header).map_err(|source| TruthError::Unreadable {
            path: path.into(),
            source,
        })?;
        if header[..7] != MAGIC[..7] {
            return Err(wrong_format("it does not begin as one"));
        }
        if byte_count < HEADER_BYTES {
            return Err(wrong_format("it is shorter than a header"));
        }
        let read_u32 = |offset: usize| {
            u32::from_le_bytes([
                header[offset],
                header[offset + 1],
                header[offset + 2],
                header[offset + 3],
            ])
        };
        if header[7] != MAGIC[7] || read_u32(8) as usize != RECORD_BYTES {
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
            every: read_u32(12).max(1),
            offset: HEADER_BYTES as u64,
            cut_off: 0,
            is_finished: false,
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
        let byte_count =
            fill(&mut self.file, &mut bytes).map_err(|source| TruthError::Unreadable {
                path: self.path.clone(),
                source,
            })?;
        if byte_count < RECORD_BYTES {
            self.cut_off = byte_count;
            return Ok(None);
        }
        let record = Record::decode(&bytes).ok_or_else(|| TruthError::Damaged {
            path: self.path.clone(),
            offset: self.offset,
        })?;
        self.offset += RECORD_BYTES as u64;
        Ok(Some(record))
    }
}

impl<R: Read> Iterator for TruthFile<R> {
    type Item = Result<Record, TruthError>;

    /// An error is returned once and ends the iteration.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let next = self.next_record().transpose();
        self.is_finished = !matches!(next, Some(Ok(_)));
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
