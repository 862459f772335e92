//! The records of a truth file, one after the other.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use neph_text::Outside;

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
    /// A record in it is not what this version writes.
    #[error(
        "the truth file {path} is damaged: at byte {at} stands no record; the records before are complete"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the record begins, in bytes from the file's beginning.
        at: u64,
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

/// A truth file being read: an iterator over its records, which needs no more memory for a long
/// file than for a short one. A record that was cut short by a crash ends the iteration.
#[derive(Debug)]
pub struct TruthFile<R = BufReader<File>> {
    file: R,
    path: PathBuf,
    link: String,
    every: u32,
    /// Where the next record begins.
    at: u64,
    cut_off: usize,
    over: bool,
}

impl TruthFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Self, TruthError> {
        let file = File::open(path).map_err(|source| TruthError::Unreadable {
            path: path.into(),
            source,
        })?;
        Self::of(BufReader::new(file), path)
    }
}

impl<R: Read> TruthFile<R> {
    /// Reads the header of what `file` holds; `path` is for messages.
    ///
    /// # Errors
    /// As [`TruthFile::open`].
    pub fn of(mut file: R, path: &Path) -> Result<Self, TruthError> {
        let strange = |what| TruthError::Strange {
            path: path.into(),
            what,
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
            link: Outside::bytes(name.unwrap_or_default()).into(),
            every: number(12).max(1),
            at: HEADER_BYTES as u64,
            cut_off: 0,
            over: false,
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

    /// Bytes of a last record that was cut short, known when the iteration has ended: its writer
    /// was killed. 0 when the file ends with a whole one.
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

    /// What cannot be read is told once and ends it.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.next_record().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads until `bytes` is full or nothing comes any more; says how many came.
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
