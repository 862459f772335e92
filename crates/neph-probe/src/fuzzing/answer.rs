//! A reflector's connection without a socket, for fuzzing.
//!
//! Owns a clock that does not advance, small caps, driving one connection like the socket loop, and the
//! invariants of each step.

use std::net::{IpAddr, Ipv4Addr};

use neph_model::{BitRate, ByteSize, Instant, Local, ReflectorCaps, Span};

use crate::reflect::answerer::{Answerer, CloseReason, Shares, Times};
use crate::reflect::budget::Budgets;
use crate::reflect::reply_timestamps::Arrived;

const REPLY: usize = 256 << 10;
const REQUEST: usize = 16 << 10;
const MESSAGES: u32 = 64;
const BYTES: usize = 2 << 20;
/// Unwritten bytes above which a connection does not read further requests.
const UNREAD: usize = 64 << 10;
/// Most bytes of a head with everything around one reply.
const AROUND: usize = 512;

/// The output of a connection, and why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Every byte that was written.
    pub written: Vec<u8>,
    /// Messages that were answered.
    pub replies: u64,
    /// Why the reflector ended it; `None` while it would read on.
    pub end: Option<String>,
}

/// Feeds `chunks` to a new connection without TLS, one read per chunk. The clock does not advance, so the
/// peer gets at most one second of the caps.
///
/// # Panics
/// When the reflector would write or keep more than its caps allow.
pub fn answer(chunks: &[&[u8]]) -> Answered {
    let caps = caps();
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let budgets = Budgets::new(caps);
    let budget = budgets.of(peer, NoProgress::AT).expect("the first peer");
    let mut answerer = Answerer::new(caps, Span::ZERO, None, Shares::separate(&caps, budget));
    let mut written = Vec::new();
    let mut end = None;
    for chunk in chunks {
        end = read(&mut answerer, chunk, &mut written).err();
        if end.is_some() || answerer.bulk().is_some() {
            break;
        }
    }
    let replies = answerer.replies();
    assert!(replies <= u64::from(MESSAGES), "{replies} replies");
    let max = BYTES + REPLY + (MESSAGES as usize + 2) * AROUND;
    assert!(written.len() <= max, "{} bytes", written.len());
    Answered {
        written,
        replies,
        end: end.map(|end| format!("{end:?}")),
    }
}

const fn caps() -> ReflectorCaps {
    ReflectorCaps {
        reply_size: ByteSize(REPLY as u64),
        request_size: ByteSize(REQUEST as u64),
        memory: ByteSize(0),
        messages_per_second: MESSAGES,
        reply_rate: BitRate(BYTES as u64 * 8),
        connections: 1,
        connections_per_peer: 1,
        idle: Span::from_secs(1),
        handshake: Span::from_secs(1),
        bulk: Span::from_secs(1),
    }
}

/// One read of the socket loop, with a peer that reads all output.
fn read(answerer: &mut Answerer, chunk: &[u8], written: &mut Vec<u8>) -> Result<(), CloseReason> {
    let arrived = Arrived {
        rx: None,
        app_rx: NoProgress::AT,
    };
    let mut outcome = answerer.received(chunk, arrived, &mut NoProgress);
    drain(answerer, written);
    let mut rounds = 0;
    while answerer.is_backlogged() && outcome.is_ok() {
        rounds += 1;
        assert!(rounds <= MESSAGES, "a backlog that does not shrink");
        outcome = answerer.resume(arrived, &mut NoProgress);
        drain(answerer, written);
    }
    outcome
}

fn drain(answerer: &mut Answerer, written: &mut Vec<u8>) {
    let outbox = answerer.outbox();
    assert!(
        outbox.len() <= UNREAD + REPLY.max(REQUEST) + 2 * AROUND,
        "{} bytes wait to be written",
        outbox.len()
    );
    while let Some((bytes, _)) = outbox.next() {
        let count = bytes.len();
        written.extend_from_slice(bytes);
        outbox.wrote(count);
    }
    assert_eq!(outbox.len(), 0, "held back for ever");
    answerer.release_spare_capacity();
}

/// A clock that does not advance.
struct NoProgress;

impl NoProgress {
    const AT: Instant<Local> = Instant::from_nanos(1_000_000_000);
}

impl Times for NoProgress {
    fn now(&mut self) -> Instant<Local> {
        Self::AT
    }
    fn wall_offset(&mut self) -> i64 {
        0
    }
    fn think(&mut self, _span: Span) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &[u8] = b"NEPH\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00";
    const REQUEST_FRAME: &[u8] = b"\x00\x00\x00\x0cNEq1\x00\x00\x00\x00\x00\x00\x00\x05";

    #[test]
    fn a_request_is_answered_the_same_however_it_is_split() {
        let request_bytes = [HELLO, REQUEST_FRAME, REQUEST_FRAME].concat();
        let at_once = answer(&[&request_bytes]);
        assert_eq!((at_once.replies, at_once.end.clone()), (2, None));
        assert_eq!(at_once.written.len(), 16 + 2 * (4 + 256));
        let bytes: Vec<&[u8]> = request_bytes.chunks(1).collect();
        assert_eq!(answer(&bytes), at_once);
    }

    #[test]
    fn a_peer_gets_one_second_of_its_rate_and_is_then_refused() {
        let frames = REQUEST_FRAME.repeat(100);
        let answered = answer(&[HELLO, &frames]);
        assert_eq!(answered.replies, u64::from(MESSAGES));
        assert_eq!(answered.end.as_deref(), Some("Refused(RefusedRate)"));
    }

    /// Found by fuzzing: chunk syntax that a read cut was read twice.
    #[test]
    fn a_chunked_request_is_answered_the_same_however_it_is_split() {
        let request: &[u8] = b"POST /?reply=9 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\
            \r\n\r\n3;x\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n";
        let at_once = answer(&[request]);
        assert_eq!((at_once.replies, at_once.end.clone()), (1, None));
        for size in 1..request.len() {
            let pieces: Vec<&[u8]> = request.chunks(size).collect();
            assert_eq!(answer(&pieces), at_once, "pieces of {size}");
        }
    }
}
