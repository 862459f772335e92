//! HTTP/1.1, the answering half: any request is answered with as many bytes as it asks for.

use neph_model::Seq;
use neph_wire::echo::Request;
use neph_wire::http::{
    BodyLength, BodyReader, BodyStep, Connection, HttpError, QueryError, RequestHead, ResponseLine,
    flow_token, parse_request, reply_size,
};
use neph_wire::marks::HEADER;
use neph_wire::ws::{check_request, server_response};

use super::{Asked, Counted, End, Line, Marks, Step};
use crate::discover::{CLOCK_HEADER, REFLECTOR_HEADER, clock_identity};

/// What a request without `reply=` gets.
const DEFAULT_REPLY: u64 = 64;

#[derive(Debug)]
pub(super) struct Http {
    request: Option<Reading>,
    reply_size: usize,
    /// A head was whole: what comes of its body has a time limit of its own.
    open: bool,
}

/// A request whose body is being read.
#[derive(Debug)]
struct Reading {
    body: BodyReader,
    /// The first bytes of the body, where our own requests have their number.
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

    /// What the request asked for that was read last.
    pub(super) const fn reply_size(&self) -> usize {
        self.reply_size
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// How many bytes of a request's body are here; `None` between requests.
    pub(super) fn seen(&self) -> Option<u64> {
        self.request.as_ref().map(|request| request.body.seen())
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
                    if error == HttpError::HeadTooLong {
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
        if head.headers().first("upgrade").is_some() {
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
        asked: &Asked,
        marks: &Marks,
        line: &mut Line,
    ) -> Result<(), End> {
        let Some(request) = self.request.take() else {
            return Ok(());
        };
        let mut hex = Vec::with_capacity(neph_wire::marks::HEX_LEN);
        marks.encode_hex(&mut hex);
        let hex = String::from_utf8_lossy(&hex);
        let clock = clock_identity();
        let head = ResponseLine {
            status: 200,
            content_length: Some(asked.reply_size as u64),
            connection: request.connection,
        };
        let extra = [
            (HEADER, hex.as_ref()),
            (REFLECTOR_HEADER, "1"),
            (CLOCK_HEADER, clock.as_deref().unwrap_or("unknown")),
        ];
        head.encode(&extra, &mut line.plain)
            .expect("hexadecimal digits cannot break a head");
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
            // Chunk syntax: the reader has taken it, so it must not be given to it again.
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
        Ok(Step::Asked(Asked {
            taken,
            seq,
            reply_size,
        }))
    }
}

fn upgrade(head: &RequestHead<'_>, line: &mut Line) -> Result<Step, End> {
    let Ok(key) = check_request(head) else {
        refuse(400, line);
        return Err(End::Refused(Counted::RefusedMalformed));
    };
    server_response(key, &mut line.plain);
    Ok(Step::Upgraded(head.len()))
}

/// Answers with a status and nothing else; the connection ends behind it.
pub(super) fn refuse(status: u16, line: &mut Line) {
    ResponseLine {
        status,
        content_length: Some(0),
        connection: Connection::Close,
    }
    .encode(&[], &mut line.plain)
    .expect("there is no text in it");
}
