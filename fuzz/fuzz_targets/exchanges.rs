//! Pings, DNS and QUIC's spin bit between a few hosts, in any order: no more answered than asked, each
//! packet of one pair, mean and deviation within what was measured.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{Exchanges, Half, HostPair, ExchangeProtocol};
use neph_model::{Span, Wall};
use neph_wire::dissect::{Link, dissect};

/// Bytes of input that make a packet.
const EACH: usize = 6;

#[derive(Default)]
struct ConversationListener {
    pairs: u64,
    packets: u64,
}

impl ConversationListener {
    fn take(&mut self, pair: &HostPair) {
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
fn packet(bytes: &[u8; EACH]) -> (i64, Vec<u8>) {
    let [kind, hosts, id, content, cut, later] = *bytes;
    let (from, to) = (hosts & 3, hosts >> 2 & 3);
    let (protocol, carried) = match kind & 3 {
        0 => (1, vec![[8, 0, 128, 129][usize::from(kind >> 2 & 3)], kind >> 6 & 1, 0, 0, 0, content & 3, 0, id]),
        number => {
            let port = [443_u16, 53, 443, 5353][usize::from(number)];
            let other = 40_000 + u16::from(hosts >> 4 & 3);
            let ports = if kind & 4 == 0 { [other, port] } else { [port, other] };
            let mut carried: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
            carried.extend([0, 13, 0, 0, 0, id & 7, content, 0, 0]);
            if number != 1 {
                carried[8] = content;
            }
            (17, carried)
        }
    };
    let mut packet = vec![0x45, 0, 0, 20 + carried.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, from, 10, 0, 0, to]);
    packet.extend(carried);
    if cut & 0xf0 == 0 {
        packet.truncate(packet.len() - usize::from(cut & 0x0f).min(13));
    }
    let apart = 1_i64 << (later & 0x3f).min(42);
    (if later & 0x80 == 0 { apart } else { -apart / 4 }, packet)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&most, rest)) = bytes.split_first() else { return };
    let most = usize::from(most & 15) + 1;
    let mut exchanges = Exchanges::new(most, Span::from_secs(300));
    let (mut listener, mut now, mut taken) = (ConversationListener::default(), 1_700_000_000_000_000_000_i64, 0);
    for one in rest.as_chunks::<EACH>().0 {
        let (later, bytes) = packet(one);
        now = now.saturating_add(later);
        let wire = 20 + 13;
        let Some(seen) = dissect(Link::Ip, &bytes, wire) else { continue };
        taken += u64::from(exchanges.add_packet_with(Wall::from_unix_nanos(now), &seen, |pair| listener.take(pair)));
    }
    let before = listener.pairs;
    exchanges.end(|pair| listener.take(pair));
    assert!(listener.pairs - before <= most as u64);
    assert_eq!(listener.packets, taken);
    assert!(exchanges.evicted() <= listener.pairs);
});
