//! QUIC at any port.

use super::*;

/// A datagram of QUIC between ports of neither's: `client` at 50,000, the server at 4,433.
fn datagram(by_client: bool, payload: &[u8]) -> Vec<u8> {
    let mut packet = udp(by_client, 4_433, payload);
    let client = if by_client { 20..22 } else { 22..24 };
    packet[client].copy_from_slice(&50_000_u16.to_be_bytes());
    packet
}

/// Turns of the spin bit at a port that is nobody's.
fn add_spin_changes(test: &mut TestExchanges, at: i64) {
    for turn in 0..20_u8 {
        let (at, bit) = (at + 40 * i64::from(turn), (turn & 1) << 5 | 0x40);
        test.add(at, &datagram(true, &[bit]));
        test.add(at + 30, &datagram(false, &[bit]));
    }
}

#[test]
fn a_handshake_shows_quic_at_any_port() {
    for version in [1, 0x6b33_43cf_u32, 0xff00_001d] {
        let mut long_header = vec![0xc3];
        long_header.extend(version.to_be_bytes());
        long_header.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
        let mut test = TestExchanges::new(9);
        assert!(test.add(0, &datagram(true, &long_header)));
        assert!(test.add(30, &datagram(false, &long_header)));
        add_spin_changes(&mut test, 100);
        let exchange = test.end();
        assert_eq!(exchange.key.server.port(), 4_433);
        assert_eq!(exchange.round_trips, Some((19, 30, 30)));
        assert_eq!(exchange.client_rtt_ms, Some(10));
    }
}

#[test]
fn without_a_handshake_only_given_ports_are_quic() {
    let mut test = TestExchanges::new(9);
    assert!(!test.add(0, &datagram(true, &[0x40])));
    // Neither a version that there is nor a long header.
    assert!(!test.add(0, &datagram(true, &[0xc3, 1, 2, 3, 4, 8])));
    assert!(!test.add(0, &datagram(true, &[0x43, 0, 0, 0, 1, 8])));
    test.exchanges = test.exchanges.with_quic_ports(&[4_433]);
    add_spin_changes(&mut test, 100);
    assert_eq!(test.end().round_trips, Some((19, 30, 30)));
}
