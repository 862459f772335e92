//! Writes heads.
//!
//! Owns the protection against header injection. Does not own which headers make sense.

use std::io::Write;

use super::HttpError;

/// The Connection header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Further messages follow.
    KeepAlive,
    /// No further message.
    Close,
}

/// A request head.
#[derive(Debug, Clone, Copy)]
pub struct RequestLine<'a> {
    /// GET, POST or HEAD, in capitals.
    pub method: &'a str,
    /// Path and query; begins with a slash.
    pub target: &'a str,
    /// The Host header: name or address, with the port unless it is the default of the scheme.
    pub host: &'a str,
    /// Length of the body; `None` writes no Content-Length.
    pub content_length: Option<u64>,
    /// The Connection header.
    pub connection: Connection,
}

/// A response head.
#[derive(Debug, Clone, Copy)]
pub struct ResponseLine {
    /// The status code, 100-599.
    pub status: u16,
    /// Length of the body; `None` writes no Content-Length (101, 204).
    pub content_length: Option<u64>,
    /// The Connection header.
    pub connection: Connection,
}

impl Connection {
    fn text(self) -> &'static str {
        match self {
            Self::KeepAlive => "keep-alive",
            Self::Close => "close",
        }
    }
}

impl RequestLine<'_> {
    /// Appends the head with these additional header lines.
    ///
    /// # Errors
    /// [`HttpError::Text`] when a field has a character that is not allowed; appends nothing then.
    pub fn encode(&self, extra: &[(&str, &str)], out: &mut Vec<u8>) -> Result<(), HttpError> {
        for text in [self.method, self.target, self.host] {
            check_text(text)?;
        }
        check_extra(extra)?;
        let (method, target, host) = (self.method, self.target, self.host);
        write!(out, "{method} {target} HTTP/1.1\r\nHost: {host}\r\n")
            .expect("writing to a Vec cannot fail");
        finish(self.content_length, self.connection, extra, out);
        Ok(())
    }
}

impl ResponseLine {
    /// Appends the head with these additional header lines.
    ///
    /// # Errors
    /// [`HttpError::Text`] when a header has a character that is not allowed; appends nothing then.
    pub fn encode(&self, extra: &[(&str, &str)], out: &mut Vec<u8>) -> Result<(), HttpError> {
        check_extra(extra)?;
        let (status, reason) = (self.status, reason(self.status));
        write!(out, "HTTP/1.1 {status:03} {reason}\r\n").expect("writing to a Vec cannot fail");
        finish(self.content_length, self.connection, extra, out);
        Ok(())
    }
}

fn finish(
    content_length: Option<u64>,
    connection: Connection,
    extra: &[(&str, &str)],
    out: &mut Vec<u8>,
) {
    let holds = "writing to a Vec cannot fail";
    if let Some(length) = content_length {
        write!(out, "Content-Length: {length}\r\n").expect(holds);
    }
    for (name, value) in extra {
        write!(out, "{name}: {value}\r\n").expect(holds);
    }
    write!(out, "Connection: {}\r\n\r\n", connection.text()).expect(holds);
}

fn check_extra(extra: &[(&str, &str)]) -> Result<(), HttpError> {
    for (name, value) in extra {
        check_text(name)?;
        let printable = value
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if name.contains(':') || !printable {
            return Err(HttpError::Text);
        }
    }
    Ok(())
}

/// Requires visible ASCII, at least one character: nothing that ends a word or a line.
pub(crate) fn check_text(text: &str) -> Result<(), HttpError> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(()) } else { Err(HttpError::Text) }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
