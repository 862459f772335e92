//! An append-only log of records with any format.
//!
//! A record survives a kill of the process when the call that appends it returns, and a loss of
//! power once [`LogWriter::sync`] has returned. Whatever happens to the file, a reader gets a
//! prefix of what was written.

use std::path::Path;

use crate::JournalError;
use crate::frames::{FrameReader, FrameWriter};

/// The only writer of one log.
#[derive(Debug)]
pub struct LogWriter(FrameWriter);

impl LogWriter {
    /// Creates a file that begins with `header`.
    ///
    /// # Errors
    /// A file operation failed, or the file exists.
    pub fn create(path: &Path, header: &[u8]) -> Result<Self, JournalError> {
        FrameWriter::create(path, header).map(Self)
    }

    /// Appends a record of at most 2 MiB.
    ///
    /// # Errors
    /// Writing failed, or the record is longer; the log is unchanged then.
    pub fn append(&mut self, record: &[u8]) -> Result<(), JournalError> {
        self.0
            .append([record], |record, out| out.extend_from_slice(record))
    }

    /// Writes all appended records to the disk.
    ///
    /// # Errors
    /// Writing failed.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.0.sync()
    }

    /// The length of the file in bytes.
    pub const fn bytes(&self) -> u64 {
        self.0.length()
    }
}

/// Passes each record of a log to `each`, in order, up to the last complete one. False if there is
/// no such file. A file with another header has no records.
///
/// # Errors
/// A file operation failed.
pub fn read_log(
    path: &Path,
    header: &[u8],
    visit: &mut dyn FnMut(&[u8]),
) -> Result<bool, JournalError> {
    let Some(mut reader) = FrameReader::open(path, header)? else {
        return Ok(false);
    };
    let mut next = || {
        reader.next(|record| {
            visit(record);
            Some(())
        })
    };
    while next()?.is_some() {}
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path, header: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut records = Vec::new();
        let read = read_log(path, header, &mut |record| records.push(record.to_vec()));
        read.expect("readable").then_some(records)
    }

    #[test]
    fn appended_records_are_read_up_to_the_truncation() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        assert_eq!(read(&path, b"log 1"), None);
        let mut log = LogWriter::create(&path, b"log 1").expect("writable");
        let mut lengths = vec![log.bytes()];
        let records: [&[u8]; 4] = [b"one", b"", b"three", b"four"];
        for record in records {
            log.append(record).expect("writable");
            lengths.push(log.bytes());
        }
        log.sync().expect("writable");
        assert!(LogWriter::create(&path, b"log 1").is_err(), "it is there");
        assert_eq!(read(&path, b"log 2"), Some(Vec::new()));
        for cut in (lengths[0]..=lengths[4]).rev() {
            let file = std::fs::OpenOptions::new().write(true).open(&path);
            file.and_then(|file| file.set_len(cut)).expect("writable");
            let complete_count = lengths[1..].iter().filter(|end| **end <= cut).count();
            assert_eq!(
                read(&path, b"log 1").expect("there"),
                records[..complete_count]
            );
        }
    }
}
