//! WebSocket, server side: messages of neph are answered, any other is echoed.

use neph_model::{ReflectorCaps, Seq};
use neph_wire::echo::{REPLY_MIN, Reply, Request};
use neph_wire::ws::{
    Assembler, Close, CloseCode, Event, Fin, Opcode, Role, Step as WsStep, WsError, encode_close,
    encode_frame, encode_header,
};

use super::{Counted, End, Line, Marks, Step, StreamRequest};

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
    pub(super) fn tidy(&mut self) {
        self.assembler.tidy();
    }

    /// Memory that the next step takes: a complete fragment is kept.
    pub(super) fn copied(&self, input: &[u8]) -> usize {
        self.assembler.copied(input)
    }

    pub(super) fn step(&mut self, input: &mut [u8], line: &mut Line) -> Result<Step, End> {
        let step = match self.assembler.step(input) {
            Ok(step) => step,
            Err(error) => {
                let reason = error.to_string();
                let close = Close {
                    code: error.close_code(),
                    reason: &reason,
                };
                encode_close(&mut line.plain, None, close);
                return Err(End::Refused(match error {
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
                    return Ok(Step::Asked(StreamRequest {
                        taken: consumed,
                        seq: request.seq,
                        reply_size,
                    }));
                }
                Err(_) => echo(payload, line)?,
            },
            Event::Ping(payload) => {
                grant(payload, line)?;
                encode_frame(&mut line.plain, Opcode::Pong, Fin::Last, None, &[payload]);
            }
            Event::Close(_) => {
                encode_frame(&mut line.plain, Opcode::Close, Fin::Last, None, &[]);
                return Err(End::Done);
            }
            // They need no reply, but count as messages.
            Event::Pong(_) | Event::Fragment => grant(&[], line)?,
        }
        Ok(Step::Took(consumed))
    }
}

pub(super) fn reply(requested: &StreamRequest, marks: &Marks, line: &mut Line) {
    encode_header(
        &mut line.plain,
        Opcode::Binary,
        Fin::Last,
        None,
        requested.reply_size,
    );
    Reply {
        seq: requested.seq,
        marks: *marks,
    }
    .encode_into(requested.reply_size, &mut line.plain);
    line.reply = Some(Seq(requested.seq));
}

/// Another client than neph: its bytes are returned.
fn echo(payload: &[u8], line: &mut Line) -> Result<(), End> {
    line.body_length += 1;
    if payload.len() as u64 > line.caps.reply_size.bytes() {
        close(
            CloseCode::TOO_BIG,
            "message larger than the largest reply",
            line,
        );
        return Err(End::Refused(Counted::RefusedReplySize));
    }
    grant(payload, line)?;
    encode_frame(&mut line.plain, Opcode::Binary, Fin::Last, None, &[payload]);
    Ok(())
}

fn grant(payload: &[u8], line: &mut Line) -> Result<(), End> {
    line.grant(payload.len()).map_err(|counted| {
        refuse(counted, line);
        End::Refused(counted)
    })
}

/// Reports to the peer that it sends too many requests, or requests too much at the moment.
pub(super) fn refuse(counted: Counted, line: &mut Line) {
    match counted {
        Counted::RefusedMemory => {
            close(CloseCode::TRY_AGAIN, "no memory for this message now", line);
        }
        _ => close(CloseCode::POLICY, "message rate exceeded", line),
    }
}

fn close(code: CloseCode, reason: &str, line: &mut Line) {
    encode_close(&mut line.plain, None, Close { code, reason });
}
