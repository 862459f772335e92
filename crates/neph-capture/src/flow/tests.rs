//! Tables of flows, fed with packets written by hand.

use std::net::{IpAddr, Ipv4Addr};

use neph_model::Span;
use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::{IpPacket, MoreFragments, TCP, TcpHeader};
use proptest::prelude::*;

use super::*;
use crate::sample::{Answer, Method};

const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Records what a listener received.
#[derive(Default)]
struct Received {
    ended: Vec<(SocketAddr, SocketAddr, u64, u64)>,
    samples: u64,
    path: Option<Quantiles>,
    server_processing: Option<Quantiles>,
}

impl Listener for Received {
    fn sample(&mut self, _: &FlowName, _: &Sample) {
        self.samples += 1;
    }
    fn ended(&mut self, flow: &Flow) {
        let packets = [Side::Client, Side::Server].map(|side| flow.sent(side).packets);
        let name = flow.name();
        self.ended
            .push((name.client(), name.server(), packets[0], packets[1]));
        self.path = flow
            .round_trips(Half::Server)
            .path_quantiles(Method::Acknowledgement);
        let round_trips = flow.round_trips(Half::Server);
        self.server_processing =
            round_trips.answer_quantiles(Method::Acknowledgement, Answer::WithData);
    }
}

/// A segment without options: flags, sequence number, acknowledgement, payload.
#[derive(Clone, Copy)]
struct TestSegment {
    side: Side,
    port: u16,
    flags: u8,
    numbers: (u32, u32),
    payload: u32,
}

struct TestTable {
    table: Table,
    received: Received,
}

impl TestTable {
    fn new(limits: Limits) -> Self {
        Self {
            table: Table::new(limits),
            received: Received::default(),
        }
    }

    fn end_idle(&mut self, at_ms: i64) {
        let at = Wall::from_unix_nanos(1_700_000_000_000_000_000 + at_ms * 1_000_000);
        self.table.end_idle(at, &mut self.received);
    }

    fn add(&mut self, at_ms: i64, segment: TestSegment) {
        let client = (IpAddr::from(CLIENT), segment.port);
        let server = (IpAddr::from(SERVER), 443);
        let (from, to) = match segment.side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let header = TcpHeader {
            source: from.1,
            destination: to.1,
            seq: segment.numbers.0,
            ack: segment.numbers.1,
            flags: segment.flags,
            window: 500,
            header_len: 20,
            options: &[],
            payload: &[],
        };
        let packet = Dissected {
            vlan: None,
            tunnel: None,
            ip: IpPacket {
                source: from.0,
                destination: to.0,
                protocol: TCP,
                ttl: 64,
                traffic_class: 0,
                total_len: 40 + segment.payload as usize,
                header_len: 20,
                identification: None,
                fragment_offset: 0,
                more_fragments: MoreFragments::No,
                payload: &[],
            },
            transport: Transport::Tcp {
                header,
                payload_len: segment.payload,
            },
        };
        let at = Wall::from_unix_nanos(1_700_000_000_000_000_000 + at_ms * 1_000_000);
        self.table.add_packet(at, &packet, &mut self.received);
        self.table.flush(&mut self.received);
    }

    fn end(mut self) -> Received {
        self.table.end(&mut self.received);
        assert!(self.table.is_empty());
        self.received
    }
}

const SYN: u8 = TcpHeader::SYN;
const ACK: u8 = TcpHeader::ACK;

fn segment(side: Side, port: u16, flags: u8, seq: u32, ack: u32) -> TestSegment {
    TestSegment {
        side,
        port,
        flags,
        numbers: (seq, ack),
        payload: 0,
    }
}

fn data(side: Side, port: u16, seq: u32, ack: u32, payload: u32) -> TestSegment {
    TestSegment {
        payload,
        ..segment(side, port, ACK, seq, ack)
    }
}

use Side::{Client, Server};

#[test]
fn the_path_and_the_server_processing_time_are_counted_separately() {
    let mut test = TestTable::new(Limits::default());
    test.add(0, segment(Client, 40_000, SYN, 99, 0));
    test.add(30, segment(Server, 40_000, SYN | ACK, 499, 100));
    test.add(40, segment(Client, 40_000, ACK, 100, 500));
    test.add(50, data(Client, 40_000, 100, 500, 10));
    // 30 ms of path and 60 of server processing.
    test.add(140, data(Server, 40_000, 500, 110, 10));
    let received = test.end();
    assert_eq!(received.ended.len(), 1);
    let (client, server, client_packets, server_packets) = received.ended[0];
    assert_eq!(
        (client.port(), server.port(), client_packets, server_packets),
        (40_000, 443, 3, 2)
    );
    assert_eq!(
        received.path.map(|path| path.p50),
        Some(Span::from_millis(30))
    );
    assert_eq!(
        received.server_processing.map(|quantiles| quantiles.p50),
        Some(Span::from_millis(90))
    );
}

#[test]
fn without_a_handshake_the_end_with_the_lower_port_is_the_server() {
    let mut test = TestTable::new(Limits::default());
    test.add(0, data(Server, 40_000, 500, 100, 10));
    let received = test.end();
    let (client, server, ..) = received.ended[0];
    assert_eq!((client.ip(), server.ip()), (CLIENT.into(), SERVER.into()));
}

#[test]
fn beyond_the_flow_limit_the_least_recently_active_flow_is_evicted() {
    let mut test = TestTable::new(Limits {
        max_flows: 2,
        ..Limits::default()
    });
    for (at, port) in [(0, 1001), (1, 1002), (2, 1001), (3, 1003)] {
        test.add(at, data(Client, port, 100, 500, 10));
    }
    assert_eq!(test.received.ended.len(), 1);
    assert_eq!(test.received.ended[0].0.port(), 1002);
    assert_eq!((test.table.len(), test.table.evicted()), (2, 1));
}

#[test]
fn an_idle_flow_ends_but_a_step_back_in_time_ends_none() {
    let mut test = TestTable::new(Limits {
        idle_timeout: Span::from_secs(10),
        ..Limits::default()
    });
    test.add(0, data(Client, 1001, 100, 500, 10));
    test.add(9_000, data(Client, 1002, 100, 500, 10));
    test.add(-60_000, data(Client, 1003, 100, 500, 10));
    assert_eq!(test.received.ended.len(), 0);
    test.add(10_500, data(Client, 1002, 110, 500, 10));
    assert_eq!(test.received.ended.len(), 1);
    assert_eq!(test.received.ended[0].0.port(), 1001);
}

#[test]
fn an_idle_flow_ends_after_its_timeout_without_further_packets() {
    let mut test = TestTable::new(Limits {
        idle_timeout: Span::from_secs(10),
        ..Limits::default()
    });
    test.add(0, data(Client, 1001, 100, 500, 10));
    test.end_idle(10_000);
    assert_eq!(test.received.ended.len(), 0);
    test.end_idle(10_001);
    assert_eq!(test.received.ended.len(), 1);
}

#[test]
fn a_new_connection_on_the_same_ports_is_a_new_flow() {
    let mut test = TestTable::new(Limits::default());
    test.add(0, segment(Client, 1001, SYN, 99, 0));
    // The SYN once more is of the same connection.
    test.add(1_000, segment(Client, 1001, SYN, 99, 0));
    test.add(2_000, segment(Client, 1001, SYN, 7_000, 0));
    let packets: Vec<u64> = test.end().ended.iter().map(|flow| flow.2).collect();
    assert_eq!(packets, [2, 1]);
}

#[test]
fn unanswered_packets_use_bounded_memory() {
    let limits = Limits {
        max_pending_bytes: 64 << 10,
        ..Limits::default()
    };
    let mut test = TestTable::new(limits);
    for round in 0..400 {
        for port in 1000..1100 {
            let seq = 100 + round * 10;
            test.add(i64::from(round), data(Client, port, seq, 500, 10));
        }
    }
    // The last to grow may double what it had, and each flow keeps its latest few.
    let latest_segments = 100 * 32 * 24;
    assert!(test.table.memory_bytes() < 100 * 2_048 + (64 << 10) * 2 + latest_segments);
    assert_eq!(test.end().ended.len(), 100);
}

proptest! {
    /// Whatever packets say and however times jump: as many packets as were seen, in flows that ended
    /// once, and never more flows than allowed.
    #[test]
    fn each_packet_is_counted_once(
        packets in prop::collection::vec(
            (any::<bool>(), 0_u16..6, any::<u8>(), any::<u32>(), any::<u32>(), 0_u32..3000, any::<i32>()),
            0..200,
        ),
        flows in 0_usize..5,
    ) {
        let mut test = TestTable::new(Limits { max_flows: flows, ..Limits::default() });
        let packet_count = packets.len() as u64;
        for (is_client, port, flags, seq, ack, payload, at) in packets {
            let side = if is_client { Client } else { Server };
            test.add(i64::from(at), TestSegment { payload, ..segment(side, port, flags, seq % 4096, ack % 4096) });
            prop_assert!(test.table.len() <= flows.max(1));
        }
        let counted_packets: u64 = test.end().ended.iter().map(|flow| flow.2 + flow.3).sum();
        prop_assert_eq!(counted_packets, packet_count);
    }
}
