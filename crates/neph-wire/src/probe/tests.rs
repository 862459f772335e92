use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::checksum::{PseudoHeader, internet_checksum};
use crate::icmp::{Family, IcmpError, IcmpMessage, parse};
use crate::ip::{ICMP, ICMPV6, TCP, TcpHeader, UDP, parse_tcp};

fn ends(family: Family) -> (IpAddr, IpAddr) {
    match family {
        Family::V4 => (
            Ipv4Addr::new(10, 0, 0, 1).into(),
            Ipv4Addr::new(198, 51, 100, 7).into(),
        ),
        Family::V6 => (
            Ipv6Addr::new(0xfd00, 1, 2, 0, 0, 0, 0, 1).into(),
            Ipv6Addr::new(0xfd00, 9, 9, 0, 0, 0xffff, 0, 7).into(),
        ),
    }
}

/// An IP packet with `body`, as the kernel writes it, but without a checksum.
fn packet(family: Family, protocol: u8, body: &[u8]) -> Vec<u8> {
    let (source, destination) = ends(family);
    let len = u16::try_from(body.len()).expect("small");
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, protocol, 0, 0];
            out[2..4].copy_from_slice(&(len + 20).to_be_bytes());
            out.extend([source.octets(), destination.octets()].concat());
            out.extend_from_slice(body);
            out
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut out = vec![0x60, 0, 0, 0, 0, 0, protocol, 1];
            out[4..6].copy_from_slice(&len.to_be_bytes());
            out.extend([source.octets(), destination.octets()].concat());
            out.extend_from_slice(body);
            out
        }
        _ => unreachable!("both of one version"),
    }
}

/// An error of this type and code that quotes `quoted`; `word` follows the checksum.
fn error(family: Family, (kind, code): (u8, u8), word: [u8; 4], icmp_payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, code, 0, 0];
    out.extend_from_slice(&word);
    out.extend_from_slice(icmp_payload);
    if family == Family::V4 {
        let sum = internet_checksum(&[&out]);
        out[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    out
}

fn exceeded(family: Family, icmp_payload: &[u8]) -> Vec<u8> {
    let kind = match family {
        Family::V4 => 11,
        Family::V6 => 3,
    };
    error(family, (kind, 0), [0; 4], icmp_payload)
}

/// Length 16, class 1, type 1, then three hand-written labels: 24001/0/1, 3/5/9 and the bottom
/// 16/7/255.
const EXTENSIONS: [u8; 20] = [
    0x20, 0, 0, 0, 0, 16, 1, 1, 0x05, 0xdc, 0x10, 0x01, 0x00, 0x00, 0x3a, 0x09, 0x00, 0x01, 0x0f,
    0xff,
];

#[test]
fn mpls_labels_are_read_with_and_without_a_length_field() {
    let family = Family::V4;
    let (source, destination) = ends(family);
    let requested = syn(
        SocketAddr::new(source, 1000),
        SocketAddr::new(destination, 443),
        77,
    );
    let mut quoted = packet(family, TCP, &requested.expect("one version"));
    quoted.resize(128, 0);
    let mut extensions = EXTENSIONS;
    let sum = internet_checksum(&[&extensions]);
    extensions[2..4].copy_from_slice(&sum.to_be_bytes());
    let expected: Vec<(u32, u8, u8)> = vec![(24001, 0, 1), (3, 5, 9), (16, 7, 255)];
    for (word, extensions) in [
        ([0, 32, 0, 0], EXTENSIONS),
        ([0, 32, 0, 0], extensions),
        ([0, 0, 0, 0], extensions),
    ] {
        let icmp_payload = [&quoted[..], &extensions].concat();
        let message = error(family, (11, 0), word, &icmp_payload);
        let quote = parse_error(family, &message).expect("reads");
        let quote = quote.expect("a probe");
        let labels = quote.labels.iter();
        let labels: Vec<_> = labels
            .map(|label| (label.label, label.traffic_class, label.ttl))
            .collect();
        assert_eq!(labels, expected);
        assert_eq!(quote.tag, Tag::Tcp { seq: 77 });
    }
    // A wrong checksum or a cut object: no labels, but the probe is identified.
    let mut wrong = extensions;
    wrong[9] ^= 1;
    for broken in [&wrong[..], &extensions[..18], &[0x20, 0, 0, 0, 0, 3, 1, 1]] {
        let icmp_payload = [&quoted[..], broken].concat();
        let message = error(family, (11, 0), [0, 32, 0, 0], &icmp_payload);
        let quote = parse_error(family, &message).expect("reads");
        assert_eq!(quote.expect("a probe").labels, []);
    }
}

#[test]
fn icmp_errors_are_classified_by_type_and_code() {
    for (family, kind, code, expected_kind) in [
        (Family::V4, 11, 0, Some(QuoteKind::TimeExceeded)),
        (Family::V4, 11, 1, None),
        (Family::V4, 3, 3, Some(QuoteKind::PortUnreachable)),
        (Family::V4, 3, 13, Some(QuoteKind::Unreachable(13))),
        (Family::V4, 3, 4, None),
        (Family::V4, 5, 0, None),
        (Family::V6, 3, 0, Some(QuoteKind::TimeExceeded)),
        (Family::V6, 1, 4, Some(QuoteKind::PortUnreachable)),
        (Family::V6, 1, 0, Some(QuoteKind::Unreachable(0))),
        (Family::V6, 2, 0, None),
    ] {
        let quoted = packet(family, UDP, &[0, 1, 0, 2, 0, 8, 0xab, 0xcd]);
        let message = error(family, (kind, code), [0; 4], &quoted);
        let quote = parse_error(family, &message).expect("reads");
        assert_eq!(
            quote.map(|quote| quote.kind),
            expected_kind,
            "{family:?} {kind} {code}"
        );
    }
}

proptest! {
    #[test]
    fn a_datagram_has_the_requested_checksum(
        number in 1u16..0xffff,
        ports: (u16, u16),
        payload in vec(any::<u8>(), 4..90),
    ) {
        for family in [Family::V4, Family::V6] {
            let (source, destination) = ends(family);
            let (from, to) = (SocketAddr::new(source, ports.0), SocketAddr::new(destination, ports.1));
            let bytes = udp(from, to, &payload, 2, number).expect("one version");
            let pseudo = PseudoHeader::new(source, destination, UDP, bytes.len()).expect("same");
            prop_assert_eq!(internet_checksum(&[pseudo.as_bytes(), &bytes]), 0, "it is right");
            prop_assert_eq!(&bytes[6..8], &number.to_be_bytes());
            prop_assert_eq!(&bytes[8..10], &payload[..2]);
            prop_assert_eq!(&bytes[12..], &payload[4..]);
            let quoted = packet(family, UDP, &bytes[..8]);
            let quote = parse_error(family, &exceeded(family, &quoted)).expect("reads");
            let quote = quote.expect("a probe");
            prop_assert_eq!(quote.tag, Tag::Udp { checksum: number });
            prop_assert_eq!((quote.flow.source_port, quote.flow.destination_port), ports);
            prop_assert!(quote.is_between(source, destination));
        }
    }

    #[test]
    fn a_syn_has_a_valid_checksum_and_its_sequence_number_is_quoted(seq: u32, ports: (u16, u16)) {
        for family in [Family::V4, Family::V6] {
            let (source, destination) = ends(family);
            let (from, to) = (SocketAddr::new(source, ports.0), SocketAddr::new(destination, ports.1));
            let plain = syn(from, to, seq).expect("one version");
            let bare_syn = mute_syn(from, to, seq).expect("one version");
            prop_assert_eq!((plain.len(), bare_syn.len()), (SYN_LEN, SYN_LEN + 20));
            for bytes in [plain, bare_syn] {
                let pseudo = PseudoHeader::new(source, destination, TCP, bytes.len()).expect("same");
                prop_assert_eq!(internet_checksum(&[pseudo.as_bytes(), &bytes]), 0);
                let header = parse_tcp(&bytes).expect("a header");
                prop_assert_eq!((header.seq, header.flags), (seq, TcpHeader::SYN));
                prop_assert!(header.payload.is_empty(), "all of it is header");
                let quoted = packet(family, TCP, &bytes[..8]);
                let quote = parse_error(family, &exceeded(family, &quoted)).expect("reads");
                prop_assert_eq!(quote.expect("a probe").tag, Tag::Tcp { seq });
            }
        }
    }

    #[test]
    fn all_echo_requests_have_the_same_checksum_and_identifier(ident in 1u16..0xffff, seq: u16) {
        for (family, protocol) in [(Family::V4, ICMP), (Family::V6, ICMPV6)] {
            let both = ends(family);
            let bytes = echo(both, ident, seq).expect("one version");
            prop_assert_eq!(&bytes[2..4], &ident.to_be_bytes());
            match family {
                Family::V4 => prop_assert!(parse(family, &bytes).is_ok()),
                Family::V6 => {
                    let pseudo = PseudoHeader::new(both.0, both.1, ICMPV6, ECHO_LEN).expect("same");
                    prop_assert_eq!(internet_checksum(&[pseudo.as_bytes(), &bytes]), 0);
                }
            }
            let IcmpMessage::EchoRequest(read) = parse(family, &bytes).expect("reads") else {
                return Err(TestCaseError::fail("no request"));
            };
            prop_assert_eq!((read.ident, read.seq16), (ident, seq));
            let quoted = packet(family, protocol, &bytes[..8]);
            let quote = parse_error(family, &exceeded(family, &quoted)).expect("reads");
            prop_assert_eq!(quote.expect("a probe").tag, Tag::Echo { ident, seq });
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), quotes: bool) {
        for family in [Family::V4, Family::V6] {
            let message = if quotes {
                let mut quoted = packet(family, UDP, &bytes);
                quoted.truncate(200);
                exceeded(family, &quoted)
            } else {
                bytes.clone()
            };
            match parse_error(family, &message) {
                Ok(Some(quote)) => prop_assert!(quote.labels.len() <= 16),
                Err(IcmpError::TooShort(len)) => prop_assert_eq!(len, message.len()),
                Ok(None) | Err(_) => {}
            }
        }
    }
}
