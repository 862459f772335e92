//! Bytes that a reflector must not put up with, each with the reason it must give.

use neph_probe::Counted;
use neph_wire::echo::Request;
use neph_wire::frame::{Hello, Mode, frame_prefix};

const UPGRADE: &str = "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

pub(super) fn hello(mode: Mode, reply_size: u32) -> Vec<u8> {
    hello_for(mode, reply_size, 60_000)
}

pub(super) fn hello_for(mode: Mode, reply_size: u32, duration_ms: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Hello {
        mode,
        reply_size,
        duration_ms,
    }
    .encode(&mut out);
    out
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = hello(Mode::Echo, 100);
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

pub(super) fn upgraded(frame: &[u8]) -> Vec<u8> {
    let mut out = format!("GET / HTTP/1.1\r\n{UPGRADE}").into_bytes();
    out.extend_from_slice(frame);
    out
}

fn http(head: &str) -> Vec<u8> {
    format!("{head}\r\nHost: h\r\n\r\n").into_bytes()
}

pub(super) type Refusal = (&'static str, Vec<u8>, Counted);

/// What is sent at once, and as what it must be counted.
pub(super) fn refusals() -> Vec<Refusal> {
    let upgrade = format!("GET /?reply=10000000000 HTTP/1.1\r\n{UPGRADE}");
    let mut cases = vec![
        (
            "http: 10 GB",
            http("GET /?reply=10000000000 HTTP/1.1"),
            Counted::RefusedReplySize,
        ),
        (
            "http: 23 bytes",
            b"GET /?reply=9999999999 ".to_vec(),
            Counted::RefusedHandshake,
        ),
        (
            "http: negative",
            http("GET /?reply=-1 HTTP/1.1"),
            Counted::RefusedReplySize,
        ),
        ("ws: 10 GB", upgrade.into_bytes(), Counted::RefusedReplySize),
        ("unknown bytes", vec![0, 1, 2, 3], Counted::RefusedProtocol),
        ("almost a hello", b"NEPX".to_vec(), Counted::RefusedProtocol),
        (
            "TLS to a plain one",
            vec![0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3],
            Counted::RefusedTls,
        ),
    ];
    cases.extend(framed_refusals());
    cases.extend(http_refusals());
    cases.extend(websocket_refusals());
    cases
}

fn framed_refusals() -> Vec<Refusal> {
    let mut too_often = framed(&[]);
    for seq in 0..3_000 {
        too_often.extend_from_slice(&frame_prefix(12));
        Request { seq }.encode_into(12, &mut too_often);
    }
    let wrong_version = [&b"NEPH"[..], &[9; 12]].concat();
    let no_message = framed(&[&frame_prefix(20), &[7; 20]]);
    vec![
        (
            "tcp: 4 GB",
            hello(Mode::Echo, u32::MAX),
            Counted::RefusedReplySize,
        ),
        (
            "tcp: a minute of bulk",
            hello(Mode::Upload, 0),
            Counted::RefusedBusy,
        ),
        (
            "tcp: wrong version",
            wrong_version,
            Counted::RefusedMalformed,
        ),
        (
            "tcp: 4 GB frame",
            framed(&[&[0xff; 4]]),
            Counted::RefusedRequestSize,
        ),
        ("tcp: no message", no_message, Counted::RefusedMalformed),
        ("tcp: too often", too_often, Counted::RefusedRate),
    ]
}

fn http_refusals() -> Vec<Refusal> {
    let ten_gigabytes = http("POST / HTTP/1.1\r\nContent-Length: 10000000000");
    let negative = http("POST / HTTP/1.1\r\nContent-Length: -1");
    let broken = http("GET / HTTP/1.1\r\nno colon");
    vec![
        (
            "http: 10 GB body",
            ten_gigabytes,
            Counted::RefusedRequestSize,
        ),
        ("http: negative body", negative, Counted::RefusedMalformed),
        ("http: broken head", broken, Counted::RefusedMalformed),
    ]
}

fn websocket_refusals() -> Vec<Refusal> {
    let length = 10_000_000_000_u64.to_be_bytes();
    let ten_gigabytes = [&[0x82, 0xff], &length[..], &[1; 4]].concat();
    let reserved = upgraded(&[0x83, 0x80, 0, 0, 0, 0]);
    vec![
        ("ws: reserved opcode", reserved, Counted::RefusedMalformed),
        (
            "ws: not masked",
            upgraded(&[0x82, 1, 7]),
            Counted::RefusedMalformed,
        ),
        (
            "ws: 10 GB frame",
            upgraded(&ten_gigabytes),
            Counted::RefusedRequestSize,
        ),
    ]
}
