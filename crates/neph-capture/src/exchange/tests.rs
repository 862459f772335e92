//! Pairs, fed with packets written by hand.

mod quic;
mod repeats;

use std::net::Ipv4Addr;

use neph_wire::dissect::{Link, dissect};
use proptest::prelude::*;

use super::*;

const CLIENT: [u8; 4] = [192, 0, 2, 1];
const SERVER: [u8; 4] = [198, 51, 100, 2];

/// A raw IPv4 packet of this protocol.
fn ipv4(by_client: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(20 + payload.len()).expect("short");
    let mut packet = vec![0x45, 0, 0, length, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    let (from, to) = if by_client {
        (CLIENT, SERVER)
    } else {
        (SERVER, CLIENT)
    };
    packet.extend(from.into_iter().chain(to));
    packet.extend(payload);
    packet
}

fn echo(by_client: bool, sequence: u8) -> Vec<u8> {
    let kind = if by_client { 8 } else { 0 };
    ipv4(by_client, 1, &[kind, 0, 0, 0, 0, 77, 0, sequence])
}

/// Of a client's port 4000 to a server's port.
fn udp(by_client: bool, server_port: u16, payload: &[u8]) -> Vec<u8> {
    let ports = if by_client {
        [4000, server_port]
    } else {
        [server_port, 4000]
    };
    let length = u16::try_from(8 + payload.len()).expect("short");
    let fields = [ports[0], ports[1], length, 0];
    let mut datagram: Vec<u8> = fields.into_iter().flat_map(u16::to_be_bytes).collect();
    datagram.extend(payload);
    ipv4(by_client, 17, &datagram)
}

struct TestExchanges {
    exchanges: Exchanges,
}

impl TestExchanges {
    fn new(max_pairs: usize) -> Self {
        Self {
            exchanges: Exchanges::new(max_pairs, Span::from_secs(300)),
        }
    }

    fn add(&mut self, at_ms: i64, packet: &[u8]) -> bool {
        let at = Wall::from_unix_nanos(1_700_000_000_000_000_000 + at_ms * 1_000_000);
        let length = u32::try_from(packet.len()).expect("short");
        let packet = dissect(Link::Ip, packet, length).expect("IP");
        let mut ended_pairs = 0;
        let belongs_to_exchange = self
            .exchanges
            .add_packet_with(at, &packet, |_| ended_pairs += 1);
        assert_eq!(ended_pairs, 0);
        belongs_to_exchange
    }

    /// The only pair.
    fn end(mut self) -> RecordedPair {
        let mut exchanges = Vec::new();
        self.exchanges
            .end(|pair| exchanges.push(RecordedPair::of(pair)));
        assert_eq!(exchanges.len(), 1);
        exchanges.remove(0)
    }
}

#[derive(Debug)]
struct RecordedPair {
    key: ExchangeKey,
    requests: (u64, u64),
    round_trips: Option<(u64, i64, i64)>,
    client_rtt_ms: Option<i64>,
    deviation: Option<(Span, Span)>,
}

impl RecordedPair {
    fn of(pair: &HostPair) -> Self {
        let ms = |span: Span| span.nanos() / 1_000_000;
        let total = pair.counts();
        let round_trips = total.round_trips(Half::Server);
        Self {
            key: *pair.key(),
            requests: (total.requests(), total.answered()),
            round_trips: round_trips
                .map(|quantiles| (quantiles.n, ms(quantiles.min), ms(quantiles.max))),
            client_rtt_ms: total
                .round_trips(Half::Client)
                .map(|quantiles| ms(quantiles.p50)),
            deviation: round_trips
                .and_then(|quantiles| Some((quantiles.mean, quantiles.deviation?))),
        }
    }
}

#[test]
fn a_silent_pair_ends_after_its_timeout_without_further_packets() {
    let mut test = TestExchanges::new(9);
    test.add(0, &echo(true, 1));
    let mut ended_pairs = 0;
    for seconds in [300, 301] {
        let now = Wall::from_unix_nanos((1_700_000_000 + seconds) * 1_000_000_000);
        test.exchanges.end_idle(now, |_| ended_pairs += 1);
        assert_eq!(ended_pairs, i32::from(seconds > 300));
    }
}

#[test]
fn an_echo_is_matched_by_its_number_and_counts_once() {
    let mut test = TestExchanges::new(9);
    for (n, round_trip_ms) in [(1, 10), (2, 20), (3, 30)] {
        assert!(test.add(i64::from(n) * 1000, &echo(true, n)));
        assert!(test.add(i64::from(n) * 1000 + round_trip_ms, &echo(false, n)));
    }
    // Answered twice, asked twice, not answered.
    test.add(3_040, &echo(false, 3));
    test.add(4_000, &echo(true, 4));
    test.add(4_001, &echo(true, 4));
    test.add(4_005, &echo(false, 4));
    test.add(5_000, &echo(true, 5));
    let exchange = test.end();
    assert_eq!(exchange.key.protocol, ExchangeProtocol::Ping);
    assert_eq!(exchange.key.server.ip(), Ipv4Addr::from(SERVER));
    assert_eq!(exchange.requests, (5, 4));
    assert_eq!(exchange.round_trips, Some((3, 10, 30)));
    let deviation = exchange.deviation.expect("three");
    // The root of 200 / 3.
    let expected = (Span::from_millis(20), Span::from_nanos(8_164_965));
    assert_eq!(deviation, expected);
}

/// Of a period: packets, requests, answers and round trips of each pair, and of all pings.
fn end_period(exchanges: &mut Exchanges) -> (Vec<[u64; 4]>, [u64; 4]) {
    let counts_of = |counts: &ExchangeCounts| {
        let answer_count = counts
            .round_trips(Half::Server)
            .map_or(0, |quantiles| quantiles.n);
        [
            counts.packets(),
            counts.requests(),
            counts.answered(),
            answer_count,
        ]
    };
    let mut pairs = Vec::new();
    let totals = exchanges.end_period(|_, period_counts| pairs.push(counts_of(period_counts)));
    (pairs, counts_of(&totals[ExchangeProtocol::Ping as usize]))
}

#[test]
fn a_period_counts_its_own_packets_and_the_pair_counts_all() {
    let mut test = TestExchanges::new(9);
    test.add(0, &echo(true, 1));
    test.add(10, &echo(false, 1));
    assert_eq!(end_period(&mut test.exchanges).0, [[2, 1, 1, 1]]);
    assert_eq!(end_period(&mut test.exchanges), (vec![], [0; 4]));
    test.add(1000, &echo(true, 2));
    assert_eq!(end_period(&mut test.exchanges).0, [[1, 1, 0, 0]]);
    // An answer belongs to the period that it came in.
    test.add(1030, &echo(false, 2));
    assert_eq!(
        end_period(&mut test.exchanges),
        (vec![[1, 0, 1, 1]], [1, 0, 1, 1])
    );
    let exchange = test.end();
    assert_eq!(
        (exchange.requests, exchange.round_trips),
        ((2, 2), Some((2, 10, 30)))
    );
    assert_eq!(
        exchange.deviation.map(|(mean, _)| mean),
        Some(Span::from_millis(20))
    );
}

#[test]
fn a_pair_that_ends_within_a_period_counts_in_its_totals() {
    let mut test = TestExchanges::new(9);
    end_period(&mut test.exchanges);
    test.add(0, &echo(true, 1));
    test.add(10, &echo(false, 1));
    let now = Wall::from_unix_nanos(1_700_000_400 * 1_000_000_000);
    test.exchanges.end_idle(now, |_| {});
    assert_eq!(end_period(&mut test.exchanges), (vec![], [2, 1, 1, 1]));
    assert_eq!(end_period(&mut test.exchanges), (vec![], [0; 4]));
}

#[test]
fn a_dns_reply_is_matched_by_its_id_and_the_client_port() {
    let mut test = TestExchanges::new(9);
    assert!(test.add(0, &udp(true, 53, &[0xab, 0xcd, 1, 0])));
    test.add(5, &udp(false, 53, &[0xab, 0xce, 0x81, 0]));
    test.add(7, &udp(false, 53, &[0xab, 0xcd, 0x81, 0]));
    let exchange = test.end();
    assert_eq!(exchange.key.server, (Ipv4Addr::from(SERVER), 53).into());
    assert_eq!(exchange.key.client.port(), 0);
    assert_eq!(
        (exchange.requests, exchange.round_trips),
        ((1, 1), Some((1, 7, 7)))
    );
}

#[test]
fn answers_without_a_request_are_counted_and_other_ports_ignored() {
    let mut test = TestExchanges::new(9);
    for number in 0..3 {
        assert!(test.add(0, &echo(false, number)));
    }
    assert!(!test.add(1, &udp(true, 5353, &[0, 1, 0, 0])));
    let mut ended_pairs = Vec::new();
    test.exchanges.end(|pair| {
        let total = pair.counts();
        let counts = [
            total.packets(),
            total.requests(),
            total.answered(),
            total.responses_without_request(),
        ];
        ended_pairs.push((counts, pair.is_one_direction(), pair.key().client.ip()));
    });
    assert_eq!(
        ended_pairs,
        [([3, 0, 0, 3], true, Ipv4Addr::from(CLIENT).into())]
    );
}

/// A client 10 ms and a server 30 ms from the point of capture; each sends three datagrams with the
/// bit as it is to be, one after another.
fn exchanges_with_spin_bit(changes: u8) -> TestExchanges {
    let mut test = TestExchanges::new(9);
    test.add(0, &udp(true, 443, &[0xc0]));
    test.add(30, &udp(false, 443, &[0xc0]));
    for change in 0..changes {
        let bit = (change & 1) << 5 | 0x40;
        let at = 100 + 40 * i64::from(change);
        for later in 0..3 {
            test.add(at + later, &udp(true, 443, &[bit]));
        }
        for later in 0..3 {
            test.add(at + 30 + later, &udp(false, 443, &[bit]));
        }
    }
    test
}

#[test]
fn the_spin_bit_shows_the_rtt_of_both_halves() {
    let exchange = exchanges_with_spin_bit(20).end();
    assert_eq!(exchange.key.client.port(), 4000);
    // The first change has none before it, and gives no round trip.
    assert_eq!(exchange.round_trips, Some((19, 30, 30)));
    assert_eq!(exchange.client_rtt_ms, Some(10));
}

#[test]
fn too_few_spin_bit_changes_give_no_rtt() {
    assert_eq!(exchanges_with_spin_bit(3).end().round_trips, None);
}

#[test]
fn a_period_has_quic_rtts_once_the_spin_bit_is_trusted() {
    let round_trips_of = |mut test: TestExchanges| {
        let totals = test.exchanges.end_period(|_, _| {});
        let quic = &totals[ExchangeProtocol::Quic as usize];
        [Half::Server, Half::Client].map(|half| quic.round_trips(half).map(|quantiles| quantiles.n))
    };
    assert_eq!(round_trips_of(exchanges_with_spin_bit(3)), [None, None]);
    assert_eq!(
        round_trips_of(exchanges_with_spin_bit(20)),
        [Some(19), Some(18)]
    );
}

/// Round trips as they are found.
#[derive(Default)]
struct RecordedRoundTrips(Vec<(ExchangeProtocol, Half, i64)>);

impl ExchangeListener for RecordedRoundTrips {
    fn round_trip(&mut self, key: &ExchangeKey, round_trip: ExchangeRoundTrip) {
        let nanos = round_trip.round_trip.nanos();
        self.0.push((key.protocol, round_trip.half, nanos));
    }

    fn ended(&mut self, _: &HostPair) {}
}

#[test]
fn a_round_trip_is_reported_immediately() {
    let mut exchanges = Exchanges::new(9, Span::from_secs(300));
    let mut received = RecordedRoundTrips::default();
    for (at, packet) in [
        (5, echo(true, 1)),
        (12, echo(false, 1)),
        (13, echo(false, 1)),
    ] {
        let packet = dissect(Link::Ip, &packet, 28).expect("IP");
        exchanges.add_packet(Wall::from_unix_nanos(at), &packet, &mut received);
    }
    assert_eq!(received.0, [(ExchangeProtocol::Ping, Half::Server, 7)]);
}

#[test]
fn earlier_round_trips_are_reported_once_the_spin_bit_is_accepted() {
    let mut exchanges = Exchanges::new(9, Span::from_secs(300));
    let mut received = RecordedRoundTrips::default();
    for turn in 0..20_u8 {
        let bit = (turn & 1) << 5 | 0x40;
        for (at, by_client) in [(0, true), (30, false)] {
            let packet = udp(by_client, 443, &[bit]);
            let packet = dissect(Link::Ip, &packet, 29).expect("IP");
            let at = Wall::from_unix_nanos(i64::from(turn) * 40 + at);
            exchanges.add_packet(at, &packet, &mut received);
        }
    }
    let mut round_trip_count = 0;
    exchanges.end(|pair| {
        let total = pair.counts();
        let n = [Half::Server, Half::Client]
            .map(|half| total.round_trips(half).map_or(0, |quantiles| quantiles.n));
        round_trip_count = n[0] + n[1];
    });
    assert_eq!(received.0.len() as u64, round_trip_count);
    assert!(round_trip_count > 30);
}

proptest! {
    #[test]
    fn random_bits_give_no_rtt(bits in prop::collection::vec(any::<(bool, bool)>(), 200..400)) {
        let mut test = TestExchanges::new(9);
        for (at, (by_client, bit)) in (0..).zip(bits) {
            let first = if bit { 0x60 } else { 0x40 };
            test.add(at, &udp(by_client, 443, &[first]));
        }
        let exchange = test.end();
        prop_assert_eq!((exchange.round_trips, exchange.client_rtt_ms), (None, None));
    }

    #[test]
    fn beyond_the_limit_the_longest_idle_pair_is_evicted(
        ports in prop::collection::vec(1_u16..9, 1..60),
    ) {
        let mut exchanges = Exchanges::new(3, Span::from_secs(300));
        let mut expected_ports: Vec<u16> = Vec::new();
        for (at, port) in (0..).zip(ports) {
            let mut datagram = udp(true, 443, &[0x40]);
            datagram[20..22].copy_from_slice(&port.to_be_bytes());
            let packet = dissect(Link::Ip, &datagram, 29).expect("IP");
            let mut ended = Vec::new();
            exchanges.add_packet_with(Wall::from_unix_nanos(at), &packet, |pair| {
                ended.push(pair.key().client.port());
            });
            expected_ports.retain(|other| *other != port);
            expected_ports.push(port);
            let excess = expected_ports.len().saturating_sub(3);
            prop_assert_eq!(ended, expected_ports.drain(..excess).collect::<Vec<_>>());
        }
    }
}
