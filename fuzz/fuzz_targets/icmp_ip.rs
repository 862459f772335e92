//! ICMP messages, quoted packets and frames: payloads lie within the input, a number of ours agrees
//! with the header's, a flow reversed twice is itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::checksum::internet_checksum;
use neph_wire::icmp::{Family, IcmpMessage, parse, parse_quoted};
use neph_wire::ip::{FiveTuple, five_tuple, parse_ip, parse_tcp, parse_udp, tcp_timestamps};

fuzz_target!(|bytes: &[u8]| {
    for family in [Family::V4, Family::V6] {
        match parse(family, bytes) {
            Ok(IcmpMessage::EchoRequest(echo) | IcmpMessage::EchoReply(echo)) => {
                assert_eq!(echo.payload.len() + 8, bytes.len());
                assert!(echo.seq().is_none_or(|seq| seq & 0xffff == u64::from(echo.seq16)));
                assert!(family == Family::V6 || internet_checksum(&[bytes]) == 0);
            }
            Ok(IcmpMessage::TimeExceeded { quoted, .. } | IcmpMessage::Unreachable { quoted, .. }) => {
                let _ = parse_quoted(quoted);
            }
            _ => {}
        }
    }
    if let Ok(ip) = parse_ip(bytes) {
        assert!(ip.header_len + ip.payload.len() <= bytes.len());
        assert!(ip.header_len + ip.payload.len() <= ip.total_len);
        let flow = FiveTuple::of(&ip);
        assert_eq!(flow.reversed().reversed(), flow);
        if let Ok(tcp) = parse_tcp(ip.payload) {
            assert_eq!(tcp.options.len() + tcp.payload.len() + 20, ip.payload.len());
            let _ = tcp_timestamps(tcp.options);
        }
        if let Ok(udp) = parse_udp(ip.payload) {
            assert!(udp.payload.len() <= udp.payload_len);
        }
    }
    let _ = five_tuple(bytes);
    let _ = parse_quoted(bytes);
});
