//! The neph framing directly on TCP, client side: a hello, then length-prefixed messages.

use neph_wire::echo::{REPLY_MIN, REQUEST_MIN, Reply, Request};
use neph_wire::frame::{HELLO_LEN, Hello, HelloReply, Mode, Status, frame_prefix, next_frame};

use super::{Arrival, Codec, ConnectionEnd, Opening, Replied, Step};
use crate::spec::FlowSpec;

#[derive(Debug)]
pub(crate) struct Framed {
    request_size: usize,
    reply_size: u32,
    open: bool,
}

impl Framed {
    pub(crate) fn new(spec: &FlowSpec) -> Self {
        Self {
            request_size: spec.request_size.max(REQUEST_MIN),
            reply_size: u32::try_from(spec.response_size.max(REPLY_MIN)).unwrap_or(u32::MAX),
            open: false,
        }
    }

    fn greeted(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(bytes) = input.get(..HELLO_LEN) else {
            return Ok(Step::More);
        };
        let reply = HelloReply::decode(bytes).map_err(|error| error.to_string())?;
        let arrival = match reply.status {
            Status::Granted if self.request_size > reply.max_request as usize => {
                let reason = format!(
                    "requests of {} bytes exceed the reflector's cap of {}",
                    self.request_size, reply.max_request
                );
                Arrival::Refused(ConnectionEnd::new(reason, None))
            }
            Status::Granted => {
                self.open = true;
                Arrival::Opened
            }
            Status::Refused(refusal) => {
                Arrival::Refused(ConnectionEnd::new(refusal.to_string(), None))
            }
        };
        Ok(Step::Consumed(HELLO_LEN, arrival))
    }
}

impl Codec for Framed {
    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        Hello {
            mode: Mode::Echo,
            reply_size: self.reply_size,
            duration_ms: 0,
        }
        .encode(out);
        Opening::Wait
    }

    fn request(&mut self, seq: u64, out: &mut Vec<u8>) {
        let size = u32::try_from(self.request_size).expect("the reflector's cap is 32 bits wide");
        out.extend_from_slice(&frame_prefix(size));
        Request { seq }.encode_into(self.request_size, out);
    }

    fn step(&mut self, input: &mut [u8]) -> Result<Step, String> {
        if !self.open {
            return self.greeted(input);
        }
        match next_frame(input, self.reply_size).map_err(|error| error.to_string())? {
            None => Ok(Step::More),
            Some((consumed, payload)) => {
                let reply = Reply::decode(payload).map_err(|error| error.to_string())?;
                let arrival = Arrival::Reply(Replied::plain(Some(reply.seq), Some(reply.marks)));
                Ok(Step::Consumed(consumed, arrival))
            }
        }
    }
}
