//! Request and response heads with limits, and their rules for the body and the connection.
//!
//! Owns the rules of RFC 9112 sections 6.3 and 9.3. Does not own the reading of bodies.

use httparse::{Request, Response, Status};

use super::HttpError;
use super::body::BodyLength;
use super::headers::{Headers, MAX_HEADERS};

/// Maximum length of a request head, from the first line to the empty one, bytes.
pub const MAX_HEAD: usize = 16 * 1024;

/// Maximum length of a response head, bytes: the smallest of the limits of curl and browsers.
pub const MAX_RESPONSE_HEAD: usize = 256 * 1024;

/// Maximum number of header lines of a response head.
pub const MAX_RESPONSE_HEADERS: usize = 1024;

/// Limits of a head.
#[derive(Debug, Clone, Copy)]
struct Limits {
    bytes: usize,
    lines: usize,
}

const REQUEST: Limits = Limits {
    bytes: MAX_HEAD,
    lines: MAX_HEADERS,
};
const RESPONSE: Limits = Limits {
    bytes: MAX_RESPONSE_HEAD,
    lines: MAX_RESPONSE_HEADERS,
};

/// A checked request head.
#[derive(Debug, Clone)]
pub struct RequestHead<'a> {
    method: &'a str,
    target: &'a str,
    minor_version: u8,
    headers: Headers<'a>,
    body: BodyLength,
    len: usize,
}

/// A checked response head.
#[derive(Debug, Clone)]
pub struct ResponseHead<'a> {
    status: u16,
    minor_version: u8,
    headers: Headers<'a>,
    framing: Framing,
    len: usize,
}

/// The end of a message according to its headers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Unsaid,
    Length(u64),
    Chunked,
    /// A transfer coding that ends with the connection.
    OtherCoding,
}

impl<'a> RequestHead<'a> {
    /// The method, as sent.
    pub fn method(&self) -> &'a str {
        self.method
    }

    /// Path and query, as sent.
    pub fn target(&self) -> &'a str {
        self.target
    }

    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub fn minor_version(&self) -> u8 {
        self.minor_version
    }

    /// The header lines.
    pub fn headers(&self) -> &Headers<'a> {
        &self.headers
    }

    /// Where the body ends.
    pub fn body(&self) -> BodyLength {
        self.body
    }

    /// Length of the head in bytes: the offset of the body.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a head has at least its first line.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the client may send further requests on this connection (section 9.3).
    pub fn keep_alive(&self) -> bool {
        keep_alive(&self.headers, self.minor_version)
    }
}

impl<'a> ResponseHead<'a> {
    /// The status code, three digits.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub fn minor_version(&self) -> u8 {
        self.minor_version
    }

    /// The header lines.
    pub fn headers(&self) -> &Headers<'a> {
        &self.headers
    }

    /// Length of the head in bytes: the offset of the body.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a head has at least its first line.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How the body ends, given the method of the request (section 6.3).
    pub fn body(&self, request_method: &str) -> BodyLength {
        if request_method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304) {
            return BodyLength::Empty;
        }
        match self.framing {
            Framing::Length(0) => BodyLength::Empty,
            Framing::Length(length) => BodyLength::Exactly(length),
            Framing::Chunked => BodyLength::Chunked,
            Framing::Unsaid | Framing::OtherCoding => BodyLength::UntilClose,
        }
    }

    /// Whether the connection can be reused after the body (section 9.3).
    pub fn keep_alive(&self, request_method: &str) -> bool {
        self.body(request_method) != BodyLength::UntilClose
            && keep_alive(&self.headers, self.minor_version)
    }
}

/// Reads a request head from the start of `bytes`; `None` when more bytes are needed.
///
/// # Errors
/// When the syntax is broken, a limit is exceeded, or the end of the body is ambiguous.
pub fn parse_request(bytes: &[u8]) -> Result<Option<RequestHead<'_>>, HttpError> {
    let mut headers = Headers::empty();
    let mut request = Request::new(headers.storage());
    let status = request.parse(&bytes[..bytes.len().min(MAX_HEAD)]);
    let Some(len) = complete(status, bytes, REQUEST)? else {
        return Ok(None);
    };
    let (method, target) = (request.method, request.path);
    let (version, count) = (request.version, request.headers.len());
    headers.set_count(count);
    let minor_version = version.ok_or(HttpError::Syntax(httparse::Error::Version))?;
    if minor_version == 1 && headers.only("host").is_none() {
        return Err(HttpError::Host);
    }
    let body = match framing(&headers, minor_version)? {
        Framing::Unsaid | Framing::Length(0) => BodyLength::Empty,
        Framing::Length(length) => BodyLength::Exactly(length),
        Framing::Chunked => BodyLength::Chunked,
        Framing::OtherCoding => return Err(HttpError::TransferEncoding),
    };
    let missing = HttpError::Syntax(httparse::Error::Token);
    let (method, target) = (method.ok_or(missing)?, target.ok_or(missing)?);
    Ok(Some(RequestHead {
        method,
        target,
        minor_version,
        headers,
        body,
        len,
    }))
}

/// Reads a response head from the start of `bytes`; `None` when more bytes are needed.
///
/// # Errors
/// As [`parse_request`]; a coding other than chunked is allowed and ends with the connection.
pub fn parse_response(bytes: &[u8]) -> Result<Option<ResponseHead<'_>>, HttpError> {
    match response_in(bytes, Headers::empty()) {
        Err(HttpError::TooManyHeaders(_)) => {
            response_in(bytes, Headers::with_room(MAX_RESPONSE_HEADERS))
        }
        read => read,
    }
}

fn response_in<'a>(
    bytes: &'a [u8],
    mut headers: Headers<'a>,
) -> Result<Option<ResponseHead<'a>>, HttpError> {
    let mut response = Response::new(headers.storage());
    let status = response.parse(&bytes[..bytes.len().min(MAX_RESPONSE_HEAD)]);
    let Some(len) = complete(status, bytes, RESPONSE)? else {
        return Ok(None);
    };
    let (version, code) = (response.version, response.code);
    let count = response.headers.len();
    headers.set_count(count);
    let minor_version = version.ok_or(HttpError::Syntax(httparse::Error::Version))?;
    let status = code.ok_or(HttpError::Syntax(httparse::Error::Status))?;
    let framing = framing(&headers, minor_version)?;
    Ok(Some(ResponseHead {
        status,
        minor_version,
        headers,
        framing,
        len,
    }))
}

fn complete(
    status: Result<Status<usize>, httparse::Error>,
    bytes: &[u8],
    limits: Limits,
) -> Result<Option<usize>, HttpError> {
    match status {
        Ok(Status::Complete(len)) => Ok(Some(len)),
        Ok(Status::Partial) if bytes.len() >= limits.bytes => {
            Err(HttpError::HeadTooLong(limits.bytes))
        }
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(HttpError::TooManyHeaders(limits.lines)),
        Err(error) => Err(HttpError::Syntax(error)),
    }
}

fn framing(headers: &Headers<'_>, minor_version: u8) -> Result<Framing, HttpError> {
    let length = content_length(headers)?;
    if headers.first("transfer-encoding").is_none() {
        return Ok(length.map_or(Framing::Unsaid, Framing::Length));
    }
    if length.is_some() {
        return Err(HttpError::TwoLengths);
    }
    if minor_version == 0 {
        return Err(HttpError::TransferEncoding);
    }
    let coding = headers
        .only("transfer-encoding")
        .ok_or(HttpError::TransferEncoding)?;
    if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
        return Ok(Framing::Chunked);
    }
    if headers.lists("transfer-encoding", "chunked") {
        // neph has no decoder for `gzip, chunked`; `chunked, gzip` is an attack.
        return Err(HttpError::TransferEncoding);
    }
    Ok(Framing::OtherCoding)
}

/// One number; it may be repeated with the same value (section 6.3, rule 5, strictly applied).
fn content_length(headers: &Headers<'_>) -> Result<Option<u64>, HttpError> {
    let mut known_length = None;
    for value in headers.get_all("content-length") {
        let length = plain_number(value).ok_or(HttpError::ContentLength)?;
        if known_length.is_some_and(|before| before != length) {
            return Err(HttpError::ContentLength);
        }
        known_length = Some(length);
    }
    Ok(known_length)
}

/// Digits only (no sign, no list), below 2^63: an intermediary may use signed numbers.
fn plain_number(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = str::from_utf8(value).ok()?.parse().ok()?;
    (number >> 63 == 0).then_some(number)
}

fn keep_alive(headers: &Headers<'_>, minor_version: u8) -> bool {
    if headers.lists("connection", "close") {
        return false;
    }
    minor_version == 1 || headers.lists("connection", "keep-alive")
}
