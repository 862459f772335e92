//! Standard output and standard error: the only place that prints.
//!
//! A reader that goes away ends the command quietly. `NO_COLOR` and a terminal decide about colour.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

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
pub(crate) fn data() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
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
