//! A text stream to a terminal or a file, without hidden characters.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{is_hidden, put};

/// Writes text to `W` with every hidden character escaped except newlines (also CR LF) and tabs;
/// bytes other than UTF-8 become U+FFFD. JSON keeps its meaning.
#[derive(Debug)]
pub struct Visible<W: Write> {
    inner: W,
    /// The bytes of an incomplete character, or a CR.
    incomplete: Vec<u8>,
}

impl<W: Write> Visible<W> {
    /// Writes to `inner`.
    pub const fn new(inner: W) -> Self {
        Self {
            inner,
            incomplete: Vec::new(),
        }
    }

    /// The target.
    pub const fn inner(&self) -> &W {
        &self.inner
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.incomplete.is_empty() && is_plain(bytes) {
            return self.inner.write(bytes);
        }
        let mut joined = std::mem::take(&mut self.incomplete);
        joined.extend_from_slice(bytes);
        let rest_length = unfinished(&joined);
        self.incomplete = joined.split_off(joined.len() - rest_length);
        if is_plain(&joined) {
            self.inner.write_all(&joined)?;
        } else {
            self.inner.write_all(escaped(&joined).as_bytes())?;
        }
        Ok(bytes.len())
    }

    /// Does not write an incomplete character, because its end may follow.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Visible<W> {
    fn drop(&mut self) {
        if !self.incomplete.is_empty() {
            // neph's text never ends within a character. A write error here also occurs in the
            // flush before.
            let _ = self.inner.write_all(escaped(&self.incomplete).as_bytes());
        }
    }
}

/// Whether all bytes are printable ASCII, newlines or tabs.
fn is_plain(bytes: &[u8]) -> bool {
    // Without an early exit within a block, the compiler vectorises the loop.
    bytes.chunks(256).all(|block| {
        block.iter().fold(true, |plain, byte| {
            plain & (matches!(byte, b' '..=b'~') | matches!(byte, b'\n' | b'\t'))
        })
    })
}

/// The number of bytes at the end that may belong to an incomplete character or CR LF.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    if tail.last() == Some(&b'\r') {
        return 1;
    }
    for (back, byte) in tail.iter().rev().enumerate() {
        let sequence_length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if back + 1 < sequence_length {
            back + 1
        } else {
            0
        };
    }
    0
}

fn escaped(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    visible_file(&text).into_owned()
}

/// `text` with every hidden character escaped except newlines (also CR LF) and tabs: for a file.
pub fn visible_file(text: &str) -> Cow<'_, str> {
    let is_left = |letter| matches!(letter, '\n' | '\t');
    if is_plain(text.as_bytes()) || !text.contains(|letter| is_hidden(letter) && !is_left(letter)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_kept = is_left(letter) || letter == '\r' && letters.peek() == Some(&'\n');
        if is_hidden(letter) && !is_kept {
            put(&mut out, letter);
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}
