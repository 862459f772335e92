//! WebSocket, server side: messages of neph are answered, any other is echoed.

use neph_model::{ReflectorCaps, Seq};
use neph_wire::echo::{REPLY_MIN, Reply, Request};
use neph_wire::ws::{
    Assembler, Close, CloseCode, Event, Fin, Opcode, Role, Step as WsStep, WsError, encode_close,
    encode_frame, encode_header,
};

use super::{CloseReason, Counted, ReplyContext, ReplyTimestamps, Step, StreamRequest};

#[derive(Debug)]
pub(super) struct WebSocket {
    reply_size: usize,
    assembler: Assembler,
}

impl WebSocket {
    pub(super) fn new(reply_size: usize, caps: ReflectorCaps) -> Self {
        let max = usize::try_from(caps.request_size.bytes()).unwrap_or(usize::MAX);
        Self {
            reply_size: reply_size.max(REPLY_MIN),
            assembler: Assembler::new(Role::Server, max),
        }
    }

    /// Bytes of fragments whose message is incomplete.
    pub(super) const fn buffered_len(&self) -> usize {
        self.assembler.buffered()
    }

    /// Allocated memory of the fragments.
    pub(super) const fn capacity(&self) -> usize {
        self.assembler.capacity()
    }

    /// Frees the memory of a message that was read.
    pub(super) fn shrink(&mut self) {
        self.assembler.shrink();
    }

    /// Bytes that the next step copies: a fragment is stored until its message is complete.
    pub(super) fn copied_len(&self, input: &[u8]) -> usize {
        self.assembler.copied_len(input)
    }

    pub(super) fn step(
        &mut self,
        input: &mut [u8],
        context: &mut ReplyContext,
    ) -> Result<Step, CloseReason> {
        let step = match self.assembler.step(input) {
            Ok(step) => step,
            Err(error) => {
                let reason = error.to_string();
                let close = Close {
                    code: error.close_code(),
                    reason: &reason,
                };
                encode_close(&mut context.plain, None, close);
                return Err(CloseReason::Refused(match error {
                    WsError::TooLong { .. } => Counted::RefusedRequestSize,
                    WsError::Memory => Counted::RefusedMemory,
                    _ => Counted::RefusedMalformed,
                }));
            }
        };
        let WsStep::Frame { consumed, event } = step else {
            return Ok(Step::More);
        };
        match event {
            Event::Message(_, payload) => match Request::decode(payload) {
                Ok(request) => {
                    let reply_size = self.reply_size;
                    return Ok(Step::Request(StreamRequest {
                        taken: consumed,
                        seq: request.seq,
                        reply_size,
                    }));
                }
                Err(_) => echo(payload, context)?,
            },
            Event::Ping(payload) => {
                reserve_reply(payload, context)?;
                encode_frame(
                    &mut context.plain,
                    Opcode::Pong,
                    Fin::Last,
                    None,
                    &[payload],
                );
            }
            Event::Close(_) => {
                encode_frame(&mut context.plain, Opcode::Close, Fin::Last, None, &[]);
                return Err(CloseReason::Done);
            }
            // They need no reply, but count as messages.
            Event::Pong(_) | Event::Fragment => reserve_reply(&[], context)?,
        }
        Ok(Step::Consumed(consumed))
    }
}

pub(super) fn reply(
    request: &StreamRequest,
    timestamps: &ReplyTimestamps,
    context: &mut ReplyContext,
) {
    encode_header(
        &mut context.plain,
        Opcode::Binary,
        Fin::Last,
        None,
        request.reply_size,
    );
    Reply {
        seq: request.seq,
        marks: *timestamps,
    }
    .encode_into(request.reply_size, &mut context.plain);
    context.reply = Some(Seq(request.seq));
}

/// Another client than neph: its bytes are returned.
fn echo(payload: &[u8], context: &mut ReplyContext) -> Result<(), CloseReason> {
    context.messages += 1;
    if payload.len() as u64 > context.caps.reply_size.bytes() {
        close(
            CloseCode::TOO_BIG,
            "message larger than the largest reply",
            context,
        );
        return Err(CloseReason::Refused(Counted::RefusedReplySize));
    }
    reserve_reply(payload, context)?;
    encode_frame(
        &mut context.plain,
        Opcode::Binary,
        Fin::Last,
        None,
        &[payload],
    );
    Ok(())
}

fn reserve_reply(payload: &[u8], context: &mut ReplyContext) -> Result<(), CloseReason> {
    context.reserve_reply(payload.len()).map_err(|reason| {
        refuse(reason, context);
        CloseReason::Refused(reason)
    })
}

/// Reports to the peer that it sends too many requests, or requests too much at the moment.
pub(super) fn refuse(reason: Counted, context: &mut ReplyContext) {
    match reason {
        Counted::RefusedMemory => {
            close(
                CloseCode::TRY_AGAIN,
                "no memory for this message now",
                context,
            );
        }
        _ => close(CloseCode::POLICY, "message rate exceeded", context),
    }
}

fn close(code: CloseCode, reason: &str, context: &mut ReplyContext) {
    encode_close(&mut context.plain, None, Close { code, reason });
}
