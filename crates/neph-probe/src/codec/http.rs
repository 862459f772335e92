//! HTTP/1.1, client side: POST with a payload to a neph reflector, GET to a third-party server.
//!
//! A reply is complete when its body is. Its status decides whether it is the expected one. A status 408
//! without a waiting request, or on a connection that served before, is the server's end of an idle
//! connection (RFC 9110, 15.5.9).

use neph_model::{Answer, ExpectedStatus, Outcome};
use neph_wire::echo::{REQUEST_MIN, Request};
use neph_wire::http::{BodyReader, BodyStep, Connection, FlowToken, RequestLine, parse_response};
use neph_wire::marks::{HEADER, PeerMarks};

use super::{Arrival, Codec, ConnectionEnd, Opening, PartialReply, Replied, Step, path_asking};
use crate::channel::StreamEnd;
use crate::spec::{ConnectionUse, FlowSpec};

/// The longest reply body that is read.
const MAX_BODY: u64 = 1 << 30;
/// "408 Request Timeout".
const REQUEST_TIMEOUT: u16 = 408;

#[derive(Debug)]
pub(crate) struct Http {
    host: String,
    path: String,
    reflector: bool,
    size: usize,
    connection: Connection,
    body: Option<Body>,
    can_go_on: bool,
    authorization: Option<String>,
    /// Which statuses are expected.
    expected: ExpectedStatus,
    /// Requests that were written, and replies that were read.
    requested: u64,
    served: u64,
}

#[derive(Debug)]
struct Body {
    reader: BodyReader,
    marks: Option<PeerMarks>,
    status: u16,
}

impl Http {
    pub(crate) fn new(spec: &FlowSpec, flow: FlowToken) -> Self {
        Self {
            host: spec.target.host_header(),
            path: if spec.reflector {
                path_asking(spec, flow)
            } else {
                spec.target.path().to_owned()
            },
            reflector: spec.reflector,
            size: spec.request_size.max(REQUEST_MIN),
            connection: match spec.connection_use {
                ConnectionUse::Lasting => Connection::KeepAlive,
                ConnectionUse::PerMessage => Connection::Close,
            },
            body: None,
            can_go_on: true,
            authorization: spec.target.authorization(),
            expected: spec.expected_status,
            requested: 0,
            served: 0,
        }
    }

    const fn method(&self) -> &'static str {
        if self.reflector { "POST" } else { "GET" }
    }

    fn head(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(head) = parse_response(input).map_err(|error| error.to_string())? else {
            return Ok(Step::More);
        };
        let taken = head.len();
        if head.status() < 200 {
            return Ok(Step::Consumed(taken, Arrival::Nothing));
        }
        let status = head.status();
        let answer = Some(Answer::HttpStatus(status));
        if self.reflector && status != 200 {
            let reason = format!("the reflector answered with HTTP status {status}");
            return Ok(Step::Consumed(
                taken,
                Arrival::Refused(ConnectionEnd::new(reason, answer)),
            ));
        }
        if status == REQUEST_TIMEOUT && (self.served > 0 || self.requested == self.served) {
            let reason = "the server ended the idle connection (HTTP status 408)";
            return Ok(Step::Consumed(
                taken,
                Arrival::Closed(ConnectionEnd::new(reason, Some(Answer::Closed))),
            ));
        }
        if self.requested == self.served {
            let reason =
                format!("the server sent a response without a request (HTTP status {status})");
            return Ok(Step::Consumed(
                taken,
                Arrival::Closed(ConnectionEnd::new(reason, None)),
            ));
        }
        self.can_go_on = head.keep_alive(self.method());
        let reader = BodyReader::new(head.body(self.method()), MAX_BODY)
            .map_err(|error| error.to_string())?;
        let marks = head
            .headers()
            .only(HEADER)
            .and_then(|text| PeerMarks::decode_hex(text).ok());
        self.body = Some(Body {
            reader,
            marks,
            status,
        });
        Ok(Step::Consumed(taken, Arrival::Nothing))
    }

    /// A reply without a number: on one connection replies come in the order of the requests.
    fn take_reply(&mut self) -> Option<Replied> {
        let body = self.body.take()?;
        self.served += 1;
        Some(Replied {
            seq: None,
            marks: body.marks,
            answer: Some(Answer::HttpStatus(body.status)),
            outcome: if self.expected.contains(body.status) {
                Outcome::Reply
            } else {
                Outcome::Error
            },
        })
    }
}

impl Codec for Http {
    fn open(&mut self, _out: &mut Vec<u8>) -> Opening {
        Opening::Ready
    }

    fn request(&mut self, seq: u64, out: &mut Vec<u8>) {
        self.requested += 1;
        let line = RequestLine {
            method: self.method(),
            target: &self.path,
            host: &self.host,
            content_length: self.reflector.then_some(self.size as u64),
            connection: self.connection,
        };
        let mut headers = vec![("Accept", "*/*"), ("User-Agent", "neph")];
        headers.extend(
            self.authorization
                .as_deref()
                .map(|value| ("Authorization", value)),
        );
        line.encode(&headers, out)
            .expect("a parsed target has no characters that break a head");
        if self.reflector {
            Request { seq }.encode_into(self.size, out);
        }
    }

    fn step(&mut self, input: &mut [u8]) -> Result<Step, String> {
        let Some(body) = &mut self.body else {
            return self.head(input);
        };
        match body.reader.step(input).map_err(|error| error.to_string())? {
            BodyStep::More if input.is_empty() => Ok(Step::More),
            // Chunk syntax: the reader has consumed it, so it must not get it a second time.
            BodyStep::More => Ok(Step::Consumed(input.len(), Arrival::Nothing)),
            BodyStep::Piece { consumed, .. } if !body.reader.is_done() => {
                Ok(Step::Consumed(consumed, Arrival::Nothing))
            }
            BodyStep::Piece { consumed, .. } | BodyStep::Done { consumed } => Ok(Step::Consumed(
                consumed,
                self.take_reply().map_or(Arrival::Nothing, Arrival::Reply),
            )),
        }
    }

    fn end(&mut self, end: StreamEnd) -> PartialReply {
        let Some(body) = self.body.as_mut() else {
            return PartialReply::Nothing;
        };
        self.can_go_on = false;
        let is_whole = end == StreamEnd::Closed && body.reader.at_end_of_stream().is_ok();
        let reply = if is_whole { self.take_reply() } else { None };
        reply.map_or(PartialReply::Part, PartialReply::Whole)
    }

    fn can_go_on(&self) -> bool {
        self.can_go_on && self.connection == Connection::KeepAlive
    }
}
