//! Writes a capture to a file or to standard output.
//!
//! Owns that the file contains complete records at any time. The buffer is written at the end of a
//! record, and a record that a full disk cuts off is removed. Does not own the contents of records.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;

use neph_text::{Existing, create_output};

use crate::error::ListenError;

/// The name for standard output.
pub const OUT: &str = "-";
/// Size of the write buffer, bytes, about.
const TOGETHER: usize = 256 << 10;

#[derive(Debug)]
pub struct CaptureFile {
    name: String,
    file: File,
    /// False for standard output, a pipe or a shared file: nothing is truncated there.
    is_ours: bool,
    waiting: Vec<u8>,
    /// Bytes that were written.
    written: u64,
    /// Packets in the buffer, and packets that were written.
    waiting_packets: u64,
    written_packets: u64,
    /// The first write error: nothing is written after it.
    refused: Option<io::Error>,
}

impl CaptureFile {
    /// Creates a file, or uses standard output.
    pub fn begin(path: &Path, existing: Existing) -> io::Result<Self> {
        if path.as_os_str() == OUT {
            let out = io::stdout().as_fd().try_clone_to_owned()?;
            return Ok(Self::new(path, File::from(out)));
        }
        Ok(Self::new(path, create_output(path, existing)?))
    }

    /// Creates a file that must not exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(path, File::create_new(path)?))
    }

    fn new(path: &Path, file: File) -> Self {
        Self {
            name: path.display().to_string(),
            file,
            is_ours: path.as_os_str() != OUT,
            waiting: Vec::with_capacity(TOGETHER),
            written: 0,
            waiting_packets: 0,
            written_packets: 0,
            refused: None,
        }
    }

    /// Adds a record, the concatenation of `parts`. Returns whether it was accepted.
    pub fn add(&mut self, parts: &[&[u8]]) -> bool {
        for part in parts {
            self.waiting.extend_from_slice(part);
        }
        if self.waiting.len() >= TOGETHER {
            self.flush();
        }
        self.refused.is_none()
    }

    /// Adds the record of a packet.
    pub fn packet(&mut self, parts: &[&[u8]]) -> bool {
        self.waiting_packets += 1;
        self.add(parts)
    }

    /// Writes the buffer, for readers and in case of a crash.
    pub fn flush(&mut self) {
        if self.refused.is_none() {
            match self.file.write_all(&self.waiting) {
                Ok(()) => {
                    self.written += self.waiting.len() as u64;
                    self.written_packets += self.waiting_packets;
                }
                Err(error) => {
                    if self.is_ours {
                        // If this fails, readers report that the file is cut off.
                        let _ = self.file.set_len(self.written);
                    }
                    self.refused = Some(error);
                }
            }
        }
        self.waiting.clear();
        self.waiting_packets = 0;
    }

    /// Bytes that were added.
    pub fn bytes(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// Packets of the capture, without those that could not be written.
    pub const fn packets(&self) -> u64 {
        match self.refused {
            None => self.written_packets + self.waiting_packets,
            Some(_) => self.written_packets,
        }
    }

    /// Whether a write failed.
    pub const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Writes the buffer and closes the file; returns the first write error.
    pub fn close(mut self) -> io::Result<()> {
        self.flush();
        self.refused.map_or(Ok(()), Err)
    }

    /// Writes the buffer and closes the file; returns its name.
    pub fn finish(mut self) -> Result<String, ListenError> {
        self.flush();
        match self.refused {
            None => Ok(self.name),
            Some(error) if !self.is_ours && error.kind() == ErrorKind::BrokenPipe => {
                Err(ListenError::OutputClosed)
            }
            Some(error) => Err(ListenError::refused(format!(
                "write {}: {error}; it has the first {} bytes",
                self.name, self.written
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_capture_file_always_ends_with_a_complete_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let mut file = CaptureFile::create(&path).expect("a new file");
        let record = [7; 1000];
        for _ in 0..TOGETHER / 1000 + 10 {
            assert!(file.add(&[&record[..400], &record[400..]]));
            let length = fs::metadata(&path).expect("it is there").len();
            assert_eq!(length % 1000, 0);
        }
        assert!(fs::metadata(&path).expect("it is there").len() > 0);
        let bytes = file.bytes();
        assert_eq!(file.finish().ok(), Some(path.display().to_string()));
        assert_eq!(fs::metadata(&path).expect("it is there").len(), bytes);
        let error = CaptureFile::create(&path).expect_err("it is there");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_full_disk_is_reported_with_the_bytes_written() {
        let full = Path::new("/dev/full");
        let mut file = CaptureFile::begin(full, Existing::Keep).expect("it opens");
        assert!(file.packet(&[&[1; 100]]), "it waits");
        assert_eq!(file.packets(), 1);
        file.flush();
        assert!(file.is_refused());
        assert_eq!(file.packets(), 0, "none of them is there");
        assert!(!file.add(&[&[1; 100]]));
        let Err(ListenError::Refused(message)) = file.finish() else {
            panic!("nothing was written");
        };
        assert!(
            message.starts_with("write /dev/full: ") && message.ends_with("the first 0 bytes"),
            "{message}"
        );
    }
}
