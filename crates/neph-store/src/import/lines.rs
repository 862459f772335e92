//! Reads lines of arbitrary files: not UTF-8, no line ends, gigabytes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Longer than any line of a known file.
const MAX_LINE_BYTES: u64 = 4096;

/// Reads a file line by line.
#[derive(Debug)]
pub(super) struct Lines {
    file: BufReader<File>,
    path: PathBuf,
    number: u64,
    bytes: Vec<u8>,
}

/// One line, without its end and surrounding whitespace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextLine {
    /// The line number, from 1.
    pub(super) number: u64,
    /// Truncated to 4096 bytes; invalid UTF-8 is replaced.
    pub(super) text: String,
}

impl Lines {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            file: BufReader::new(File::open(path).map_err(StoreError::file("open", path))?),
            path: path.to_owned(),
            number: 0,
            bytes: Vec::new(),
        })
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<TextLine>, StoreError> {
        self.read_next()
            .map_err(StoreError::file("read", &self.path))
    }

    fn read_next(&mut self) -> std::io::Result<Option<TextLine>> {
        self.bytes.clear();
        let mut limited = (&mut self.file).take(MAX_LINE_BYTES);
        if limited.read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(None);
        }
        if self.bytes.last() != Some(&b'\n') {
            self.file.skip_until(b'\n')?;
        }
        self.number += 1;
        Ok(Some(TextLine {
            number: self.number,
            text: String::from_utf8_lossy(&self.bytes).trim().to_owned(),
        }))
    }
}
