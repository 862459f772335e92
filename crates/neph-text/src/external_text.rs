//! Makes external text safe to print: names in files, paths, output of peers and other programs. No
//! other module decides which characters a terminal receives.
//!
//! A hidden character is written as `\u001b`, in UTF-16 as in JSON, so that a JSON document keeps
//! its meaning. Text without hidden characters is not changed.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::path::Path;

mod writer;

pub use writer::{Visible, visible_file};

/// Maximum characters of an external value.
pub const LONGEST_VALUE: usize = 300;
/// Maximum characters of a message.
pub const LONGEST_SENTENCE: usize = 4096;
/// The end of a text that was cut.
const CUT: &str = "...";

/// Characters other than letters and spaces that a terminal interprets or does not show. Unicode
/// 16: controls, format characters, fillers, variation selectors, tags.
const HIDDEN: [(char, char); 25] = [
    ('\0', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a terminal interprets `letter` or does not show it: controls (C0 with tab and newline,
/// DEL, C1), bidirectional controls, zero-width and other invisible characters.
pub const fn is_hidden(letter: char) -> bool {
    if matches!(letter, ' '..='~') {
        return false;
    }
    let mut at = 0;
    while at < HIDDEN.len() {
        if letter <= HIDDEN[at].1 {
            return letter >= HIDDEN[at].0;
        }
        at += 1;
    }
    false
}

/// An external text in one line of at most [`LONGEST_VALUE`] characters, without hidden ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrintableText(String);

impl PrintableText {
    /// From a text.
    pub fn text(text: &str) -> Self {
        Self(one_line(text, LONGEST_VALUE).into_owned())
    }
    /// From bytes that should be UTF-8; other bytes become U+FFFD.
    pub fn bytes(bytes: &[u8]) -> Self {
        // A character has at most four bytes: the rest is cut in any case.
        let limit = bytes.len().min(4 * LONGEST_VALUE + 4);
        Self::text(&String::from_utf8_lossy(&bytes[..limit]))
    }
    /// From a path.
    pub fn path(path: &Path) -> Self {
        Self::text(&path.to_string_lossy())
    }
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrintableText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<PrintableText> for String {
    fn from(text: PrintableText) -> Self {
        text.0
    }
}

/// `text` with every hidden character escaped, newlines and tabs as well: one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// `text` with every hidden character escaped except newlines and tabs: for text with several
/// lines.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| matches!(letter, '\n' | '\t'))
}

/// `text` as from [`visible`], cut to `most` characters; a cut text ends in `...`.
pub fn one_line(text: &str, limit: usize) -> Cow<'_, str> {
    bounded(text, limit, |_| false)
}

/// `text` as from [`visible_lines`], cut to `most` characters; a cut text ends in `...`.
pub fn several_lines(text: &str, limit: usize) -> Cow<'_, str> {
    bounded(text, limit, |letter| matches!(letter, '\n' | '\t'))
}

/// `text` as from [`visible_lines`], but with colours (SGR sequences, `ESC [ 1;31 m`). Only for
/// neph's output: external text in it must have been escaped before.
pub fn coloured(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut parts = text.split("\x1b[");
    shown.push_str(&visible_lines(parts.next().unwrap_or_default()));
    for part in parts {
        let numbers = part
            .bytes()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b';'));
        let length = numbers.count();
        if part.as_bytes().get(length) == Some(&b'm') {
            shown.push_str("\x1b[");
        } else {
            put(&mut shown, '\x1b');
            shown.push('[');
        }
        shown.push_str(&visible_lines(part));
    }
    shown
}

fn bounded(text: &str, limit: usize, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let limit = limit.max(CUT.len());
    let mut written = 0;
    let mut clean = true;
    // Where to cut if the text does not fit: the output up to here leaves room for the dots.
    let mut end = 0;
    for (at, letter) in text.char_indices() {
        if written <= limit - CUT.len() {
            end = at;
        }
        let hidden = is_hidden(letter) && !is_kept(letter);
        clean &= !hidden;
        written += if hidden { 6 * letter.len_utf16() } else { 1 };
        if written > limit {
            let mut cut = escaped(&text[..end], is_kept).into_owned();
            cut.push_str(CUT);
            return Cow::Owned(cut);
        }
    }
    if clean {
        return Cow::Borrowed(text);
    }
    escaped(text, is_kept)
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |letter: char| is_hidden(letter) && !is_kept(letter);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) {
            put(&mut escaped, letter);
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// Writes the escape of `letter`.
fn put(out: &mut String, letter: char) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        write!(out, "\\u{unit:04x}").expect("a String takes everything");
    }
}

#[cfg(test)]
mod tests;
