//! Hand-written packets, cut packets and arbitrary bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const V4_TCP: &[u8] = &[
    0x45, 0x02, 0, 56, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x1f, 0x90, 0xc0, 0x01, 0, 0, 0, 5, 0, 0, 0, 9, 0x80, 0x18, 0x02, 0x00, 0, 0, 0, 0, // TCP
    1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 3, // options: two no-ops, timestamps
    b'd', b'a', b't', b'a',
];

fn ethernet(tags: &[[u8; 4]], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend_from_slice(&tags.concat());
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

fn v6(next: u8, body: &[u8]) -> Vec<u8> {
    let len = u8::try_from(body.len()).expect("small");
    let mut packet = vec![0x6a, 0xb0, 0, 0, 0, len, next, 60];
    packet.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
    packet.extend_from_slice(&Ipv6Addr::UNSPECIFIED.octets());
    packet.extend_from_slice(body);
    packet
}

#[test]
fn a_segment_is_read_through_vlan_tags_and_padding() {
    let padded = [V4_TCP, &[0; 6]].concat();
    let tags = [[0x88, 0xa8, 0x20, 0x05], [0x81, 0x00, 0, 9]];
    for count in 0..=2 {
        let bytes = ethernet(&tags[..count], 0x0800, &padded);
        let frame = parse_ethernet(&bytes).expect("a frame");
        assert_eq!(frame.vlan, (count > 0).then_some(5));
        let ip = parse_ip(frame.payload).expect("a packet");
        assert_eq!((ip.total_len, ip.ttl, ip.traffic_class), (56, 64, 2));
        let tcp = parse_tcp(ip.payload).expect("a segment");
        assert_eq!((tcp.seq, tcp.ack, tcp.payload), (5, 9, &b"data"[..]));
        assert_eq!(tcp.flags, TcpHeader::ACK | TcpHeader::PSH);
        assert_eq!(tcp_timestamps(tcp.options), Some((7, 3)));
        let flow = five_tuple(&bytes).expect("a flow");
        assert_eq!((flow.source_port, flow.destination_port), (0x1f90, 0xc001));
        assert_eq!(flow.source, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(flow.reversed().reversed(), flow);
    }
}

#[test]
fn tcp_options_are_read_up_to_the_first_invalid_one() {
    let syn = [
        2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    let options = tcp_options(&syn);
    assert_eq!(options.timestamps, Some((7, 0)));
    assert_eq!(
        (options.largest_segment, options.window_scale),
        (Some(1460), Some(7))
    );
    let sack = [1, 1, 5, 10, 0, 0, 0, 4, 0, 0, 0, 9, 8, 10, 0, 0];
    assert_eq!(
        tcp_options(&sack),
        TcpOptions {
            sack: Some((4, 9)),
            ..TcpOptions::default()
        }
    );
    assert_eq!(tcp_options(&[2, 1, 3, 3, 7]), TcpOptions::default());
}

#[test]
fn a_first_sack_block_of_known_data_reports_a_duplicate() {
    let blocks = |first: (u8, u8), second: (u8, u8)| {
        let edges = [first.0, first.1, second.0, second.1];
        let edges = edges.into_iter().flat_map(|edge| [0, 0, 0, edge]);
        let option: Vec<u8> = [1, 1, 5, 18].into_iter().chain(edges).collect();
        tcp_options(&option).duplicate(50)
    };
    // RFC 2883, 4: below the acknowledgement, within the second block, and neither.
    assert_eq!(blocks((40, 50), (60, 90)), Some((40, 50)));
    assert_eq!(blocks((70, 80), (60, 90)), Some((70, 80)));
    assert_eq!(blocks((60, 70), (80, 90)), None);
    assert_eq!(TcpOptions::default().duplicate(50), None);
}

#[test]
fn ipv6_extensions_are_skipped_to_the_datagram() {
    let udp = [0x12, 0x34, 0, 53, 0, 10, 0, 0, b'h', b'i'];
    let hop_by_hop = [43, 0, 0, 0, 0, 0, 0, 0];
    let routing = [44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let fragment = [17, 0, 0, 1, 0, 0, 0, 7];
    let body = [&hop_by_hop[..], &routing, &fragment, &udp].concat();
    let packet = v6(0, &body);
    let ip = parse_ip(&packet).expect("a packet");
    assert_eq!(
        (ip.protocol, ip.header_len, ip.traffic_class),
        (UDP, 72, 0xab)
    );
    assert_eq!(
        (ip.fragment_offset, ip.more_fragments),
        (0, MoreFragments::Yes)
    );
    let datagram = parse_udp(ip.payload).expect("a datagram");
    assert_eq!((datagram.destination, datagram.payload), (53, &b"hi"[..]));
    let endless = v6(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(12));
    assert_eq!(parse_ip(&endless), Err(IpError::Extensions(8)));
}

#[test]
fn later_fragments_have_no_ports() {
    let mut packet = V4_TCP.to_vec();
    packet[7] = 3;
    let ip = parse_ip(&packet).expect("a packet");
    assert_eq!(ip.fragment_offset, 24);
    assert_eq!(FiveTuple::of(&ip).source_port, 0);
}

#[test]
fn contradictory_lengths_are_refused() {
    let change = |at: usize, value: u8| {
        let mut packet = V4_TCP.to_vec();
        packet[at] = value;
        packet
    };
    assert_eq!(parse_ip(&change(0, 0x44)), Err(IpError::Length("IPv4")));
    assert_eq!(parse_ip(&change(3, 19)), Err(IpError::Length("IPv4")));
    assert_eq!(parse_ip(&change(0, 0x55)), Err(IpError::Version(5)));
    assert_eq!(
        parse_tcp(&change(32, 0x40)[20..]),
        Err(IpError::Length("TCP"))
    );
    assert_eq!(
        parse_udp(&[0, 1, 0, 2, 0, 7, 0, 0]),
        Err(IpError::Length("UDP"))
    );
    let arp = ethernet(&[], 0x0806, &[0; 28]);
    assert_eq!(five_tuple(&arp), Err(IpError::Ethertype(0x0806)));
}

proptest! {
    #[test]
    fn a_truncated_packet_is_refused_or_keeps_its_payload_prefix(keep in 0usize..56) {
        match parse_ip(&V4_TCP[..keep]) {
            Ok(ip) => {
                prop_assert!(keep >= 20);
                prop_assert_eq!((ip.total_len, ip.payload.len()), (56, keep - 20));
                prop_assert_eq!(parse_tcp(ip.payload).is_ok(), keep >= 40);
            }
            Err(error) => {
                prop_assert!(keep < 20);
                prop_assert!(matches!(error, IpError::Short(_)));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in vec(any::<u8>(), 1..200),
        version in prop::sample::select(vec![0x45u8, 0x4f, 0x60]),
    ) {
        bytes[0] = version;
        if let Ok(ip) = parse_ip(&bytes) {
            prop_assert!(ip.header_len + ip.payload.len() <= bytes.len());
            let _ = FiveTuple::of(&ip);
            if let Ok(tcp) = parse_tcp(ip.payload) {
                prop_assert!(tcp.options.len() <= 40);
                let _ = tcp_timestamps(tcp.options);
            }
            let _ = parse_udp(ip.payload);
        }
        let _ = five_tuple(&bytes);
    }
}
