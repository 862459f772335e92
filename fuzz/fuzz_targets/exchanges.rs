//! Pings, DNS and QUIC's spin bit between a few hosts, in any order: no more answered than asked, each
//! packet of one pair, mean and deviation within what was measured.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{ExchangeProtocol, Exchanges, Half, HostPair};
use neph_model::{Span, Wall};
use neph_wire::dissect::{Link, dissect};

/// Bytes of input that make a packet.
const PACKET_INPUT_BYTES: usize = 6;

#[derive(Default)]
struct PairTotals {
    pairs: u64,
    packets: u64,
}

impl PairTotals {
    fn add_pair(&mut self, pair: &HostPair) {
        self.pairs += 1;
        let total = pair.counts();
        self.packets += total.packets();
        assert!(total.packets() > 0);
        assert!(total.answered() <= total.requests());
        if let Some(trips) = total.round_trips(Half::Server) {
            assert!(trips.min >= Span::from_nanos(0));
            assert!(trips.min <= trips.p50 && trips.p50 <= trips.max);
            if pair.key().protocol != ExchangeProtocol::Quic {
                assert!(trips.n <= total.answered());
            }
        }
        assert!(total.answered() + total.requests_not_tracked() <= total.requests());
        if let Some(trips) = total.round_trips(Half::Server) {
            assert!(trips.min <= trips.mean && trips.mean <= trips.max);
            let width = trips.max.nanos() - trips.min.nanos() + 1;
            assert!(trips.deviation.is_none_or(|far| far.nanos() <= width));
        }
    }
}

/// A packet of raw IPv4, of which the last bytes may be cut off.
fn packet(bytes: &[u8; PACKET_INPUT_BYTES]) -> (i64, Vec<u8>) {
    let [kind, hosts, id, content, cut, time_step] = *bytes;
    let (from, to) = (hosts & 3, hosts >> 2 & 3);
    let (protocol, ip_payload) = match kind & 3 {
        0 => (
            1,
            vec![
                [8, 0, 128, 129][usize::from(kind >> 2 & 3)],
                kind >> 6 & 1,
                0,
                0,
                0,
                content & 3,
                0,
                id,
            ],
        ),
        number => {
            let port = [443_u16, 53, 443, 5353][usize::from(number)];
            let other = 40_000 + u16::from(hosts >> 4 & 3);
            let ports = if kind & 4 == 0 {
                [other, port]
            } else {
                [port, other]
            };
            let mut ip_payload: Vec<u8> =
                ports.iter().flat_map(|port| port.to_be_bytes()).collect();
            ip_payload.extend([0, 13, 0, 0, 0, id & 7, content, 0, 0]);
            if number != 1 {
                ip_payload[8] = content;
            }
            (17, ip_payload)
        }
    };
    let mut packet = vec![
        0x45,
        0,
        0,
        20 + ip_payload.len() as u8,
        0,
        0,
        0,
        0,
        64,
        protocol,
        0,
        0,
    ];
    packet.extend([10, 0, 0, from, 10, 0, 0, to]);
    packet.extend(ip_payload);
    if cut & 0xf0 == 0 {
        packet.truncate(packet.len() - usize::from(cut & 0x0f).min(13));
    }
    let time_step_ns = 1_i64 << (time_step & 0x3f).min(42);
    (
        if time_step & 0x80 == 0 {
            time_step_ns
        } else {
            -time_step_ns / 4
        },
        packet,
    )
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&max_pairs, rest)) = bytes.split_first() else {
        return;
    };
    let max_pairs = usize::from(max_pairs & 15) + 1;
    let mut exchanges = Exchanges::new(max_pairs, Span::from_secs(300));
    let (mut totals, mut now, mut used_packets) =
        (PairTotals::default(), 1_700_000_000_000_000_000_i64, 0);
    for chunk in rest.as_chunks::<PACKET_INPUT_BYTES>().0 {
        let (time_step, bytes) = packet(chunk);
        now = now.saturating_add(time_step);
        let wire = 20 + 13;
        let Some(dissected) = dissect(Link::Ip, &bytes, wire) else {
            continue;
        };
        used_packets += u64::from(exchanges.add_packet_with(
            Wall::from_unix_nanos(now),
            &dissected,
            |pair| totals.add_pair(pair),
        ));
    }
    let evicted_pairs = totals.pairs;
    exchanges.end(|pair| totals.add_pair(pair));
    assert!(totals.pairs - evicted_pairs <= max_pairs as u64);
    assert_eq!(totals.packets, used_packets);
    assert!(exchanges.evicted() <= totals.pairs);
});
