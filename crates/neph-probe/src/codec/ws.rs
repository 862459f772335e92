//! WebSocket, client side: binary messages to a neph reflector, pings to a third-party server.
//!
//! Any server must answer a ping with a pong with the same bytes (RFC 6455, 5.5.2), so every WebSocket server
//! replies to a ping. Its payload is at most 125 bytes.
//!
//! Of a server's data, at most the requested reply and its latest ping are kept (RFC 6455, 5.5.3).

use std::hash::{BuildHasher, RandomState};

use neph_model::{Answer, LONGEST_WS_PING};
use neph_text::PrintableText;
use neph_wire::echo::{REPLY_MIN, Reply, Request};
use neph_wire::http::{self, FlowToken};
use neph_wire::ws::{
    Assembler, Close, CloseCode, Event, Fin, Opcode, Role, Step as WsStep, UpgradeRequest,
    check_response, client_key, encode_close, encode_frame, encode_header, mask_in_place,
};

use super::{Arrival, Codec, ConnectionEnd, Opening, Replied, Step, path_asking};
use crate::spec::FlowSpec;

/// The code of a close frame that has none (RFC 6455, 7.4.1).
const NO_CODE: u16 = 1005;

#[derive(Debug)]
pub(crate) struct Ws {
    host: String,
    path: String,
    key: String,
    open: bool,
    reflector: bool,
    size: usize,
    assembler: Assembler,
    masks: Masks,
    /// The payload of the latest ping that was not answered yet.
    ping: Option<Vec<u8>>,
}

impl Ws {
    pub(crate) fn new(spec: &FlowSpec, flow: FlowToken, number: u32) -> Self {
        let mut masks = Masks::seeded(number);
        let mut random = [0; 16];
        for chunk in random.chunks_mut(4) {
            chunk.copy_from_slice(&masks.next());
        }
        let path = if spec.reflector {
            path_asking(spec, flow)
        } else {
            spec.target.path().to_owned()
        };
        let size = if spec.reflector {
            spec.request_size
        } else {
            let max = usize::try_from(LONGEST_WS_PING.bytes()).expect("it is small");
            spec.request_size.min(max)
        };
        Self {
            host: spec.target.host_header(),
            path,
            key: client_key(random),
            open: false,
            reflector: spec.reflector,
            size,
            assembler: if spec.reflector {
                Assembler::new(Role::Client, spec.response_size.max(REPLY_MIN))
            } else {
                Assembler::control_frames(Role::Client)
            },
            masks,
            ping: None,
        }
    }

    fn upgraded(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(head) = http::parse_response(input).map_err(|error| error.to_string())? else {
            return Ok(Step::More);
        };
        if let Err(error) = check_response(&head, &self.key) {
            let answer = (head.status() != 101).then_some(Answer::HttpStatus(head.status()));
            let end = ConnectionEnd::new(error.to_string(), answer);
            return Ok(Step::Consumed(head.len(), Arrival::Refused(end)));
        }
        self.open = true;
        Ok(Step::Consumed(head.len(), Arrival::Opened))
    }
}

impl Codec for Ws {
    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        let upgrade = UpgradeRequest {
            host: &self.host,
            target: &self.path,
            key: &self.key,
        };
        upgrade
            .encode(out)
            .expect("a parsed target has no characters that break a head");
        Opening::Wait
    }

    fn request(&mut self, seq: u64, out: &mut Vec<u8>) {
        let mask = self.masks.next();
        let opcode = if self.reflector {
            Opcode::Binary
        } else {
            Opcode::Ping
        };
        let size = self.size.max(neph_wire::echo::REQUEST_MIN);
        encode_header(out, opcode, Fin::Last, Some(mask), size);
        let at = out.len();
        Request { seq }.encode_into(size, out);
        mask_in_place(&mut out[at..], mask);
    }

    fn step(&mut self, input: &mut [u8]) -> Result<Step, String> {
        if !self.open {
            return self.upgraded(input);
        }
        let step = self
            .assembler
            .step(input)
            .map_err(|error| error.to_string())?;
        let WsStep::Frame { consumed, event } = step else {
            return Ok(Step::More);
        };
        let arrival = match event {
            Event::Message(_, payload) if self.reflector => match Reply::decode(payload) {
                Ok(reply) => Arrival::Reply(Replied::plain(Some(reply.seq), Some(reply.marks))),
                Err(error) => return Err(error.to_string()),
            },
            Event::Pong(payload) if !self.reflector => match Request::decode(payload) {
                Ok(request) => Arrival::Reply(Replied::plain(Some(request.seq), None)),
                Err(_) => Arrival::Nothing,
            },
            Event::Ping(payload) => {
                self.ping = Some(payload.to_vec());
                Arrival::Nothing
            }
            Event::Close(close) => Arrival::Closed(to_connection_end(close)),
            Event::Message(..) | Event::Pong(_) | Event::Fragment => Arrival::Nothing,
        };
        Ok(Step::Consumed(consumed, arrival))
    }

    fn pay(&mut self, out: &mut Vec<u8>) {
        if let Some(payload) = self.ping.take() {
            let mask = Some(self.masks.next());
            encode_frame(out, Opcode::Pong, Fin::Last, mask, &[&payload]);
        }
    }

    /// A close frame, sent first or in answer (RFC 6455, 5.5.1).
    fn encode_close_message(&mut self, out: &mut Vec<u8>) {
        if self.open {
            self.open = false;
            let close = Close {
                code: CloseCode::NORMAL,
                reason: "",
            };
            encode_close(out, Some(self.masks.next()), close);
        }
    }
}

/// A close frame as the end of a connection; one without a code counts as 1005 (RFC 6455, 7.1.5).
fn to_connection_end(close: Option<Close<'_>>) -> ConnectionEnd {
    let Some(close) = close else {
        let reason_text = "the server closed the WebSocket without a code";
        return ConnectionEnd::new(reason_text, Some(Answer::WebSocketClose(NO_CODE)));
    };
    let code = close.code.get();
    let reason = PrintableText::text(close.reason);
    let reason_text = format!("the server closed the WebSocket with code {code} {reason}");
    ConnectionEnd::new(reason_text.trim_end(), Some(Answer::WebSocketClose(code)))
}

/// Masking keys. They protect proxies from chosen bytes on the wire (RFC 6455, 10.3), so they start from the
/// process's random hash keys and not from a clock.
#[derive(Debug)]
struct Masks(u64);

impl Masks {
    fn seeded(number: u32) -> Self {
        Self(RandomState::new().hash_one(number))
    }

    /// splitmix64
    fn next(&mut self) -> [u8; 4] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [a, b, c, d, ..] = (word ^ (word >> 31)).to_le_bytes();
        [a, b, c, d]
    }
}
