//! A service's output in /run, which is memory: its size is limited.
//!
//! Owns the pipe that the service writes to, and the two files for its content: the log, and with the suffix
//! `.1` the previous log.

use std::fs::{self, File};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use neph_text::PrintableText;

/// The maximum size of each file.
const MAX_FILE_SIZE: u64 = 4 << 20;
/// Bytes per read: the capacity of the pipe.
const CHUNK: usize = 64 * 1024;
/// Number of lines that are reported when a service ended.
const REPORTED_LINES: usize = 5;
/// Bytes at the end of a log that are searched for these lines.
const SEARCHED_BYTES: u64 = 64 << 10;

/// Forwards a service's output to its log.
#[derive(Debug)]
pub(super) struct Output {
    pipe: PipeReader,
    log: Log,
    chunk: Vec<u8>,
    is_reported: bool,
}

impl Output {
    /// Output into `log`, and where the service writes it.
    pub(super) fn create(log: &Path) -> io::Result<(Self, PipeWriter)> {
        let log = Log::begin(log)?;
        let (pipe, writer) = io::pipe()?;
        let output = Self {
            pipe,
            log,
            chunk: vec![0; CHUNK],
            is_reported: false,
        };
        Ok((output, writer))
    }

    /// Readable when there is output, or no writer is left.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Forwards available output, or waits for it; false if no writer is left.
    pub(super) fn forward(&mut self) -> bool {
        let length = match self.pipe.read(&mut self.chunk) {
            Ok(0) => return false,
            Ok(length) => length,
            Err(error) => return error.kind() == ErrorKind::Interrupted,
        };
        match self.log.write(&self.chunk[..length]) {
            // It was removed with the lab, which another process is taking down.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if !self.is_reported => {
                self.is_reported = true;
                let log = self.log.path.display();
                tracing::warn!("write the log {log}: {error}; what does not fit is lost");
            }
            _ => {}
        }
        true
    }
}

/// A file that restarts when it is full; its previous content is kept once.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Log {
    fn begin(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: File::create(path)?,
            length: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let more = bytes.len() as u64;
        if self.length + more > MAX_FILE_SIZE {
            fs::rename(&self.path, previous_log(&self.path))?;
            *self = Self::begin(&self.path)?;
        }
        self.length += more;
        self.file.write_all(bytes)
    }
}

/// The file of the previous log.
fn previous_log(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// The last lines of a log, in one line.
pub(super) fn last_lines(log: &Path) -> String {
    let bytes = read_last_bytes(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| PrintableText::text(line).into())
        .collect();
    let last = &lines[lines.len().saturating_sub(REPORTED_LINES)..];
    match last {
        [] => format!("it wrote nothing ({})", log.display()),
        _ => format!("{} ({})", last.join(" | "), log.display()),
    }
}

/// The last bytes of a log.
fn read_last_bytes(log: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(SEARCHED_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_the_latest_output_within_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("web.log");
        let (mut output, mut writer) = Output::create(&path).expect("a log");
        let line = vec![b'x'; CHUNK];
        for _ in 0..3 * MAX_FILE_SIZE / CHUNK as u64 {
            writer.write_all(&line).expect("there is room for one");
            assert!(output.forward());
        }
        writer.write_all(b"\nlast \x1b[2Jwords").expect("room");
        assert!(output.forward());
        drop(writer);
        assert!(!output.forward(), "the writer is closed");
        assert!(last_lines(&path).starts_with("last \\u001b[2Jwords ("));
        let [current_length, previous_length] = [path.clone(), previous_log(&path)].map(|file| {
            let metadata = fs::metadata(file).expect("there are two");
            metadata.len()
        });
        assert!(current_length <= MAX_FILE_SIZE, "{current_length}");
        assert_eq!(previous_length, MAX_FILE_SIZE);
    }
}
