//! Reads a capture while it is written.
//!
//! Owns the position for the next read. The capture must be pcap as a recording writes it: complete
//! records, nearly in the order of time.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use neph_wire::capture::{CaptureReader, Record, Step};

/// Bytes per read.
const AT_ONCE: usize = 256 << 10;
/// Largest difference by which a packet may follow one with a later timestamp: processors write in
/// turn.
const DISORDER: i64 = 10_000_000;

/// A growing capture.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: Option<File>,
    reader: CaptureReader,
    /// The position for the next read.
    from: u64,
}

impl Tail {
    pub(super) fn of(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            reader: CaptureReader::new(),
            from: 0,
        }
    }

    /// Shows the packets with timestamps in `times` that are written so far. Bytes before the first
    /// packet from `next` on are not read again.
    ///
    /// # Errors
    /// It cannot be read, or is no capture. A file that does not exist yet is empty.
    pub(super) fn read(
        &mut self,
        times: &Range<i64>,
        next: i64,
        mut show: impl FnMut(i64, &Record<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let Some(file) = opened(&mut self.file, &self.path)? else {
            return Ok(());
        };
        let (mut bytes, mut used, mut at) = (Vec::new(), 0, self.from);
        let mut last_count = None;
        loop {
            let length = match self.reader.step(&bytes[used..]) {
                Ok(Step::Packet(record, length)) => {
                    let stamp = record.at.unwrap_or(i64::MIN);
                    if stamp >= times.end.saturating_add(DISORDER) {
                        break;
                    }
                    if stamp >= next {
                        last_count.get_or_insert(at);
                    }
                    if times.contains(&stamp) && show(stamp, &record).is_break() {
                        return Ok(());
                    }
                    length
                }
                Ok(Step::Skip(length)) => length,
                Ok(Step::Need(_)) => {
                    bytes.drain(..used);
                    used = 0;
                    if fill(file, at, &mut bytes)? == 0 {
                        break;
                    }
                    continue;
                }
                Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
            };
            used += length;
            at += length as u64;
        }
        self.from = last_count.unwrap_or(at);
        Ok(())
    }

    /// The path as text.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }
}

fn opened<'a>(file: &'a mut Option<File>, path: &PathBuf) -> io::Result<Option<&'a File>> {
    if file.is_none() {
        *file = match File::open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
    }
    Ok(file.as_ref())
}

/// Appends the bytes after `bytes`, which start at `at`; returns their number.
fn fill(file: &File, at: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let have = bytes.len();
    bytes.resize(have + AT_ONCE, 0);
    let read = loop {
        match file.read_at(&mut bytes[have..], at + have as u64) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    bytes.truncate(have + *read.as_ref().unwrap_or(&0));
    read
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use neph_wire::capture::{ETHERNET, pcap_header, pcap_record};

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// The times of the packets of a read, in seconds.
    fn seconds(tail: &mut Tail, times: Range<i64>, next: i64) -> Vec<i64> {
        let times = times.start * SECOND..times.end * SECOND;
        let mut shown = Vec::new();
        let read = tail.read(&times, next * SECOND, |at, _| {
            shown.push(at / SECOND);
            ControlFlow::Continue(())
        });
        read.expect("a capture");
        shown
    }

    #[test]
    fn a_growing_file_is_read_and_old_packets_are_not_read_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let mut tail = Tail::of(path.clone());
        assert!(seconds(&mut tail, 0..9, 0).is_empty(), "it is not there");
        let mut bytes = pcap_header(ETHERNET, 64).to_vec();
        for second in 1..=6 {
            bytes.extend(pcap_record(second * SECOND, 60, 60));
            bytes.extend([7; 60]);
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = file.expect("a file");
        // The third record is incomplete.
        let (now, later) = bytes.split_at(24 + 2 * 76 + 30);
        file.write_all(now).expect("written");
        assert_eq!(seconds(&mut tail, 0..9, 0), [1, 2]);
        file.write_all(later).expect("written");
        assert_eq!(seconds(&mut tail, 2..5, 4), [2, 3, 4]);
        assert_eq!(seconds(&mut tail, 0..9, 7), [4, 5, 6]);
        assert!(seconds(&mut tail, 0..9, 0).is_empty(), "all is behind it");
    }

    #[test]
    fn a_file_that_is_no_capture_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        std::fs::write(&path, "Welcome to db1!").expect("a file");
        let mut tail = Tail::of(path);
        let read = tail.read(&(0..9), 0, |_, _| ControlFlow::Continue(()));
        assert_eq!(
            read.map_err(|error| error.kind()),
            Err(ErrorKind::InvalidData)
        );
    }
}
