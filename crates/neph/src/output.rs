//! Standard output and standard error: the only place that prints.
//!
//! All text passes `neph_text::external_text` here, so that no text from a peer or a file can control the
//! terminal. A message is one line of bounded length. A closed pipe ends the command quietly.
//! `NO_COLOR` and the terminal decide about colour.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;

use clap::builder::StyledStr;
use neph_sys::standard;
use neph_text::{LONGEST_SENTENCE, Visible, coloured, one_line, several_lines};

/// Buffer size, bytes, unless a terminal reads line by line. One write per 8 KiB took 1/30 of the
/// time to read a large capture.
const BUFFER_BYTES: usize = 128 << 10;
/// Maximum length of a text with several lines, characters.
const MAX_TEXT_CHARS: usize = 64 << 10;

/// Prints one sentence on standard error, in one line.
pub(crate) fn say(sentence: &str) {
    print(&one_line(sentence, LONGEST_SENTENCE));
}

/// Prints text that is known to have several lines.
pub(crate) fn report_lines(text: &str) {
    print(&several_lines(text, MAX_TEXT_CHARS));
}

/// Prints text with several lines, in which a library of neph has set colours.
pub(crate) fn report_coloured(text: &str) {
    print(&coloured(text));
}

/// Prints why clap refused a command line. The message contains the user's input.
pub(crate) fn report_clap(reason: &StyledStr) {
    // A line break in the user's input is not from clap: then all text becomes one line.
    if std::env::args_os().any(|argument| argument.as_encoded_bytes().contains(&b'\n')) {
        say(reason.to_string().trim_end());
        return;
    }
    let has_colours =
        can_rewrite() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if has_colours {
        report_coloured(reason.ansi().to_string().trim_end());
    } else {
        report_lines(reason.to_string().trim_end());
    }
}

fn print(text: &str) {
    // If standard error is closed, there is no reader.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Replaces the last line of progress; an empty text clears the line.
pub(crate) fn rewrite(line: &str) {
    let line = one_line(line, LONGEST_SENTENCE);
    let mut stderr = io::stderr().lock();
    // Errors are ignored: progress is not essential.
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// Moves the cursor of the terminal up by this number of lines and clears the lines below it. Flush
/// earlier output to [`data`] first.
///
/// # Errors
/// It cannot be written.
pub(crate) fn clear_lines(line_count: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if line_count > 0 {
        write!(out, "\x1b[{line_count}A")?;
    }
    write!(out, "\r\x1b[J")?;
    out.flush()
}

/// Standard output, for data.
pub(crate) fn data() -> BufWriter<Data> {
    BufWriter::with_capacity(BUFFER_BYTES, Data(Visible::new(io::stdout().lock())))
}

/// Writes one line of data immediately.
///
/// # Errors
/// It cannot be written.
pub(crate) fn print_line(text: &str) -> io::Result<()> {
    let mut out = data();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

/// Standard output for binary data.
///
/// # Errors
/// It was closed when neph began.
pub(crate) fn bytes() -> io::Result<File> {
    check_open()?;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Fails without a standard output, so that no measurement runs without a reader.
///
/// # Errors
/// It was closed when neph began.
pub(crate) fn check_open() -> io::Result<()> {
    if standard::output_was_closed() {
        return Err(io::Error::other(
            "standard output is closed; let it go to a file (> FILE)",
        ));
    }
    Ok(())
}

/// Standard output for text; if it is closed, writing fails, as on a full disk.
#[derive(Debug)]
pub(crate) struct Data(Visible<StdoutLock<'static>>);

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_open()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether standard error is a terminal that can be rewritten.
pub(crate) fn can_rewrite() -> bool {
    io::stderr().is_terminal()
}

/// The number of lines of the terminal; `None` without a terminal.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, height)| usize::from(height.0))
}

/// The number of columns of the terminal; 100 without a terminal.
pub(crate) fn width() -> usize {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    columns
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .unwrap_or(100)
}
