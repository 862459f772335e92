//! What a connection keeps of requests, and how long it waits for their ends.

use std::net::{IpAddr, Ipv4Addr};

use neph_model::{ByteSize, ProbeKind, Target, reply_size};
use neph_wire::echo::Request;
use neph_wire::frame::{Hello, Mode, frame_prefix};
use neph_wire::ws::parse_header;

use super::*;
use crate::FlowSpec;
use crate::codec::{self, Opening, Step as CodecStep};
use crate::reflect::budget::Budgets;

struct Seconds(i64);

impl Seconds {
    const fn at(&self) -> Instant<Local> {
        Instant::from_nanos(self.0 * 1_000_000_000)
    }
}

impl Times for Seconds {
    fn now(&mut self) -> Instant<Local> {
        self.at()
    }
    fn wall_offset(&mut self) -> i64 {
        0
    }
    fn think(&mut self, _span: Span) {}
}

fn answerer(caps: ReflectorCaps) -> Answerer {
    let budgets = Budgets::new(caps);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let budget = budgets.of(peer, Seconds(0).at()).expect("the first peer");
    let shares = Shares::separate(&caps, budget);
    Answerer::new(caps, Span::ZERO, None, shares)
}

fn greeted() -> Answerer {
    let mut answerer = answerer(ReflectorCaps::default());
    let mut hello = Vec::new();
    Hello {
        mode: Mode::Echo,
        reply_size: 64,
        duration_ms: 0,
    }
    .encode(&mut hello);
    give(&mut answerer, &hello, 0);
    answerer
}

fn give(answerer: &mut Answerer, bytes: &[u8], second: i64) {
    let mut times = Seconds(second);
    let arrived = Arrived {
        rx: None,
        app_rx: times.at(),
    };
    answerer
        .received(bytes, arrived, &mut times)
        .expect("nothing is wrong");
}

fn request(size: u32) -> Vec<u8> {
    let mut out = frame_prefix(size).to_vec();
    Request { seq: 1 }.encode_into(size as usize, &mut out);
    out
}

#[test]
fn a_large_message_releases_its_memory_while_the_next_arrives() {
    let mut answerer = greeted();
    let mut bytes = request(20 << 20);
    bytes.push(0);
    for piece in bytes.chunks(256 << 10) {
        give(&mut answerer, piece, 0);
    }
    assert_eq!((answerer.replies(), answerer.inbox.len()), (1, 1));
    assert!(answerer.inbox.capacity() <= MAX_SPARE_CAPACITY);
    assert!(answerer.capacity() <= MAX_SPARE_CAPACITY as u64);
}

#[test]
fn each_message_has_its_own_timeout_and_idle_time_is_not_counted() {
    let mut answerer = greeted();
    let small = request(100);
    for second in 0..100 {
        // The end of one and the beginning of the next.
        let at = 50.min(usize::try_from(second).expect("positive") * 100);
        give(&mut answerer, &small[at..], second);
        give(&mut answerer, &small[..50], second);
        assert!(!answerer.is_stalled(Seconds(second).at()), "{second}");
    }
    assert!(!answerer.is_stalled(Seconds(108).at()));
    assert!(answerer.is_stalled(Seconds(109).at()));
    give(&mut answerer, &small[50..], 109);
    assert!(!answerer.is_stalled(Seconds(1_000).at()));
}

/// Everything that waits to be written, as if it had been.
fn sent(answerer: &mut Answerer) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((next, _)) = answerer.outbox().next() {
        let count = next.len();
        bytes.extend_from_slice(next);
        answerer.outbox().wrote(count);
    }
    bytes
}

/// The bytes that a reflector sends for one request of a flow that asks for replies of so many bytes.
fn reply_sent(url: &str, requested: usize) -> Vec<u8> {
    let spec = FlowSpec {
        request_size: 64,
        response_size: requested,
        reflector: true,
        ..FlowSpec::plain(
            Target::parse(url).expect("a good target"),
            ([127, 0, 0, 1], 1).into(),
        )
    };
    let mut codec = crate::kinds::stream_codec(&spec, codec::new_token(), 0).expect("a stream");
    let mut answerer = answerer(ReflectorCaps::default());
    let mut out = Vec::new();
    if codec.open(&mut out) == Opening::Wait {
        give(&mut answerer, &out, 0);
        let step = codec.step(&mut sent(&mut answerer));
        assert!(matches!(step, Ok(CodecStep::Consumed(..))), "{step:?}");
        out.clear();
    }
    codec.request(1, &mut out);
    give(&mut answerer, &out, 0);
    assert_eq!(answerer.replies(), 1);
    sent(&mut answerer)
}

#[test]
fn a_reply_has_the_labelled_payload_size_after_the_protocol_header() {
    for requested in [1, 64, 67, 68, 69, 125, 126, 1_024] {
        let payload_of = |kind| reply_size(kind, ByteSize(requested as u64)).bytes();
        let tcp = reply_sent("tcp://127.0.0.1:1", requested);
        let payload = tcp.len() - frame_prefix(0).len();
        assert_eq!(
            payload as u64,
            payload_of(ProbeKind::Tcp),
            "tcp, {requested} B"
        );
        let ws = reply_sent("ws://127.0.0.1:1", requested);
        let header = parse_header(&ws).expect("a frame").expect("a whole header");
        let payload = ws.len() - header.header_len;
        assert_eq!(
            payload as u64,
            payload_of(ProbeKind::Ws),
            "ws, {requested} B"
        );
        let http = reply_sent("http://127.0.0.1:1", requested);
        let header_end = http.windows(4).position(|four| four == b"\r\n\r\n");
        let body = http.len() - header_end.expect("the end of the head") - 4;
        assert_eq!(
            body as u64,
            payload_of(ProbeKind::Http),
            "http, {requested} B"
        );
    }
}
