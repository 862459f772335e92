//! Named pipes to programs that may be gone.
//!
//! Owns opening them without waiting for a reader that never comes. Does not make them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens the named pipe at `path` to write to it; a write to a full pipe returns `WouldBlock`.
///
/// # Errors
/// There is no such pipe, or no process has it open to read from it (`ENXIO`, see [`is_unread`]).
pub fn writer(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// Whether the error means that no process reads from the pipe.
pub fn is_unread(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
}

#[cfg(test)]
mod tests {

    use super::*;

    use crate::process;

    #[test]
    fn opening_a_pipe_without_a_reader_fails_at_once() {
        let path = std::env::temp_dir().join(format!("neph-fifo-{}", std::process::id()));
        let made = process::command("mkfifo")
            .arg(&path)
            .status()
            .expect("mkfifo");
        assert!(made.success());
        let error = writer(&path).expect_err("no reader");
        assert!(is_unread(&error), "{error}");
        let _reader = OpenOptions::new().read(true).write(true).open(&path);
        assert!(writer(&path).is_ok());
        std::fs::remove_file(&path).expect("our own");
    }
}
