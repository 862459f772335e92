//! ICMP errors that quote a probe: labels within their cap, a flow of the quoted packet, and a probe
//! of ours is known again from the first eight bytes of its transport header.
#![no_main]

use std::net::{Ipv4Addr, SocketAddr};

use libfuzzer_sys::fuzz_target;
use neph_wire::checksum::internet_checksum;
use neph_wire::icmp::Family;
use neph_wire::probe::{Tag, parse_error, udp};

fuzz_target!(|bytes: &[u8]| {
    for family in [Family::V4, Family::V6] {
        if let Ok(Some(quote)) = parse_error(family, bytes) {
            assert!(quote.labels.len() <= 16);
            assert!(quote.labels.iter().all(|label| label.label < 1 << 20));
            assert!(quote.is_between(quote.flow.source, quote.flow.destination));
        }
        // Most inputs fail at the checksum: mend it.
        if let (Family::V4, [kind, code, _, _, rest @ ..]) = (family, bytes) {
            let mut with_checksum = [&[*kind, *code, 0, 0], rest].concat();
            let internet_sum = internet_checksum(&[&with_checksum]);
            with_checksum[2..4].copy_from_slice(&internet_sum.to_be_bytes());
            let _ = parse_error(family, &with_checksum);
        }
    }
    check_own_probe(bytes);
});

/// A probe with a payload out of the input, quoted by a router with extensions out of the input.
fn check_own_probe(bytes: &[u8]) {
    let Some(([a, b], rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let checksum = u16::from_be_bytes([*a, *b]).clamp(1, 0xfffe);
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 9, 9, 9));
    let addresses = (
        SocketAddr::from((source, 4711)),
        SocketAddr::from((destination, 33434)),
    );
    let mut payload = rest.to_vec();
    payload.truncate(1000);
    payload.resize(payload.len().max(2), 0);
    let probe = udp(addresses.0, addresses.1, &payload, 0, checksum).expect("one version, short");
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 1, 17, 0, 0];
    packet.extend([source.octets(), destination.octets()].concat());
    packet.extend_from_slice(&probe[..8]);
    packet.resize(128, 0);
    packet.extend_from_slice(rest);
    let mut message = vec![11, 0, 0, 0, 0, 32, 0, 0];
    message.extend_from_slice(&packet);
    let internet_sum = internet_checksum(&[&message]);
    message[2..4].copy_from_slice(&internet_sum.to_be_bytes());
    let quote = parse_error(Family::V4, &message)
        .expect("reads")
        .expect("a probe");
    assert_eq!(quote.tag, Tag::Udp { checksum });
    assert_eq!(
        (quote.flow.source_port, quote.flow.destination_port),
        (4711, 33434)
    );
}
