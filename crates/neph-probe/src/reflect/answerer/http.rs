//! HTTP/1.1, server side: any request is answered with as many bytes as it asks for.

use std::sync::Arc;

use neph_model::Seq;
use neph_wire::echo::Request;
use neph_wire::http::{
    BodyLength, BodyReader, BodyStep, Connection, HttpError, QueryError, RequestHead, ResponseLine,
    flow_token, parse_request, reply_size,
};
use neph_wire::marks::HEADER;
use neph_wire::ws::{HandshakeError, check_request, server_response};

use super::{Counted, End, Line, Marks, Step, StreamRequest};
use crate::discover::{CLOCK_HEADER, REFLECTOR_HEADER};
use crate::refused::REFUSED_HEADER;

/// Bytes of the reply to a request without `reply=`.
const DEFAULT_REPLY: u64 = 64;

#[derive(Debug)]
pub(super) struct Http {
    request: Option<Reading>,
    reply_size: usize,
    /// A head was complete: the time limit of the handshake no longer applies.
    open: bool,
}

/// A request whose body is being read.
#[derive(Debug)]
struct Reading {
    body: BodyReader,
    /// The first bytes of the body, where requests of neph have their number.
    start: Vec<u8>,
    connection: Connection,
    head_only: bool,
}

impl Http {
    pub(super) const fn new() -> Self {
        Self {
            request: None,
            reply_size: 0,
            open: false,
        }
    }

    /// The reply size of the last request.
    pub(super) const fn reply_size(&self) -> usize {
        self.reply_size
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Received bytes of a request's body; `None` between requests.
    pub(super) fn progress(&self) -> Option<u64> {
        self.request.as_ref().map(|request| request.body.received())
    }

    pub(super) fn step(&mut self, input: &[u8], line: &mut Line) -> Result<Step, End> {
        match &mut self.request {
            None => self.head(input, line),
            Some(request) => request.step(input, self.reply_size),
        }
    }

    fn head(&mut self, input: &[u8], line: &mut Line) -> Result<Step, End> {
        let head = match parse_request(input) {
            Ok(None) => return Ok(Step::More),
            Ok(Some(head)) => head,
            Err(error) => {
                refuse(
                    if matches!(error, HttpError::HeadTooLong(_)) {
                        431
                    } else {
                        400
                    },
                    line,
                );
                return Err(End::Refused(Counted::RefusedMalformed));
            }
        };
        let max = line.caps.reply_size.bytes();
        let size = match reply_size(head.target(), max) {
            Ok(size) => size.unwrap_or(DEFAULT_REPLY),
            Err(error) => {
                refuse(
                    if matches!(error, QueryError::TooLarge { .. }) {
                        413
                    } else {
                        400
                    },
                    line,
                );
                return Err(End::Refused(Counted::RefusedReplySize));
            }
        };
        self.open = true;
        self.reply_size = usize::try_from(size).unwrap_or(usize::MAX);
        line.flow = flow_token(head.target());
        // Other protocols may be declined by not mentioning them (RFC 9110, 7.8).
        if head.headers().lists("upgrade", "websocket") {
            return upgrade(&head, line);
        }
        self.begin(&head, line)
    }

    fn begin(&mut self, head: &RequestHead<'_>, line: &mut Line) -> Result<Step, End> {
        let Ok(body) = BodyReader::new(head.body(), line.caps.request_size.bytes()) else {
            refuse(413, line);
            return Err(End::Refused(Counted::RefusedRequestSize));
        };
        if head.body() != BodyLength::Empty && head.headers().lists("expect", "100-continue") {
            line.plain
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let connection = if head.keep_alive() {
            Connection::KeepAlive
        } else {
            Connection::Close
        };
        self.request = Some(Reading {
            body,
            start: Vec::with_capacity(neph_wire::echo::REQUEST_MIN),
            connection,
            head_only: head.method() == "HEAD",
        });
        Ok(Step::Took(head.len()))
    }

    pub(super) fn reply(
        &mut self,
        asked: &StreamRequest,
        marks: &Marks,
        line: &mut Line,
    ) -> Result<(), End> {
        let Some(request) = self.request.take() else {
            return Ok(());
        };
        let mut hex = Vec::with_capacity(neph_wire::marks::HEX_LEN);
        marks.encode_hex(&mut hex);
        let hex = String::from_utf8_lossy(&hex);
        let clock = Arc::clone(&line.clock);
        let head = ResponseLine {
            status: 200,
            content_length: Some(asked.reply_size as u64),
            connection: request.connection,
        };
        // For HEAD requests only, which no measurement sends.
        let refused = request.head_only.then(|| line.refused().to_string());
        let refused = refused
            .as_deref()
            .map(|reported| (REFUSED_HEADER, reported));
        let extra: Vec<_> = [
            (HEADER, hex.as_ref()),
            (REFLECTOR_HEADER, "1"),
            (CLOCK_HEADER, &clock),
        ]
        .into_iter()
        .chain(refused)
        .collect();
        head.encode(&extra, &mut line.plain)
            .expect("digits and blanks cannot break a head");
        if !request.head_only {
            line.plain.resize(line.plain.len() + asked.reply_size, b'.');
        }
        line.reply = Some(Seq(asked.seq));
        match request.connection {
            Connection::KeepAlive => Ok(()),
            Connection::Close => Err(End::Done),
        }
    }
}

impl Reading {
    fn step(&mut self, input: &[u8], reply_size: usize) -> Result<Step, End> {
        let taken = match self.body.step(input) {
            Ok(BodyStep::More) if input.is_empty() => return Ok(Step::More),
            // Chunk syntax: the reader has consumed it, so it must not get it a second time.
            Ok(BodyStep::More) => input.len(),
            Ok(BodyStep::Piece { consumed, payload }) => {
                let room = neph_wire::echo::REQUEST_MIN.saturating_sub(self.start.len());
                self.start
                    .extend_from_slice(&payload[..payload.len().min(room)]);
                consumed
            }
            Ok(BodyStep::Done { consumed }) => consumed,
            Err(_) => return Err(End::Refused(Counted::RefusedMalformed)),
        };
        if !self.body.is_done() {
            return Ok(Step::Took(taken));
        }
        let seq = Request::decode(&self.start).map_or(0, |request| request.seq);
        Ok(Step::Asked(StreamRequest {
            taken,
            seq,
            reply_size,
        }))
    }
}

fn upgrade(head: &RequestHead<'_>, line: &mut Line) -> Result<Step, End> {
    match check_request(head) {
        Ok(key) => {
            server_response(key, &mut line.plain);
            return Ok(Step::Upgraded(head.len()));
        }
        // The supported versions (RFC 6455, 4.2.2; RFC 9110, 15.5.22).
        Err(HandshakeError::Version) => refuse_with(
            426,
            &[
                ("Sec-WebSocket-Version", "13"),
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
            ],
            line,
        ),
        Err(_) => refuse(400, line),
    }
    Err(End::Refused(Counted::RefusedMalformed))
}

/// Answers with a status only. The connection ends after it.
pub(super) fn refuse(status: u16, line: &mut Line) {
    refuse_with(status, &[], line);
}

fn refuse_with(status: u16, extra: &[(&str, &str)], line: &mut Line) {
    ResponseLine {
        status,
        content_length: Some(0),
        connection: Connection::Close,
    }
    .encode(extra, &mut line.plain)
    .expect("nothing a peer typed is in it");
}

#[cfg(test)]
mod tests {
    use crate::fuzzing;

    fn reply_to(headers: &str) -> String {
        let request = format!("GET /?reply=3 HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        let answered = fuzzing::answer(&[request.as_bytes()]);
        String::from_utf8(answered.written).expect("text")
    }

    #[test]
    fn an_upgrade_to_something_else_is_served_as_plain_http() {
        // curl --http2
        let reported = reply_to(
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        );
        assert!(reported.starts_with("HTTP/1.1 200 OK\r\n"), "{reported}");
        assert!(reported.ends_with("\r\n\r\n..."), "{reported}");
    }

    #[test]
    fn unsupported_websocket_versions_get_426_with_the_supported_one() {
        let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let reported = reply_to(&format!("{handshake}Sec-WebSocket-Version: 8\r\n"));
        assert!(
            reported.starts_with("HTTP/1.1 426 Upgrade Required\r\n"),
            "{reported}"
        );
        assert!(
            reported.contains("\r\nSec-WebSocket-Version: 13\r\n"),
            "{reported}"
        );
        let reported = reply_to(&format!("{handshake}Sec-WebSocket-Version: 13\r\n"));
        assert!(reported.starts_with("HTTP/1.1 101 "), "{reported}");
        let reported =
            reply_to("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
        assert!(reported.starts_with("HTTP/1.1 400 "), "no key: {reported}");
    }
}
