//! A broker's bytes, as packets and as the asking side understands them: the same however they are cut,
//! and never more packets than came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::{Peer, ask};
use neph_wire::mqtt::{Connect, Packet, next_packet};

#[path = "../checks/pieces.rs"]
mod pieces;

fn packets(mut stream: &[u8]) -> Vec<Packet> {
    let mut found = Vec::new();
    while let Ok(Some((taken, packet))) = next_packet(stream) {
        assert!((2..=stream.len()).contains(&taken));
        stream = &stream[taken..];
        found.push(packet);
    }
    found
}

fuzz_target!(|bytes: &[u8]| {
    let [size, bytes @ ..] = bytes else { return };
    assert!(packets(bytes).len() <= bytes.len() / 2);
    let understood = |chunks: &[&[u8]]| ask("mqtt://h", Peer::ThirdParty, chunks);
    let whole = understood(&[bytes]).expect("it has a protocol");
    if *size != 0 {
        assert_eq!(understood(&pieces::cut(*size, bytes)), Some(whole));
    }
    let mut out = Vec::new();
    Connect {
        client_id: "neph",
        keep_alive: u16::from(*size),
        user: Some(bytes),
        password: Some(bytes),
    }
    .encode(&mut out);
    assert!(out.len() >= 2 * bytes.len().min(0xffff));
    assert!(next_packet(&out).is_err(), "a server sends no CONNECT");
});
