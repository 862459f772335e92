//! The client side with arbitrary bytes of a server, for fuzzing.
//!
//! Owns driving one codec as a connection does, and the invariants of each step.

use neph_model::Target;
use std::net::{Ipv4Addr, SocketAddr};

use neph_wire::http::parse_request;
use neph_wire::ws::{check_request, server_response};

use neph_wire::http::FlowToken;

use crate::channel::StreamEnd;
use crate::codec::{Arrival, Codec, PartialReply, Step};
use crate::kinds::stream_codec;
use crate::spec::FlowSpec;

/// A WebSocket pong: header, mask and 125 bytes.
const LONGEST_PONG: usize = 2 + 4 + 125;

/// The assumed kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A neph reflector.
    Reflector,
    /// A third-party server.
    ThirdParty,
}

/// Feeds `chunks` to a new connection to `target`, one read per chunk; a WebSocket is already open. Returns
/// the arrivals in order, without the chunks of a body. `None` for a target where only the connection attempt
/// is measured.
///
/// # Panics
/// When the codec takes more bytes than there are, continues without taking any, or answers more than it was
/// sent.
pub fn ask(target: &str, peer: Peer, chunks: &[&[u8]]) -> Option<Vec<String>> {
    let spec = spec(target, peer);
    let mut codec = stream_codec(&spec, FlowToken(0), 0)?;
    let mut out = Vec::new();
    codec.open(&mut out);
    // A request is always in flight, as in a running flow.
    codec.request(0, &mut Vec::new());
    let mut inbox = agreement(&out);
    let mut understood = Vec::new();
    let mut sent = 0;
    for chunk in [&[][..]].iter().chain(chunks) {
        inbox.extend_from_slice(chunk);
        sent += chunk.len();
        out.clear();
        let open = read(codec.as_mut(), &mut inbox, &mut understood);
        codec.pay(&mut out);
        // A pong is its ping and a mask of four bytes; there is one for any number of pings.
        assert!(
            out.len() <= LONGEST_PONG.min(3 * sent),
            "{} bytes for {sent}",
            out.len()
        );
        if !open {
            return Some(understood);
        }
    }
    let under = codec.end(StreamEnd::Closed);
    understood.extend((under != PartialReply::Nothing).then(|| format!("{under:?}")));
    Some(understood)
}

/// A server's consent to the upgrade in `request`; empty if there is none.
fn agreement(request: &[u8]) -> Vec<u8> {
    let mut consent = Vec::new();
    if let Ok(Some(head)) = parse_request(request)
        && let Ok(key) = check_request(&head)
    {
        server_response(key, &mut consent);
    }
    consent
}

/// Reads complete elements. Returns whether the connection continues.
fn read(codec: &mut dyn Codec, inbox: &mut Vec<u8>, understood: &mut Vec<String>) -> bool {
    let mut idle = 0;
    loop {
        let old_len = inbox.len();
        let (taken, arrival) = match codec.step(inbox) {
            Ok(Step::More) => return true,
            Ok(Step::Consumed(taken, arrival)) => (taken, arrival),
            Err(reason) => {
                understood.push(reason);
                return false;
            }
        };
        assert!(taken <= old_len, "{taken} of {old_len}");
        inbox.drain(..taken);
        idle = if taken == 0 { idle + 1 } else { 0 };
        assert!(idle < 3, "goes on without taking anything");
        match arrival {
            Arrival::Nothing if taken == 0 => return true,
            Arrival::Nothing => {}
            Arrival::Closed(_) | Arrival::Refused(_) => {
                understood.push(format!("{arrival:?}"));
                return false;
            }
            Arrival::Reply(_) => {
                codec.request(0, &mut Vec::new());
                understood.push(format!("{arrival:?}"));
            }
            Arrival::Opened => understood.push(format!("{arrival:?}")),
        }
    }
}

fn spec(target: &str, peer: Peer) -> FlowSpec {
    let target = Target::parse(target).expect("a target that the fuzz target wrote");
    FlowSpec {
        request_size: 64,
        response_size: 64,
        reflector: peer == Peer::Reflector,
        ..FlowSpec::plain(target, SocketAddr::from((Ipv4Addr::LOCALHOST, 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str =
        "Replied { seq: None, marks: None, answer: Some(HttpStatus(200)), outcome: Reply }";

    #[test]
    fn a_pong_is_a_reply_of_a_third_party_server() {
        let pong = b"\x8a\x0cNEq1\x00\x00\x00\x00\x00\x00\x00\x05";
        let understood = ask("ws://h/", Peer::ThirdParty, &[pong]).expect("a protocol");
        assert_eq!(understood[0], "Opened");
        let reply = "Reply(Replied { seq: Some(5), marks: None, answer: None, outcome: Reply })";
        assert_eq!(understood[1], reply);
        let bytes: Vec<&[u8]> = pong.chunks(1).collect();
        assert_eq!(ask("ws://h/", Peer::ThirdParty, &bytes), Some(understood));
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_stream() {
        let response = b"HTTP/1.0 200 OK\r\n\r\nuntil the end";
        let understood = ask("http://h/", Peer::ThirdParty, &[response]).expect("a protocol");
        assert_eq!(understood, [format!("Whole({OK})")]);
    }

    /// Found by fuzzing: chunk syntax that a read cut was read twice.
    #[test]
    fn a_chunked_reply_is_parsed_the_same_however_it_is_split() {
        let response: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\
            \r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n";
        for size in 1..=response.len() {
            let pieces: Vec<&[u8]> = response.chunks(size).collect();
            let understood = ask("http://h/", Peer::ThirdParty, &pieces).expect("a protocol");
            assert_eq!(understood, [format!("Reply({OK})")], "pieces of {size}");
        }
    }
}
