//! Standard output and standard error: the only place that prints.
//!
//! A reader that goes away ends the command quietly. `NO_COLOR` and a terminal decide about colour.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;

use neph_sys::standard;

/// Bytes of data that are written at once, where nobody waits for a line: a call for each 8 KiB took a
/// thirtieth of what reading a large capture takes.
const ROOM: usize = 128 << 10;

/// Says something to the person at the terminal: never data.
pub(crate) fn say(sentence: &str) {
    // Where standard error is closed nobody listens.
    let _ = writeln!(io::stderr().lock(), "{sentence}");
}

/// Writes over the line that was last written so; an empty one takes it away.
pub(crate) fn rewrite(line: &str) {
    let mut err = io::stderr().lock();
    // A line of progress that cannot be written is no loss.
    let _ = write!(err, "\r\x1b[K{line}").and_then(|()| err.flush());
}

/// Standard output, for data.
pub(crate) fn data() -> BufWriter<Data> {
    BufWriter::with_capacity(ROOM, Data(io::stdout().lock()))
}

/// One line of data, at once.
///
/// # Errors
/// It cannot be written.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = data();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

/// Standard output, for bytes that are no text.
///
/// # Errors
/// It was closed when neph began.
pub(crate) fn bytes() -> io::Result<File> {
    is_open()?;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Whether standard output is a terminal.
pub(crate) fn is_read_by_people() -> bool {
    io::stdout().is_terminal()
}

/// Whether there is a standard output, so that nothing is measured for nobody.
///
/// # Errors
/// It was closed when neph began.
pub(crate) fn is_open() -> io::Result<()> {
    if standard::output_was_closed() {
        return Err(io::Error::other(
            "standard output is closed; let it go to a file (> FILE)",
        ));
    }
    Ok(())
}

/// Standard output; where it was closed, nothing can be written, as on a full disk.
#[derive(Debug)]
pub(crate) struct Data(StdoutLock<'static>);

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        is_open()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether standard error is a terminal that can be rewritten.
pub(crate) fn is_lively() -> bool {
    io::stderr().is_terminal()
}

/// How many lines the reader's terminal has; none where it is none.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, height)| usize::from(height.0))
}

/// How many columns the reader's terminal has; 100 where it is none.
pub(crate) fn width() -> usize {
    let told = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    told.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .unwrap_or(100)
}
