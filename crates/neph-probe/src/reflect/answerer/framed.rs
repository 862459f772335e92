//! The neph framing, server side: a hello, then length-prefixed messages, or a bulk transfer.

use neph_model::{Instant, Local, Seq, Span};
use neph_wire::echo::{REPLY_MIN, Reply, Request};
use neph_wire::frame::{
    FrameError, HELLO_LEN, Hello, HelloReply, Mode, Refusal, Status, frame_prefix, next_frame,
};

use crate::reflect::bulk_turn::{BulkTurn, MAX_WAIT};

use super::{CloseReason, Counted, ReplyContext, ReplyTimestamps, Step, StreamRequest};

#[derive(Debug)]
pub(super) struct Framed(State);

#[derive(Debug)]
enum State {
    Greeting,
    Echo {
        reply_size: usize,
    },
    /// A bulk transfer of this length waits for its turn.
    Waiting(Span, BulkTurn, Instant<Local>),
    /// A bulk transfer, and its turn.
    Bulk(Span, BulkTurn),
}

impl Framed {
    pub(super) const fn new() -> Self {
        Self(State::Greeting)
    }

    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.0, State::Greeting)
    }

    /// The running bulk transfer, and its requested length.
    pub(super) const fn bulk(&self) -> Option<(Span, &BulkTurn)> {
        match &self.0 {
            State::Bulk(span, turn) => Some((*span, turn)),
            State::Greeting | State::Echo { .. } | State::Waiting(..) => None,
        }
    }

    /// Answers a waiting bulk transfer, once its turn has come or it has waited long enough. Returns whether
    /// it waits on.
    pub(super) fn wait(
        &mut self,
        now: Instant<Local>,
        context: &mut ReplyContext,
    ) -> Result<bool, CloseReason> {
        let State::Waiting(span, turn, until) = &self.0 else {
            return Ok(false);
        };
        if turn.has_come(now) {
            let span = *span;
            if let State::Waiting(_, turn, _) = std::mem::replace(&mut self.0, State::Greeting) {
                self.0 = State::Bulk(span, turn);
            }
            answer(Status::Granted, 0, context);
        } else if now >= *until {
            answer(Status::Refused(Refusal::Busy), 0, context);
            return Err(CloseReason::Refused(Counted::RefusedBusy));
        }
        Ok(matches!(self.0, State::Waiting(..)))
    }

    pub(super) fn step(
        &mut self,
        input: &[u8],
        context: &mut ReplyContext,
    ) -> Result<Step, CloseReason> {
        match self.0 {
            State::Greeting => self.greet(input, context),
            State::Echo { reply_size } => ask(input, reply_size, context),
            State::Bulk(..) | State::Waiting(..) if input.is_empty() => Ok(Step::More),
            State::Bulk(..) | State::Waiting(..) => Ok(Step::Consumed(input.len())),
        }
    }

    fn greet(&mut self, input: &[u8], context: &mut ReplyContext) -> Result<Step, CloseReason> {
        let Some(bytes) = input.get(..HELLO_LEN) else {
            return Ok(Step::More);
        };
        let (refusal, counted) = match Hello::decode(bytes) {
            Err(error) => (error.refusal(), Counted::RefusedMalformed),
            Ok(hello) => match self.decide(&hello, context) {
                Ok(Some(reply_size)) => {
                    answer(Status::Granted, reply_size, context);
                    return Ok(Step::Consumed(HELLO_LEN));
                }
                Ok(None) => {
                    return self
                        .wait(context.at, context)
                        .map(|_| Step::Consumed(HELLO_LEN));
                }
                Err(refused) => refused,
            },
        };
        answer(Status::Refused(refusal), 0, context);
        Err(CloseReason::Refused(counted))
    }

    /// The granted size of replies. `None` for a bulk transfer, which is answered when its turn comes.
    fn decide(
        &mut self,
        hello: &Hello,
        context: &ReplyContext,
    ) -> Result<Option<u32>, (Refusal, Counted)> {
        match hello.mode {
            Mode::Echo if u64::from(hello.reply_size) > context.caps.reply_size.bytes() => {
                Err((Refusal::ReplySize, Counted::RefusedReplySize))
            }
            Mode::Echo => {
                let reply_size = (hello.reply_size as usize).max(REPLY_MIN);
                self.0 = State::Echo { reply_size };
                Ok(Some(u32::try_from(reply_size).unwrap_or(hello.reply_size)))
            }
            Mode::Upload => {
                let span = Span::from_millis(i64::from(hello.duration_ms));
                if span > context.caps.bulk {
                    return Err((Refusal::Duration, Counted::RefusedBusy));
                }
                let turn = context.bulk.ask(context.peer, context.at);
                let turn = turn.map_err(|_| (Refusal::Busy, Counted::RefusedBusy))?;
                self.0 = State::Waiting(span, turn, context.at + MAX_WAIT);
                Ok(None)
            }
            Mode::Download => Err((Refusal::Mode, Counted::RefusedProtocol)),
        }
    }
}

pub(super) fn reply(
    request: &StreamRequest,
    timestamps: &ReplyTimestamps,
    context: &mut ReplyContext,
) {
    let size = u32::try_from(request.reply_size).expect("the hello's size is 32 bits wide");
    context.plain.extend_from_slice(&frame_prefix(size));
    Reply {
        seq: request.seq,
        marks: *timestamps,
    }
    .encode_into(request.reply_size, &mut context.plain);
    context.reply = Some(Seq(request.seq));
}

fn ask(input: &[u8], reply_size: usize, context: &ReplyContext) -> Result<Step, CloseReason> {
    let max = max_request(context);
    match next_frame(input, max) {
        Ok(None) => Ok(Step::More),
        Ok(Some((taken, payload))) => match Request::decode(payload) {
            Ok(request) => Ok(Step::Request(StreamRequest {
                taken,
                seq: request.seq,
                reply_size,
            })),
            Err(_) => Err(CloseReason::Refused(Counted::RefusedMalformed)),
        },
        Err(FrameError::TooLong { .. }) => Err(CloseReason::Refused(Counted::RefusedRequestSize)),
        Err(_) => Err(CloseReason::Refused(Counted::RefusedMalformed)),
    }
}

fn max_request(context: &ReplyContext) -> u32 {
    u32::try_from(context.caps.request_size.bytes()).unwrap_or(u32::MAX)
}

fn answer(status: Status, reply_size: u32, context: &mut ReplyContext) {
    let max_request = max_request(context);
    HelloReply {
        status,
        reply_size,
        max_request,
    }
    .encode(&mut context.plain);
}
