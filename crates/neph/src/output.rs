//! Standard output and standard error: the only place that prints.
//!
//! All text passes `neph_text::outside` here, so that nothing a peer or a file contains can control
//! the terminal. A sentence is one line of bounded length. A reader that goes away ends the command
//! quietly. `NO_COLOR` and a terminal decide about colour.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;

use clap::builder::StyledStr;
use neph_sys::standard;
use neph_text::{LONGEST_SENTENCE, Visible, coloured, one_line, several_lines};

/// Bytes of data that are written at once, if no reader waits for a line. One call for each 8 KiB took
/// 1/30 of the time to read a large capture.
const ROOM: usize = 128 << 10;
/// Characters of a text in several lines, at most.
const LONGEST_TEXT: usize = 64 << 10;

/// Prints one sentence for the person at the terminal, in one line: never data.
pub(crate) fn say(sentence: &str) {
    print(&one_line(sentence, LONGEST_SENTENCE));
}

/// Prints text that is known to have several lines.
pub(crate) fn report_lines(text: &str) {
    print(&several_lines(text, LONGEST_TEXT));
}

/// Prints text in several lines, in which a library of neph has put colours.
pub(crate) fn report_coloured(text: &str) {
    print(&coloured(text));
}

/// Prints why clap refused a command line. The message contains the user's input.
pub(crate) fn report_clap(why: &StyledStr) {
    // A line break that was typed is none of clap's: all is one line then.
    if std::env::args_os().any(|typed| typed.as_encoded_bytes().contains(&b'\n')) {
        say(why.to_string().trim_end());
        return;
    }
    let has_colours = is_lively() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    if has_colours {
        report_coloured(why.ansi().to_string().trim_end());
    } else {
        report_lines(why.to_string().trim_end());
    }
}

fn print(text: &str) {
    // If standard error is closed, there is no reader.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes over the line that was last written so; an empty one takes it away.
pub(crate) fn rewrite(line: &str) {
    let line = one_line(line, LONGEST_SENTENCE);
    let mut err = io::stderr().lock();
    // A line of progress that cannot be written is no loss.
    let _ = write!(err, "\r\x1b[K{line}").and_then(|()| err.flush());
}

/// Moves the cursor of the terminal up by so many lines and clears what is below it. What was written
/// to [`data`] before must be flushed.
///
/// # Errors
/// It cannot be written.
pub(crate) fn clear_lines(drawn: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if drawn > 0 {
        write!(out, "\x1b[{drawn}A")?;
    }
    write!(out, "\r\x1b[J")?;
    out.flush()
}

/// Standard output, for data.
pub(crate) fn data() -> BufWriter<Data> {
    BufWriter::with_capacity(ROOM, Data(Visible::new(io::stdout().lock())))
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

/// Fails without a standard output, so that no measurement runs without a reader.
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

/// Standard output for text; where it was closed, nothing can be written, as on a full disk.
#[derive(Debug)]
pub(crate) struct Data(Visible<StdoutLock<'static>>);

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
    let reported = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    reported
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .unwrap_or(100)
}
