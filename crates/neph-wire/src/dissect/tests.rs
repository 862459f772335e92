//! Nested packets, cut at any byte.

mod layers;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len())
        .expect("small")
        .to_be_bytes();
    let mut packet = vec![
        0x45, 0, length[0], length[1], 0x12, 0x34, 0, 0, 64, protocol, 0, 0,
    ];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend_from_slice(payload);
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len())
        .expect("small")
        .to_be_bytes();
    let mut bytes = vec![0x12, 0x34];
    bytes.extend(port.to_be_bytes());
    bytes.extend([length[0], length[1], 0, 0]);
    bytes.extend_from_slice(payload);
    bytes
}

fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![
        0, 80, 4, 0, 0, 0, 0, 5, 0, 0, 0, 9, 0x80, 0x18, 2, 0, 0, 0, 0, 0,
    ];
    bytes.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 3]);
    bytes.extend_from_slice(payload);
    bytes
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), payload].concat()
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("small")
}

fn payload_of(link: Link, bytes: &[u8]) -> Option<(u32, Option<Tunnel>)> {
    let observed = dissect(link, bytes, length(bytes))?;
    match observed.transport {
        Transport::Tcp {
            header,
            payload_len,
        } => {
            assert_eq!((header.seq, header.ack), (5, 9));
            Some((payload_len, observed.tunnel))
        }
        _ => None,
    }
}

#[test]
fn the_same_segment_is_found_behind_every_link_and_tunnel() {
    let packet = v4(6, &tcp(b"data"));
    let frame = ethernet(0x0800, &packet);
    let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &frame].concat();
    let geneve = [&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 4][..], &frame].concat();
    let gre = [&[0x20, 0, 0x08, 0, 0, 0, 0, 9][..], &packet].concat();
    let labelled = ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], &packet].concat());
    let cases = [
        (Link::Ip, packet.clone(), None),
        (Link::Ethernet, frame.clone(), None),
        (
            Link::Ethernet,
            ethernet(0x8100, &[&[0, 5, 8, 0][..], &packet].concat()),
            None,
        ),
        (Link::Ethernet, labelled, None),
        (
            Link::Cooked,
            [&[0; 14][..], &[8, 0], &packet].concat(),
            None,
        ),
        (
            Link::Cooked2,
            [&[8, 0][..], &[0; 18], &packet].concat(),
            None,
        ),
        (Link::Loopback, [&[2, 0, 0, 0][..], &packet].concat(), None),
        (Link::Ppp, [&[0xff, 3, 0, 0x21][..], &packet].concat(), None),
        (Link::NetfilterLog, netfilter(&packet), None),
        (
            Link::Ip,
            v4(17, &udp(4789, &vxlan)),
            Some(Tunnel::Vxlan(42)),
        ),
        (
            Link::Ip,
            v4(17, &udp(6081, &geneve)),
            Some(Tunnel::Geneve(7)),
        ),
        (Link::Ip, v4(47, &gre), Some(Tunnel::Gre(Some(9)))),
        (Link::Ip, v4(4, &packet), Some(Tunnel::Ip)),
        (
            Link::Ip,
            v4(4, &v4(17, &udp(4789, &vxlan))),
            Some(Tunnel::Vxlan(42)),
        ),
    ];
    for (link, bytes, tunnel) in cases {
        assert_eq!(
            payload_of(link, &bytes),
            Some((4, tunnel)),
            "{link:?} {tunnel:?}"
        );
    }
}

fn netfilter(packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + packet.len())
        .expect("small")
        .to_le_bytes();
    [
        &[2, 0, 0, 0, 5, 0, 3, 0, 1, 0, 0, 0][..],
        &length,
        &[9, 0],
        packet,
    ]
    .concat()
}

#[test]
fn a_truncated_payload_keeps_its_length() {
    let bytes = ethernet(0x0800, &v4(6, &tcp(&[7; 1000])));
    for captured_length in 14 + 20 + 20..bytes.len() {
        let observed =
            dissect(Link::Ethernet, &bytes[..captured_length], length(&bytes)).expect("IP");
        let Transport::Tcp { payload_len, .. } = observed.transport else {
            panic!("no segment with {captured_length} bytes kept");
        };
        assert_eq!(payload_len, 1000, "with {captured_length} bytes kept");
    }
}

#[test]
fn an_offloaded_packet_without_a_length_has_the_length_of_its_record() {
    let mut packet = v4(6, &tcp(&[7; 100]));
    packet[2..4].fill(0);
    let observed = dissect(Link::Ip, &packet, 100_052).expect("IP");
    assert!(matches!(
        observed.transport,
        Transport::Tcp {
            payload_len: 100_000,
            ..
        }
    ));
}

#[test]
fn an_offloaded_datagram_has_its_length_however_truncated() {
    let mut datagram = udp(9, &[7; 50]);
    datagram[4..6].fill(0);
    let mut packet = v4(17, &datagram);
    packet[2..4].fill(0);
    for captured_length in [28, 40, packet.len()] {
        let observed = dissect(Link::Ip, &packet[..captured_length], 100_000).expect("a packet");
        let Transport::Udp { payload_len, .. } = observed.transport else {
            panic!("{:?}", observed.transport);
        };
        assert_eq!(payload_len, 100_000 - 28, "{captured_length}");
    }
}

#[test]
fn ethernet_padding_is_no_payload() {
    let frame = [ethernet(0x0800, &v4(6, &tcp(b""))), vec![0; 6]].concat();
    assert_eq!(payload_of(Link::Ethernet, &frame), Some((0, None)));
}

#[test]
fn a_tunnel_without_ip_inside_is_a_datagram() {
    let arp = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(0x0806, &[0; 28])].concat();
    let packet = v4(17, &udp(4789, &arp));
    let observed = dissect(Link::Ip, &packet, length(&packet)).expect("IP");
    assert!(matches!(
        observed.transport,
        Transport::Udp {
            payload_len: 50,
            ..
        }
    ));
}

proptest! {
    #[test]
    fn arbitrary_bytes_behind_any_link_do_not_panic(
        number in 0_u32..300,
        bytes in vec(any::<u8>(), 0..200),
        length in any::<u32>(),
    ) {
        let _ = dissect(Link::numbered(number), &bytes, length);
        let _ = dissect(Link::Ip, &v4(17, &udp(4789, &bytes)), length);
        let _ = dissect(Link::Ip, &v4(47, &bytes), length);
    }
}

#[test]
fn a_cooked_v2_packet_contains_its_interface() {
    let header = [&[8, 0, 0, 0, 0, 0, 0, 7][..], &[0; 12]].concat();
    assert_eq!(Link::Cooked2.interface(&header), Some(7));
    assert_eq!(Link::Cooked2.interface(&header[..6]), None);
    assert_eq!(Link::Ethernet.interface(&header), None);
}

/// An IPv6 packet.
fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b] = u16::try_from(payload.len()).expect("small").to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, a, b, protocol, 64];
    packet.extend([0xfd; 32]);
    packet.extend_from_slice(payload);
    packet
}

#[test]
fn a_packet_cut_in_a_header_is_not_mistaken_for_another() {
    let frame = ethernet(0x86dd, &v6(6, &tcp(b"data")));
    let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &frame].concat();
    let geneve = [&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 4][..], &frame].concat();
    let gre = [&[0x20, 0, 0x86, 0xdd, 0, 0, 0, 9][..], &frame[14..]].concat();
    let mut offloaded = v4(6, &tcp(b"data"));
    offloaded[0] = 0x46;
    offloaded[2..4].fill(0);
    offloaded.splice(20..20, [1; 4]);
    // The offset of the end of the innermost IP header.
    let cases = [
        (Link::Ethernet, frame.clone(), 54),
        (
            Link::Ethernet,
            ethernet(0x0800, &v4(17, &udp(4789, &vxlan))),
            104,
        ),
        (
            Link::Ethernet,
            ethernet(0x86dd, &v6(17, &udp(4789, &vxlan))),
            124,
        ),
        (
            Link::Ethernet,
            ethernet(0x86dd, &v6(17, &udp(6081, &geneve))),
            128,
        ),
        (Link::Ip, v6(47, &gre), 88),
        (Link::Ip, v4(41, &frame[14..]), 60),
        (Link::Ip, offloaded, 24),
    ];
    for (link, bytes, headers) in cases {
        for captured_length in 0..bytes.len() {
            let part = &bytes[..captured_length];
            let observed = dissect(link, part, length(&bytes));
            let is_reported = observed
                .is_some_and(|observed| matches!(observed.transport, Transport::Tcp { .. }));
            let is_cut_off = match observed {
                Some(observed) => observed.is_cut(),
                None => why_not(link, part, length(&bytes)) == NoPacket::Cut,
            };
            let is_enough = captured_length >= headers + 20;
            assert_eq!(
                (is_reported, is_cut_off),
                (is_enough, !is_enough),
                "{captured_length} of {headers}"
            );
            // The packet was not longer on the wire.
            assert_eq!(
                why_not(link, part, length(part)),
                NoPacket::NotIp,
                "{captured_length}"
            );
        }
    }
    let arp = ethernet(0x0806, &[0; 28]);
    assert_eq!(
        why_not(Link::Ethernet, &arp[..20], length(&arp)),
        NoPacket::NotIp
    );
}

#[test]
fn a_truncated_tcp_or_udp_header_is_no_other_protocol() {
    let is_cut = |packet: &[u8], captured_length: usize| {
        let observed = dissect(Link::Ip, &packet[..captured_length], length(packet)).expect("IP");
        observed.is_cut()
    };
    let (segment, datagram) = (v4(6, &tcp(b"data")), v4(17, &udp(9, b"data")));
    assert_eq!(
        [39, 40].map(|captured_length| is_cut(&segment, captured_length)),
        [true, false]
    );
    assert_eq!(
        [27, 28].map(|captured_length| is_cut(&datagram, captured_length)),
        [true, false]
    );
    assert!(!is_cut(&v4(89, &[0; 40]), 30), "OSPF");
}

#[test]
fn a_netfilter_log_packet_has_its_captured_bytes() {
    let bytes = netfilter(&v4(6, &tcp(&[7; 100])));
    let observed = dissect(Link::NetfilterLog, &bytes[..80], length(&bytes)).expect("IP");
    assert!(matches!(
        observed.transport,
        Transport::Tcp {
            payload_len: 100,
            ..
        }
    ));
}

proptest! {
    #[test]
    fn a_prefix_of_an_ip_packet_is_truncated_or_dissected(
        nest in vec((0_u8..7, any::<u8>()), 0..4),
        changed in vec((0_usize..200, any::<u8>()), 0..3),
        link in 0_u32..300,
    ) {
        let mut packet = v4(6, &tcp(b"data"));
        for (kind, bits) in nest {
            let ethertype = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
            let frame = ethernet(ethertype, &packet);
            packet = match kind {
                0 => v4(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, bits, 0][..], &frame].concat())),
                1 => v6(17, &udp(4789, &[&[8, 0, 0, 0, 0, 0, bits, 0][..], &frame].concat())),
                2 => v6(17, &udp(6081, &[&[0, 0, 0x65, 0x58, 0, 0, bits, 0][..], &frame].concat())),
                3 => v4(47, &[&[0, 0][..], &frame[12..]].concat()),
                4 => v6(if ethertype == 0x0800 { 4 } else { 41 }, &packet),
                // An extension header in between.
                5 => v6(60, &[&[6, bits & 1, 0, 0, 0, 0, 0, 0][..], &[0; 8], &tcp(b"")].concat()),
                _ => v4(47, &[&[0, 0, 0x88, 0x47, 0, 0, 1, 64][..], &packet].concat()),
            };
        }
        for (at, byte) in changed {
            if let Some(place) = packet.get_mut(at) {
                *place = byte;
            }
        }
        for (link, packet) in [
            (Link::Ip, packet.clone()),
            (Link::Ethernet, ethernet(0x0800, &packet)),
            (Link::NetfilterLog, netfilter(&packet)),
            (Link::numbered(link), packet),
        ] {
            let wire = length(&packet);
            prop_assert_eq!(why_not(link, &packet, wire), NoPacket::NotIp);
            if dissect(link, &packet, wire).is_none() {
                continue;
            }
            for captured_length in 0..packet.len() {
                let part = &packet[..captured_length];
                let is_reported = dissect(link, part, wire).is_some();
                prop_assert!(is_reported || why_not(link, part, wire) == NoPacket::Cut, "{} of {:?}", captured_length, packet);
            }
        }
    }
}
