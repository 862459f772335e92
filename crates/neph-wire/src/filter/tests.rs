//! Compares the program, run as in the kernel, with a plain match of the dissected packet.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::build::{
    ADD, ADD_INDEX, AND, COPY_TO_INDEX, GIVE, GO, JUMP_IF_EQUAL, LOAD_BYTE, LOAD_CONSTANT,
    LOAD_HALF, LOAD_MEMORY, LOAD_WORD, SET_INDEX, SHIFT_LEFT, SHIFT_RIGHT, STORE,
};
use super::*;
use crate::dissect::{Dissected, Link, Transport, dissect};

const KEPT: u32 = 96;

/// The accepted bytes of a packet. Panics where the kernel would refuse the program.
fn run(program: &[Instruction], packet: &[u8]) -> u32 {
    assert!(program.len() <= 4096, "{} steps", program.len());
    let (mut at, mut a, mut x, mut memory) = (0, 0_u32, 0_u32, [0; 16]);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let load = |length: usize| {
            let from = x as usize + k as usize;
            let bytes = packet.get(from..from + length)?;
            Some(
                bytes
                    .iter()
                    .fold(0, |value, byte| value << 8 | u32::from(*byte)),
            )
        };
        let loaded = match code {
            LOAD_BYTE => load(1),
            LOAD_HALF => load(2),
            LOAD_WORD => load(4),
            LOAD_CONSTANT => Some(k),
            LOAD_MEMORY => Some(memory[k as usize]),
            ADD => Some(a + k),
            ADD_INDEX => Some(a + x),
            AND => Some(a & k),
            SHIFT_LEFT => Some(a << k),
            SHIFT_RIGHT => Some(a >> k),
            _ => Some(a),
        };
        match loaded {
            Some(loaded) => a = loaded,
            None => return 0,
        }
        match code {
            STORE => memory[k as usize] = a,
            SET_INDEX => x = k,
            COPY_TO_INDEX => x = a,
            JUMP_IF_EQUAL => at += usize::from(if a == k { jt } else { jf }),
            GO => at += k as usize,
            GIVE => return k,
            LOAD_WORD..=LOAD_MEMORY
            | LOAD_CONSTANT
            | ADD
            | ADD_INDEX
            | SHIFT_LEFT
            | SHIFT_RIGHT => {}
            other => panic!("no such instruction: {other:#x}"),
        }
    }
}

/// The plain match.
fn is_match(wanted: &Wanted, dissected: &Dissected<'_>) -> bool {
    let hosts = [dissected.ip.source, dissected.ip.destination];
    let ports = match &dissected.transport {
        Transport::Tcp { header, .. } => Some([header.source, header.destination]),
        Transport::Udp { header, .. } => Some([header.source, header.destination]),
        _ => None,
    };
    let protocol = match dissected.ip.protocol {
        6 => Some(Protocol::Tcp),
        17 => Some(Protocol::Udp),
        1 | 58 => Some(Protocol::Icmp),
        _ => None,
    };
    (wanted.hosts.is_empty() || hosts.iter().any(|host| wanted.hosts.contains(host)))
        && (wanted.ports.is_empty()
            || ports.is_some_and(|ports| ports.iter().any(|port| wanted.ports.contains(port))))
        && (wanted.protocols.is_empty()
            || protocol.is_some_and(|protocol| wanted.protocols.contains(&protocol)))
}

/// Few addresses, so that matches are frequent.
fn v4() -> impl Strategy<Value = Ipv4Addr> {
    (0_u32..3).prop_map(|last| Ipv4Addr::from_bits(0x0a00_0000 + last))
}

fn v6() -> impl Strategy<Value = Ipv6Addr> {
    (0_u128..2, 0_u128..2)
        .prop_map(|(net, last)| Ipv6Addr::from_bits(0xfd00 << 112 | net << 64 | last))
}

fn port() -> impl Strategy<Value = u16> {
    1_u16..5
}

/// A complete transport header of this protocol.
fn transport(protocol: u8, ports: (u16, u16)) -> Vec<u8> {
    let mut bytes = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    match protocol {
        6 => bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]),
        17 => bytes.extend([0, 12, 0, 0, 1, 2, 3, 4]),
        _ => bytes.extend([0; 8]),
    }
    bytes
}

fn protocol() -> impl Strategy<Value = u8> {
    // 41 and 47 are tunnels, which the filter does not look into.
    select(vec![1_u8, 6, 6, 6, 17, 17, 58, 132])
}

prop_compose! {
    fn packet_v4()(
        (from, to) in (v4(), v4()),
        protocol in protocol(),
        ports in (port(), port()),
        options in 0_u8..=10,
        fragment in select(vec![0_u16, 0, 0, 0x4000, 0x2000, 1, 0x2001, 0x1000, 0x1fff]),
    ) -> Vec<u8> {
        let carried = transport(protocol, ports);
        let text = 5 + options;
        let length = u16::try_from(usize::from(text) * 4 + carried.len()).expect("small");
        let mut packet = vec![0x40 | text, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 7]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        packet.extend(from.octets());
        packet.extend(to.octets());
        packet.resize(usize::from(text) * 4, 1);
        packet.extend(carried);
        packet
    }
}

prop_compose! {
    fn packet_v6()(
        (from, to) in (v6(), v6()),
        protocol in protocol(),
        ports in (port(), port()),
        extensions in vec((select(vec![0_u8, 43, 44, 51, 60]), 0_u8..4, 0_u16..3), 0..11),
    ) -> Vec<u8> {
        // From the last header to the first.
        let (mut next, mut body) = (protocol, transport(protocol, ports));
        for (kind, length, fragment) in extensions.into_iter().rev() {
            let mut header = vec![next, length];
            match kind {
                44 => {
                    header.extend((fragment / 2 * 8).to_be_bytes());
                    header.resize(8, 0);
                }
                51 => header.resize(8 + 4 * usize::from(length), 0),
                _ => header.resize(8 + 8 * usize::from(length), 0),
            }
            body = [header, body].concat();
            next = kind;
        }
        let length = u16::try_from(body.len()).expect("small");
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([next, 64]);
        packet.extend(from.octets());
        packet.extend(to.octets());
        packet.extend(body);
        packet
    }
}

prop_compose! {
    /// An Ethernet frame with up to three tags, or a bare packet.
    fn framed()(
        packet in prop_oneof![packet_v4(), packet_v6()],
        tags in vec(select(vec![0x8100_u16, 0x88a8, 0x9100]), 0..=3),
        is_bare in any::<bool>(),
    ) -> (Start, Vec<u8>) {
        if is_bare {
            return (Start::Ip, packet);
        }
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        let kind: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        (Start::Ethernet, frame)
    }
}

prop_compose! {
    fn wanted()(
        hosts_v4 in vec(v4(), 0..3),
        hosts_v6 in vec(v6(), 0..3),
        no_hosts in any::<bool>(),
        ports in option::of(vec(port(), 1..3)),
        protocols in option::of(vec(select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Icmp]), 1..3)),
    ) -> Wanted {
        let v4 = hosts_v4.into_iter().map(IpAddr::from);
        let hosts = v4.chain(hosts_v6.into_iter().map(IpAddr::from));
        Wanted {
            hosts: hosts.filter(|_| !no_hosts).collect(),
            ports: ports.unwrap_or_default(),
            protocols: protocols.unwrap_or_default(),
        }
    }
}

fn dissect_from(start: Start, bytes: &[u8]) -> Option<Dissected<'_>> {
    let link = match start {
        Start::Ethernet => Link::Ethernet,
        Start::Ip => Link::Ip,
    };
    dissect(link, bytes, u32::try_from(bytes.len()).expect("small"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_keeps_exactly_the_matching_packets(wanted in wanted(), (start, bytes) in framed()) {
        let program = wanted.program(start, KEPT);
        let is_expected = match dissect_from(start, &bytes) {
            Some(seen) => is_match(&wanted, &seen),
            // More extension headers than are read.
            None => wanted.matches_all_packets(),
        };
        prop_assert_eq!(run(&program, &bytes), if is_expected { KEPT } else { 0 });
    }

    #[test]
    fn the_filter_program_ends_for_arbitrary_bytes(wanted in wanted(), bytes in vec(any::<u8>(), 0..200), cut in 0_usize..120, (start, frame) in framed()) {
        let program = wanted.program(start, KEPT);
        for bytes in [&bytes[..], &frame[..cut.min(frame.len())]] {
            let snaplen = run(&program, bytes);
            prop_assert!(snaplen == 0 || snaplen == KEPT);
        }
    }
}

#[test]
fn an_empty_filter_keeps_every_packet() {
    let program = Wanted::default().program(Start::Ethernet, 64);
    assert_eq!((program.len(), run(&program, &[])), (1, 64));
}

#[test]
fn a_filter_matches_the_outer_packet_of_a_tunnel() {
    let inner = [
        &[
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, 0, 8,
        ][..],
        &transport(6, (1, 2)),
    ]
    .concat();
    let mut outer = vec![
        0x45, 0, 0, 60, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    outer.extend(inner);
    assert!(
        dissect_from(Start::Ip, &outer)
            .expect("a packet")
            .tunnel
            .is_some()
    );
    for (host, snaplen) in [([10, 0, 0, 1], KEPT), ([10, 0, 0, 9], 0)] {
        let wanted = Wanted {
            hosts: vec![host.into()],
            ..Wanted::default()
        };
        assert_eq!(run(&wanted.program(Start::Ip, KEPT), &outer), snaplen);
    }
}
