//! The request of a load as bytes, and the end of each response.
//!
//! Owns what is kept of a response: its status and whether its connection can be used again. A body is
//! counted and not stored, so that its size costs no memory. Opens no connection.

use neph_wire::http::{
    BodyError, BodyReader, BodyStep, Connection, HttpError, MAX_RESPONSE_HEAD, RequestLine,
    parse_response,
};

/// An HTTP/1.1 request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Method, in capitals.
    pub method: String,
    /// Path and query, beginning with a slash.
    pub target: String,
    /// Value of the Host header.
    pub host: String,
    /// Further headers: name and value.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
    /// Whether the connection is used again.
    pub keep_alive: bool,
}

impl HttpRequest {
    /// The bytes that are sent.
    ///
    /// # Errors
    /// A field has a character that a head cannot have.
    pub fn encode(&self) -> Result<Vec<u8>, HttpError> {
        let expects_body = matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        let has_length = expects_body || !self.body.is_empty();
        let line = RequestLine {
            method: &self.method,
            target: &self.target,
            host: &self.host,
            content_length: has_length.then_some(self.body.len() as u64),
            connection: if self.keep_alive {
                Connection::KeepAlive
            } else {
                Connection::Close
            },
        };
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut bytes = Vec::new();
        line.encode(&headers, &mut bytes)?;
        bytes.extend_from_slice(&self.body);
        Ok(bytes)
    }

    /// Whether a server must give the same result for two of it as for one (RFC 9110, 9.2.2).
    pub(super) fn is_idempotent(&self) -> bool {
        matches!(
            self.method.as_str(),
            "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"
        )
    }
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// The connection can be used for another request.
    pub(super) is_reusable: bool,
}

/// Bytes that are no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidResponse {
    #[error(transparent)]
    Head(#[from] HttpError),
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// Reads one response after the other.
#[derive(Debug, Default)]
pub(super) struct ResponseReader {
    /// The start of a head whose end has not arrived.
    head: Vec<u8>,
    body: Option<(Response, BodyReader)>,
    is_head_request: bool,
}

impl ResponseReader {
    /// For responses to this method.
    pub(super) fn new(method: &str) -> Self {
        Self {
            is_head_request: method == "HEAD",
            ..Self::default()
        }
    }

    /// Whether no byte of the response has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.body.is_none()
    }

    /// Forgets what has arrived.
    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.body = None;
    }

    /// The response, if these bytes complete it. Bytes behind it make its connection unusable.
    pub(super) fn feed(&mut self, mut input: &[u8]) -> Result<Option<Response>, InvalidResponse> {
        loop {
            if let Some((response, body)) = &mut self.body {
                let mut response = *response;
                while !body.is_done() && !input.is_empty() {
                    match body.step(input)? {
                        BodyStep::More => input = &[],
                        BodyStep::Piece { consumed, .. } | BodyStep::Done { consumed } => {
                            input = &input[consumed..];
                        }
                    }
                }
                if !body.is_done() {
                    return Ok(None);
                }
                response.is_reusable &= input.is_empty();
                self.clear();
                return Ok(Some(response));
            }
            match self.take_head(input)? {
                Some(rest) => input = rest,
                None => return Ok(None),
            }
        }
    }

    /// The response, if the end of the connection completes it.
    pub(super) fn end(&mut self) -> Option<Response> {
        let (response, body) = self.body.as_mut()?;
        let (response, result) = (*response, body.at_end_of_stream());
        self.clear();
        result.ok().map(|()| Response {
            is_reusable: false,
            ..response
        })
    }

    /// Reads a head; returns the bytes behind it, or `None` if its end is missing.
    fn take_head<'a>(&mut self, input: &'a [u8]) -> Result<Option<&'a [u8]>, InvalidResponse> {
        if self.head.is_empty() {
            let Some(length) = self.read_head(input)? else {
                self.head.extend_from_slice(input);
                return Ok(None);
            };
            return Ok(Some(&input[length..]));
        }
        // A head that arrives byte by byte is parsed once: when its empty line is there.
        let known = self.head.len();
        let room = (MAX_RESPONSE_HEAD + 1).saturating_sub(known);
        self.head.extend_from_slice(&input[..input.len().min(room)]);
        if !has_empty_line(&self.head[known.saturating_sub(3)..])
            && self.head.len() <= MAX_RESPONSE_HEAD
        {
            return Ok(None);
        }
        let head = std::mem::take(&mut self.head);
        let Some(length) = self.read_head(&head)? else {
            self.head = head;
            return Ok(None);
        };
        Ok(Some(&input[length.saturating_sub(known)..]))
    }

    /// Reads a complete head; returns its length. An interim response (1xx) is skipped by its caller's loop.
    fn read_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, InvalidResponse> {
        let method = if self.is_head_request { "HEAD" } else { "GET" };
        let Some(head) = parse_response(bytes)? else {
            return Ok(None);
        };
        let is_interim = (100..=199).contains(&head.status()) && head.status() != 101;
        if !is_interim {
            let response = Response {
                status: head.status(),
                is_reusable: head.keep_alive(method),
            };
            let body = BodyReader::new(head.body(method), u64::MAX)?;
            self.body = Some((response, body));
        }
        Ok(Some(head.len()))
    }
}

fn has_empty_line(bytes: &[u8]) -> bool {
    let mut windows = bytes.windows(3);
    bytes.windows(2).any(|pair| pair == b"\n\n") || windows.any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] =
        b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    const INTERIM: &[u8] =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

    #[expect(clippy::unnecessary_wraps, reason = "as the reader returns it")]
    fn response(status: u16, is_reusable: bool) -> Option<Response> {
        Some(Response {
            status,
            is_reusable,
        })
    }

    #[test]
    fn a_response_is_complete_at_its_last_byte_however_it_arrives() {
        for (bytes, expected) in [
            (PLAIN, response(200, true)),
            (CHUNKED, response(503, true)),
            (INTERIM, response(204, false)),
        ] {
            let mut reader = ResponseReader::default();
            for _ in 0..2 {
                assert_eq!(reader.feed(bytes), Ok(expected));
            }
            let (last, start) = bytes.split_last().expect("bytes");
            for byte in start {
                assert_eq!(reader.feed(std::slice::from_ref(byte)), Ok(None));
            }
            assert_eq!(reader.feed(&[*last]), Ok(expected));
            assert!(reader.is_empty());
            assert_eq!(reader.feed(&bytes[..9]), Ok(None));
            assert!(!reader.is_empty());
            reader.clear();
            for split in 1..bytes.len() {
                assert_eq!(reader.feed(&bytes[..split]), Ok(None));
                assert_eq!(reader.feed(&bytes[split..]), Ok(expected), "{split}");
            }
        }
    }

    #[test]
    fn a_body_without_length_ends_with_the_connection() {
        let mut reader = ResponseReader::default();
        assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\n\r\nabc"), Ok(None));
        assert_eq!(reader.end(), response(200, false));
        assert_eq!(reader.feed(&PLAIN[..40]), Ok(None));
        assert_eq!(reader.end(), None, "three bytes are missing");
    }

    #[test]
    fn bytes_behind_a_response_make_its_connection_unusable() {
        let mut reader = ResponseReader::default();
        let bytes = [PLAIN, b"x"].concat();
        assert_eq!(reader.feed(&bytes), Ok(response(200, false)));
    }

    #[test]
    fn a_head_without_end_is_refused_at_its_limit() {
        let mut reader = ResponseReader::default();
        let mut sent = 0;
        let line = b"X-Filler: 0123456789012345678901234567890123456789\r\n";
        assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\n"), Ok(None));
        let error = loop {
            sent += line.len();
            match reader.feed(line) {
                Ok(response) => assert_eq!(response, None),
                Err(error) => break error,
            }
        };
        assert!(sent <= MAX_RESPONSE_HEAD + line.len(), "{sent}");
        assert!(error.to_string().contains("header lines") || error.to_string().contains("longer"));
        assert!(
            ResponseReader::default()
                .feed(b"SSH-2.0-OpenSSH\r\n\r\n")
                .is_err()
        );
    }

    #[test]
    fn a_request_has_its_body_and_its_length() {
        let request = HttpRequest {
            method: "POST".to_owned(),
            target: "/a?b=1".to_owned(),
            host: "example.net".to_owned(),
            headers: vec![("X-Id".to_owned(), "7".to_owned())],
            body: b"hello".to_vec(),
            keep_alive: false,
        };
        let bytes = request.encode().expect("a request");
        assert_eq!(
            String::from_utf8(bytes).expect("text"),
            "POST /a?b=1 HTTP/1.1\r\nHost: example.net\r\nContent-Length: 5\r\nX-Id: 7\r\n\
             Connection: close\r\n\r\nhello"
        );
        let injected = HttpRequest {
            headers: vec![("A".to_owned(), "b\r\nC: d".to_owned())],
            ..request
        };
        assert!(injected.encode().is_err());
    }
}
