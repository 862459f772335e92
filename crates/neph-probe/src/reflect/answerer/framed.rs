//! Our own framing, the answering half: a hello, then length-prefixed messages, or a bulk sink.

use neph_model::{Seq, Span};
use neph_wire::echo::{REPLY_MIN, Reply, Request};
use neph_wire::frame::{
    FrameError, HELLO_LEN, Hello, HelloReply, Mode, Refusal, Status, frame_prefix, next_frame,
};

use crate::reflect::bulk_turn::BulkTurn;

use super::{Asked, Counted, End, Line, Marks, Step};

#[derive(Debug)]
pub(super) struct Framed(State);

#[derive(Debug)]
enum State {
    Greeting,
    Echo {
        reply_size: usize,
    },
    /// A bulk transfer, and the right to it.
    Bulk(
        Span,
        #[expect(dead_code, reason = "given back when dropped")] BulkTurn,
    ),
}

impl Framed {
    pub(super) const fn new() -> Self {
        Self(State::Greeting)
    }

    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.0, State::Greeting)
    }

    pub(super) const fn bulk(&self) -> Option<Span> {
        match self.0 {
            State::Bulk(span, _) => Some(span),
            State::Greeting | State::Echo { .. } => None,
        }
    }

    pub(super) fn step(&mut self, input: &[u8], line: &mut Line) -> Result<Step, End> {
        match self.0 {
            State::Greeting => self.greet(input, line),
            State::Echo { reply_size } => ask(input, reply_size, line),
            State::Bulk(..) if input.is_empty() => Ok(Step::More),
            State::Bulk(..) => Ok(Step::Took(input.len())),
        }
    }

    fn greet(&mut self, input: &[u8], line: &mut Line) -> Result<Step, End> {
        let Some(bytes) = input.get(..HELLO_LEN) else {
            return Ok(Step::More);
        };
        let (refusal, counted) = match Hello::decode(bytes) {
            Err(error) => (error.refusal(), Counted::RefusedMalformed),
            Ok(hello) => match self.decide(&hello, line) {
                Ok(reply_size) => {
                    answer(Status::Granted, reply_size, line);
                    return Ok(Step::Took(HELLO_LEN));
                }
                Err(refused) => refused,
            },
        };
        answer(Status::Refused(refusal), 0, line);
        Err(End::Refused(counted))
    }

    fn decide(&mut self, hello: &Hello, line: &Line) -> Result<u32, (Refusal, Counted)> {
        match hello.mode {
            Mode::Echo if u64::from(hello.reply_size) > line.caps.reply_size.bytes() => {
                Err((Refusal::ReplySize, Counted::RefusedReplySize))
            }
            Mode::Echo => {
                let reply_size = (hello.reply_size as usize).max(REPLY_MIN);
                self.0 = State::Echo { reply_size };
                Ok(u32::try_from(reply_size).unwrap_or(hello.reply_size))
            }
            Mode::Upload => {
                let span = Span::from_millis(i64::from(hello.duration_ms));
                if span > line.caps.bulk {
                    return Err((Refusal::Duration, Counted::RefusedBusy));
                }
                let turn = line.bulk.take();
                let turn = turn.ok_or((Refusal::Busy, Counted::RefusedBusy))?;
                self.0 = State::Bulk(span, turn);
                Ok(0)
            }
            Mode::Download => Err((Refusal::Mode, Counted::RefusedProtocol)),
        }
    }
}

pub(super) fn reply(asked: &Asked, marks: &Marks, line: &mut Line) {
    let size = u32::try_from(asked.reply_size).expect("the hello's size is 32 bits wide");
    line.plain.extend_from_slice(&frame_prefix(size));
    Reply {
        seq: asked.seq,
        marks: *marks,
    }
    .encode_into(asked.reply_size, &mut line.plain);
    line.reply = Some(Seq(asked.seq));
}

fn ask(input: &[u8], reply_size: usize, line: &Line) -> Result<Step, End> {
    let max = max_request(line);
    match next_frame(input, max) {
        Ok(None) => Ok(Step::More),
        Ok(Some((taken, payload))) => match Request::decode(payload) {
            Ok(request) => Ok(Step::Asked(Asked {
                taken,
                seq: request.seq,
                reply_size,
            })),
            Err(_) => Err(End::Refused(Counted::RefusedMalformed)),
        },
        Err(FrameError::TooLong { .. }) => Err(End::Refused(Counted::RefusedRequestSize)),
        Err(_) => Err(End::Refused(Counted::RefusedMalformed)),
    }
}

fn max_request(line: &Line) -> u32 {
    u32::try_from(line.caps.request_size.bytes()).unwrap_or(u32::MAX)
}

fn answer(status: Status, reply_size: u32, line: &mut Line) {
    let max_request = max_request(line);
    HelloReply {
        status,
        reply_size,
        max_request,
    }
    .encode(&mut line.plain);
}
