//! Fleets of SYNs between two namespaces, and of messages on established connections.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use neph_model::{FleetMessage, FleetOutcome, ProbeKind, ReadBy, ReflectorSpec, Span, Stop};
use neph_probe::{FleetRun, FleetSpec, Reflector, Sharing};

use super::PORT;
use super::pair::{Pair, Side};
use crate::fleet::{Reported, fleet, measure};
use crate::loopback::reflector;
use crate::support::{eventually, has, skip};

fn syns(pair: &Pair, host: &str, (slots, count): (u32, u64)) -> FleetSpec {
    let address: SocketAddr = format!("{host}:{PORT}").parse().expect("an address");
    let mut spec = fleet(address, slots, count);
    spec.fleet.probe = ProbeKind::Syn;
    spec.site = Some(pair.placement(Side::Ours));
    spec
}

fn by_kernel(result: &Reported) -> usize {
    let replies = result.messages.iter().filter_map(FleetMessage::reply);
    replies
        .filter(|reply| reply.read_by == ReadBy::Kernel)
        .count()
}

#[test]
fn a_fleet_of_syns_is_answered_on_every_port_and_leaves_nothing_half_open() {
    let Some(pair) = Pair::new("fleet") else {
        return;
    };
    let _listener = pair.listen(PORT);
    for host in ["10.98.0.2", "[fd00:98::2]"] {
        let before = pair.attempts_failed(Side::Theirs);
        let result = measure(syns(&pair, host, (64, 20)));
        assert_eq!(result.sharing, Some(Sharing::SharedSockets));
        assert_eq!(result.tally.replies, 1280, "{host}: {:?}", result.tally);
        assert_eq!((result.tally.copies, result.tally.dropped_here), (0, 0));
        assert!(by_kernel(&result) >= 1270, "{host}: {}", by_kernel(&result));
        let ports: BTreeSet<u16> = result
            .messages
            .iter()
            .map(|message| message.source_port)
            .collect();
        assert_eq!(ports, result.sources.iter().copied().collect());
        for message in &result.messages {
            let FleetOutcome::Reply(reply) = message.outcome else {
                panic!("{message:?}");
            };
            assert_eq!((reply.ttl, reply.peer_report), (Some(64), None));
        }
        eventually("no half-open connection is left", || {
            pair.connections(PORT) == (0, 0)
        });
        assert_eq!(pair.attempts_failed(Side::Theirs) - before, 1280);
    }
}

#[test]
fn syns_with_lost_answers_leave_no_half_open_connection() {
    let Some(pair) = Pair::new("lostack") else {
        return;
    };
    if !has("nft", "--version") {
        return skip("SYN-ACKs that are lost", "nft is missing");
    }
    let _listener = pair.listen(PORT);
    pair.nft(
        Side::Ours,
        "table inet t { chain in { type filter hook input priority 0; \
         tcp flags & (syn | ack) == syn | ack counter drop; }; }",
    );
    let mut spec = syns(&pair, "10.98.0.2", (8, 5));
    spec.timeout = Span::from_millis(200);
    let result = measure(spec);
    assert_eq!((result.tally.lost, result.tally.replies), (40, 0));
    eventually("no half-open connection is left", || {
        pair.connections(PORT) == (0, 0)
    });
    let (messages, tally) =
        crate::loopback::measure(super::syn(&pair, "10.98.0.2", (Span::from_millis(50), 4)));
    assert_eq!((tally.lost, messages.len()), (4, 4));
    eventually("no half-open connection is left", || {
        pair.connections(PORT) == (0, 0)
    });
}

#[test]
fn a_fleet_of_syns_to_a_closed_port_is_answered_by_rst_and_renews_its_ports() {
    let Some(pair) = Pair::new("shut") else {
        return;
    };
    let mut spec = syns(&pair, "10.98.0.2", (16, 12));
    spec.fleet.lifetime = Some(Span::from_millis(200));
    let result = measure(spec);
    assert_eq!((result.tally.replies, result.tally.lost), (192, 0));
    let ports: BTreeSet<u16> = result
        .messages
        .iter()
        .map(|message| message.source_port)
        .collect();
    assert!(ports.len() >= 48, "{}", ports.len());
}

#[test]
fn ports_that_somebody_uses_are_left_alone() {
    let Some(pair) = Pair::new("used") else {
        return;
    };
    let _used = [23_001, 23_003].map(|port| pair.listen_at(Side::Ours, port));
    let mut spec = syns(&pair, "10.98.0.2", (4, 2));
    spec.first_port = Some(23_000);
    let result = measure(spec);
    assert_eq!(result.sources, [23_000, 23_002, 23_004, 23_005]);
    assert_eq!(result.tally.replies, 8);
}

#[test]
fn established_connections_answer_every_message_with_the_reflectors_residence() {
    let reflector = reflector(Span::from_millis(2));
    let mut spec = fleet(reflector.address(), 16, 10);
    spec.fleet.probe = ProbeKind::Tcp;
    let result = measure(spec);
    assert_eq!(result.sharing, Some(Sharing::SocketPerFlow));
    assert_eq!(result.tally.replies, 160, "{:?}", result.tally);
    assert!(by_kernel(&result) >= 150, "{}", by_kernel(&result));
    for message in &result.messages {
        let reply = message.reply().expect("TCP loses nothing");
        let peer = reply.peer_report.expect("our reflector tells");
        assert!(peer.residence >= Span::from_millis(2));
        assert!(reply.network() > Span::ZERO && reply.network() < Span::from_millis(500));
    }
}

#[test]
fn established_connections_are_renewed_on_new_ports_without_losing_a_message() {
    let reflector = reflector(Span::ZERO);
    let mut spec = fleet(reflector.address(), 8, 12);
    spec.fleet.probe = ProbeKind::Tcp;
    spec.fleet.lifetime = Some(Span::from_millis(200));
    let result = measure(spec);
    assert_eq!(result.tally.replies, 96, "{:?}", result.tally);
    let ports: BTreeSet<u16> = result
        .messages
        .iter()
        .map(|message| message.source_port)
        .collect();
    assert!(ports.len() >= 24, "{}", ports.len());
}

#[test]
fn a_connection_that_breaks_is_made_anew_from_the_same_port() {
    let Some(pair) = Pair::new("broken") else {
        return;
    };
    let start = || {
        let wildcard = ReflectorSpec::at(SocketAddr::from(([0, 0, 0, 0], PORT)));
        Reflector::start_in(&wildcard, &pair.placement(Side::Theirs)).expect("the port is free")
    };
    let mut spec = syns(&pair, "10.98.0.2", (4, 80));
    spec.fleet.probe = ProbeKind::Tcp;
    let first = start();
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| measure(spec));
        eventually("connections stand", || pair.connections(PORT).1 >= 4);
        first.stop();
        let _second = start();
        run.join().expect("the fleet ran")
    });
    let tally = run.tally;
    assert!(tally.failed > 0 && tally.replies > 160, "{tally:?}");
    let last = run.messages.iter().filter(|message| message.seq >= 70);
    assert!(last.clone().count() == 40 && last.clone().all(|message| message.reply().is_some()));
    let ports: BTreeSet<u16> = run
        .messages
        .iter()
        .map(|message| message.source_port)
        .collect();
    assert_eq!(ports.len(), 4);
}

#[test]
fn a_tcp_fleet_without_a_reflector_fails_with_the_remedy() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("bound");
    drop(silent);
    let mut spec = fleet(address, 4, 3);
    spec.fleet.probe = ProbeKind::Tcp;
    let run = FleetRun::start(spec, Stop::new()).expect("a fleet that can be");
    let message = run.join().expect_err("nobody is there").to_string();
    assert!(
        message.contains("need a neph reflector") && message.contains("use syn"),
        "{message}"
    );
}

/// 50,000 ports once a second each, for `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn fifty_thousand_ports_from_one_thread() {
    let Some(pair) = Pair::new("scale") else {
        return;
    };
    let _listener = pair.listen(PORT);
    let median = |result: &Reported| {
        let replies = result.messages.iter().filter_map(FleetMessage::reply);
        let mut round_trips: Vec<i64> = replies.map(|reply| reply.round_trip.nanos()).collect();
        round_trips.sort_unstable();
        round_trips.get(round_trips.len() / 2).copied()
    };
    for (slots, millis, count) in [
        (1, 200, 25),
        (512, 200, 50),
        (512, 5, 1000),
        (50_000, 1000, 10),
    ] {
        let mut spec = syns(&pair, "10.98.0.2", (slots, count));
        spec.fleet.interval = Span::from_millis(millis);
        spec.timeout = Span::from_secs(2);
        let before = pair.attempts_failed(Side::Theirs);
        let result = measure(spec);
        let failed = pair.attempts_failed(Side::Theirs) - before;
        let (tally, median) = (result.tally, median(&result));
        println!("{slots} x {millis} ms: median {median:?} ns, broken off {failed}, {tally:?}");
        assert_eq!(pair.connections(PORT).1, 0);
    }
    eventually("no half-open connection is left", || {
        pair.connections(PORT) == (0, 0)
    });
}
