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

use super::{CloseReason, Counted, ReplyContext, ReplyTimestamps, Step, StreamRequest};
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

    pub(super) fn step(
        &mut self,
        input: &[u8],
        context: &mut ReplyContext,
    ) -> Result<Step, CloseReason> {
        match &mut self.request {
            None => self.head(input, context),
            Some(request) => request.step(input, self.reply_size),
        }
    }

    fn head(&mut self, input: &[u8], context: &mut ReplyContext) -> Result<Step, CloseReason> {
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
                    context,
                );
                return Err(CloseReason::Refused(Counted::RefusedMalformed));
            }
        };
        let max = context.caps.reply_size.bytes();
        let size = match reply_size(head.target(), max) {
            Ok(size) => size.unwrap_or(DEFAULT_REPLY),
            Err(error) => {
                refuse(
                    if matches!(error, QueryError::TooLarge { .. }) {
                        413
                    } else {
                        400
                    },
                    context,
                );
                return Err(CloseReason::Refused(Counted::RefusedReplySize));
            }
        };
        self.open = true;
        self.reply_size = usize::try_from(size).unwrap_or(usize::MAX);
        context.flow = flow_token(head.target());
        // Other protocols may be declined by not mentioning them (RFC 9110, 7.8).
        if head.headers().lists("upgrade", "websocket") {
            return upgrade(&head, context);
        }
        self.begin(&head, context)
    }

    fn begin(
        &mut self,
        head: &RequestHead<'_>,
        context: &mut ReplyContext,
    ) -> Result<Step, CloseReason> {
        let Ok(body) = BodyReader::new(head.body(), context.caps.request_size.bytes()) else {
            refuse(413, context);
            return Err(CloseReason::Refused(Counted::RefusedRequestSize));
        };
        if head.body() != BodyLength::Empty && head.headers().lists("expect", "100-continue") {
            context
                .plain
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
        Ok(Step::Consumed(head.len()))
    }

    pub(super) fn reply(
        &mut self,
        stream_request: &StreamRequest,
        timestamps: &ReplyTimestamps,
        context: &mut ReplyContext,
    ) -> Result<(), CloseReason> {
        let Some(request) = self.request.take() else {
            return Ok(());
        };
        let mut hex = Vec::with_capacity(neph_wire::marks::HEX_LEN);
        timestamps.encode_hex(&mut hex);
        let hex = String::from_utf8_lossy(&hex);
        let clock = Arc::clone(&context.clock);
        let head = ResponseLine {
            status: 200,
            content_length: Some(stream_request.reply_size as u64),
            connection: request.connection,
        };
        // For HEAD requests only, which no measurement sends.
        let refused = request.head_only.then(|| context.refused().to_string());
        let refused = refused.as_deref().map(|text| (REFUSED_HEADER, text));
        let extra: Vec<_> = [
            (HEADER, hex.as_ref()),
            (REFLECTOR_HEADER, "1"),
            (CLOCK_HEADER, &clock),
        ]
        .into_iter()
        .chain(refused)
        .collect();
        head.encode(&extra, &mut context.plain)
            .expect("digits and blanks cannot break a head");
        if !request.head_only {
            context
                .plain
                .resize(context.plain.len() + stream_request.reply_size, b'.');
        }
        context.reply = Some(Seq(stream_request.seq));
        match request.connection {
            Connection::KeepAlive => Ok(()),
            Connection::Close => Err(CloseReason::Done),
        }
    }
}

impl Reading {
    fn step(&mut self, input: &[u8], reply_size: usize) -> Result<Step, CloseReason> {
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
            Err(_) => return Err(CloseReason::Refused(Counted::RefusedMalformed)),
        };
        if !self.body.is_done() {
            return Ok(Step::Consumed(taken));
        }
        let seq = Request::decode(&self.start).map_or(0, |request| request.seq);
        Ok(Step::Request(StreamRequest {
            taken,
            seq,
            reply_size,
        }))
    }
}

fn upgrade(head: &RequestHead<'_>, context: &mut ReplyContext) -> Result<Step, CloseReason> {
    match check_request(head) {
        Ok(key) => {
            server_response(key, &mut context.plain);
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
            context,
        ),
        Err(_) => refuse(400, context),
    }
    Err(CloseReason::Refused(Counted::RefusedMalformed))
}

/// Answers with a status only. The connection ends after it.
pub(super) fn refuse(status: u16, context: &mut ReplyContext) {
    refuse_with(status, &[], context);
}

fn refuse_with(status: u16, extra: &[(&str, &str)], context: &mut ReplyContext) {
    ResponseLine {
        status,
        content_length: Some(0),
        connection: Connection::Close,
    }
    .encode(extra, &mut context.plain)
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
        let reply = reply_to(
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        );
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.ends_with("\r\n\r\n..."), "{reply}");
    }

    #[test]
    fn unsupported_websocket_versions_get_426_with_the_supported_one() {
        let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let reply = reply_to(&format!("{handshake}Sec-WebSocket-Version: 8\r\n"));
        assert!(
            reply.starts_with("HTTP/1.1 426 Upgrade Required\r\n"),
            "{reply}"
        );
        assert!(
            reply.contains("\r\nSec-WebSocket-Version: 13\r\n"),
            "{reply}"
        );
        let reply = reply_to(&format!("{handshake}Sec-WebSocket-Version: 13\r\n"));
        assert!(reply.starts_with("HTTP/1.1 101 "), "{reply}");
        let reply =
            reply_to("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
        assert!(reply.starts_with("HTTP/1.1 400 "), "no key: {reply}");
    }
}
