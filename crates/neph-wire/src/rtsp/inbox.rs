//! Splits a byte stream into messages, in bounded memory.

use super::RtspError;
use super::message::Message;

/// The longest accepted head, bytes.
pub const MAX_HEAD: usize = 16 << 10;
/// Maximum number of fields of a head.
pub const MAX_FIELDS: usize = 64;
/// The longest accepted body, bytes.
pub const MAX_BODY: usize = 64 << 10;

/// Received bytes that are no complete message yet. Memory is bounded if the caller takes all
/// messages after each push.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

/// A parsed head, and the position of its body.
struct Head {
    message: Message,
    begins: usize,
    length: usize,
}

impl Inbox {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next message, if it is complete.
    ///
    /// # Errors
    /// The bytes are no RTSP message, or exceed a limit. The connection is unusable then.
    pub fn next_message(&mut self) -> Result<Option<Message>, RtspError> {
        // Empty lines before a message are skipped (RFC 2326, section 4.1, as RFC 2616 has it).
        let empty = self.bytes.iter();
        let empty = empty.take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let empty = empty.count();
        self.bytes.drain(..empty);
        if self.bytes.first() == Some(&b'$') {
            return Err(RtspError::Interleaved);
        }
        let Some(head) = read_head(&self.bytes)? else {
            return Ok(None);
        };
        let end = head.begins + head.length;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let mut message = head.message;
        message.set_body(self.bytes[head.begins..end].to_vec());
        self.bytes.drain(..end);
        Ok(Some(message))
    }
}

/// The head at the start of these bytes, if it is complete.
fn read_head(bytes: &[u8]) -> Result<Option<Head>, RtspError> {
    let mut message: Option<Message> = None;
    let (mut at, mut length) = (0, None);
    loop {
        let remaining = &bytes[at..];
        let Some(end) = remaining.iter().position(|byte| *byte == b'\n') else {
            if bytes.len() > MAX_HEAD {
                return Err(RtspError::HeadTooLong(MAX_HEAD));
            }
            return Ok(None);
        };
        at += end + 1;
        if at > MAX_HEAD {
            return Err(RtspError::HeadTooLong(MAX_HEAD));
        }
        let line = &remaining[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(message) = &mut message else {
            let line = text(line).ok_or(RtspError::FirstLine)?;
            message = Some(Message::begin(line)?);
            continue;
        };
        if line.is_empty() {
            return Ok(Some(Head {
                message: message.clone(),
                begins: at,
                length: length.unwrap_or(0),
            }));
        }
        let line = text(line).ok_or(RtspError::Field)?;
        let (name, value) = line.split_once(':').ok_or(RtspError::Field)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RtspError::Field);
        }
        let value = value.trim();
        if name.eq_ignore_ascii_case("Content-Length") {
            let number = body_length(value).filter(|_| length.is_none());
            length = Some(number.ok_or(RtspError::BodyLength(MAX_BODY))?);
            continue;
        }
        let headers = message.headers_mut();
        if headers.len() >= MAX_FIELDS {
            return Err(RtspError::TooManyFields(MAX_FIELDS));
        }
        headers.push(name, value);
    }
}

/// A plain decimal number of bytes within the limit.
fn body_length(value: &str) -> Option<usize> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let length = value.parse().ok().filter(|length| *length <= MAX_BODY);
    length.filter(|_| is_plain)
}

/// UTF-8 without control characters.
fn text(line: &[u8]) -> Option<&str> {
    let line = str::from_utf8(line).ok()?;
    let is_plain = |character: char| !character.is_control();
    line.chars().all(is_plain).then_some(line)
}
