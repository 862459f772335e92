//! A broker's bytes, as packets and as the asking side understands them: the same however they are cut,
//! and never more packets than came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::{Peer, ask};
use neph_wire::mqtt::{Connect, Packet, next_packet};

#[path = "../checks/pieces.rs"]
mod pieces;

fn packets(mut stream: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    while let Ok(Some((consumed, packet))) = next_packet(stream) {
        assert!((2..=stream.len()).contains(&consumed));
        stream = &stream[consumed..];
        packets.push(packet);
    }
    packets
}

fuzz_target!(|bytes: &[u8]| {
    let [size, bytes @ ..] = bytes else { return };
    assert!(packets(bytes).len() <= bytes.len() / 2);
    let ask_broker = |chunks: &[&[u8]]| ask("mqtt://h", Peer::ThirdParty, chunks);
    let uncut = ask_broker(&[bytes]).expect("it has a protocol");
    if *size != 0 {
        assert_eq!(ask_broker(&pieces::cut(*size, bytes)), Some(uncut));
    }
    let mut encoded = Vec::new();
    Connect {
        client_id: "neph",
        keep_alive: u16::from(*size),
        user: Some(bytes),
        password: Some(bytes),
    }
    .encode(&mut encoded);
    assert!(encoded.len() >= 2 * bytes.len().min(0xffff));
    assert!(next_packet(&encoded).is_err(), "a server sends no CONNECT");
});
