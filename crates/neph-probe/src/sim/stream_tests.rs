use std::collections::BTreeMap;

use neph_model::{Ledger, Outcome, Span, Stage, TlsVersion};

use super::stream::{Outcomes, Truth, World, foreign};
use super::{Net, PEER_AHEAD, proved, spec};
use crate::spec::{ConnectionUse, FlowSpec, Trust};

const MS: i64 = 1_000_000;

const QUIET: Net = Net {
    forward_delay: 15 * MS,
    reverse_delay: 5 * MS,
    jitter: 3 * MS,
    kernel: 20_000,
    think: 700_000,
    loss: 0,
    duplicates: 0,
    stalls: 0,
    resets: 0,
    partial: 0,
};

fn run(spec: &FlowSpec, net: Net, seed: u64) -> Outcomes {
    World::new(spec, net, seed).run()
}

/// Each message once, in order, and counted as what it is.
fn assert_complete(outcomes: &Outcomes, count: u64) {
    let numbers: Vec<u64> = outcomes.messages.iter().map(|m| m.seq.0).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    let of = |outcome| {
        outcomes
            .messages
            .iter()
            .filter(|m| m.outcome == outcome)
            .count() as u64
    };
    let tally = outcomes.tally;
    assert_eq!(
        (tally.messages, tally.replies, tally.lost, tally.failed),
        (
            count,
            of(Outcome::Reply),
            of(Outcome::Lost),
            of(Outcome::Failed)
        )
    );
    assert_eq!((tally.duplicates, tally.late), (0, 0));
}

/// Every mark that is there is the truth, and every ledger adds up; returns how many are complete.
fn assert_true(outcomes: &Outcomes) -> usize {
    let mut nth: BTreeMap<u32, usize> = BTreeMap::new();
    let mut complete = 0;
    for message in &outcomes.messages {
        let marks = &message.marks;
        if marks.app_send.is_none() {
            assert_eq!(message.outcome, Outcome::Failed, "it never left");
            continue;
        }
        let exchange = nth.entry(message.connection).or_insert(0);
        let truth = outcomes.truth[&message.connection].get(*exchange).copied();
        *exchange += 1;
        let Some(ledger) = message.ledger() else {
            continue;
        };
        let truth = truth.expect("a reply to what was wholly written");
        let observed = [
            (marks.nic_tx.map(neph_model::Instant::nanos), truth.nic_tx),
            (marks.acked.map(neph_model::Instant::nanos), truth.acked),
            (peer(marks.peer.rx), truth.peer_rx),
            (peer(marks.peer.app_rx), truth.peer_app_rx),
            (peer(marks.peer.app_tx), truth.peer_app_tx),
            (peer(marks.peer.nic_tx), truth.peer_nic_tx),
            (marks.nic_rx.map(neph_model::Instant::nanos), truth.nic_rx),
            (
                marks.app_recv.map(neph_model::Instant::nanos),
                truth.app_recv,
            ),
        ];
        for (index, (mark, true_mark)) in observed.iter().enumerate() {
            assert!(
                mark.is_none_or(|mark| mark == *true_mark),
                "{index}: {mark:?} {truth:?}"
            );
        }
        assert_sum(&ledger);
        complete += usize::from(assert_stages(&ledger, &truth));
    }
    complete
}

fn peer(mark: Option<neph_model::Instant<neph_model::Peer>>) -> Option<i64> {
    mark.map(|mark| mark.nanos() - PEER_AHEAD)
}

fn assert_sum(ledger: &Ledger) {
    let sum: Span = ledger.entries().iter().map(neph_model::Entry::time).sum();
    assert_eq!(sum, ledger.response_time());
}

/// Whether all stages stand alone; then each is what the simulation injected, to the nanosecond.
fn assert_stages(ledger: &Ledger, truth: &Truth) -> bool {
    let injected = [
        (
            Stage::Network,
            truth.peer_rx - truth.nic_tx + truth.nic_rx - truth.peer_nic_tx,
        ),
        (Stage::PeerKernel, truth.peer_app_rx - truth.peer_rx),
        (Stage::PeerApp, truth.peer_app_tx - truth.peer_app_rx),
        (Stage::PeerSend, truth.peer_nic_tx - truth.peer_app_tx),
        (Stage::OwnKernel, truth.app_recv - truth.nic_rx),
    ];
    let measured_stages = injected.map(|(stage, _)| ledger.stage(stage));
    if measured_stages.contains(&None) {
        return false;
    }
    for ((stage, injected), measured) in injected.into_iter().zip(measured_stages) {
        assert_eq!(measured, Some(Span::from_nanos(injected)), "{stage}");
    }
    true
}

#[test]
fn on_an_ideal_network_every_ledger_is_complete_and_exact() {
    for url in ["tcp://h:9", "ws://h:9", "wss://h:9"] {
        let spec = spec(url, 2_000, Span::from_millis(1));
        let outcomes = run(&spec, QUIET, 1);
        assert_complete(&outcomes, 2_000);
        assert_eq!(outcomes.tally.replies, 2_000, "{url}");
        assert_eq!(assert_true(&outcomes), 2_000, "{url}");
    }
}

#[test]
fn http_uses_one_connection_per_outstanding_request() {
    let spec = spec("http://h:9", 2_000, Span::from_millis(1));
    let outcomes = run(&spec, QUIET, 2);
    assert_complete(&outcomes, 2_000);
    assert_eq!(outcomes.tally.replies, 2_000);
    let complete = assert_true(&outcomes);
    let connections = outcomes.truth.len();
    assert!((20..200).contains(&connections), "{connections}");
    assert_eq!(complete, 2_000);
}

#[test]
fn with_one_connection_per_message_each_tx_timestamp_arrives_with_the_next_reply() {
    for url in ["http://h:9", "ws://h:9", "https://h:9"] {
        let mut spec = spec(url, 500, Span::from_millis(3));
        spec.connection_use = ConnectionUse::PerMessage;
        let outcomes = run(&spec, QUIET, 9);
        assert_complete(&outcomes, 500);
        assert_eq!(assert_true(&outcomes), 500, "{url}");
    }
}

#[test]
fn one_way_delays_are_exact_within_the_clock_error_bound() {
    let spec = spec("ws://h:9", 2_000, Span::from_millis(1));
    let outcomes = run(&spec, QUIET, 3);
    let marks = outcomes.messages.iter().map(|message| &message.marks);
    let offset = proved(marks).expect("all four marks are there");
    let error = (offset.value() - Span::from_nanos(PEER_AHEAD)).abs();
    assert!(error <= offset.bound(), "{error} beyond {}", offset.bound());
    for (message, truth) in outcomes.messages.iter().zip(&outcomes.truth[&0]) {
        let (forward, reverse) =
            Ledger::directions(&message.marks, offset).expect("marks are there");
        let injected = [
            truth.peer_rx - truth.nic_tx,
            truth.nic_rx - truth.peer_nic_tx,
        ];
        for (one_way, injected) in [forward, reverse].into_iter().zip(injected) {
            let error = (one_way.delay - Span::from_nanos(injected)).abs();
            assert!(error <= one_way.bound, "{error}");
        }
    }
}

/// Resets at random moments, stalls longer than an interval, sockets that take a part: whatever
/// happens, each message is decided once and no mark is wrong.
#[test]
fn every_message_is_decided_once_despite_connection_failures() {
    let net = Net {
        stalls: 5,
        resets: 4,
        partial: 100,
        ..QUIET
    };
    let uses = [ConnectionUse::Lasting, ConnectionUse::PerMessage];
    let mut resets = 0;
    for (seed, url) in (0..).zip(["tcp://h:9", "ws://h:9", "http://h:9", "wss://h:9"]) {
        for connection_use in uses {
            let mut spec = spec(url, 2_000, Span::from_millis(2));
            spec.connection_use = connection_use;
            let outcomes = run(&spec, net, seed);
            assert_complete(&outcomes, 2_000);
            assert_true(&outcomes);
            let tally = outcomes.tally;
            assert!(tally.replies > 300, "{url} {connection_use:?} {tally:?}");
            assert!(tally.lost > 0, "{url} {connection_use:?} {tally:?}");
            resets += outcomes.resets;
        }
    }
    assert!(resets > 50, "{resets} resets prove little");
}

/// The same for servers that are no reflector: a reply that carries no number answers its own request.
#[test]
fn a_third_party_server_answers_each_message_once_despite_failures() {
    let net = Net {
        stalls: 5,
        resets: 4,
        partial: 100,
        ..QUIET
    };
    for (seed, url) in (0..).zip(foreign::targets()) {
        for connection_use in [ConnectionUse::Lasting, ConnectionUse::PerMessage] {
            for net in [QUIET, net] {
                let mut spec = spec(url, 1_000, Span::from_millis(2));
                (spec.connection_use, spec.reflector) = (connection_use, false);
                let outcomes = run(&spec, net, seed);
                assert_complete(&outcomes, 1_000);
                assert_eq!(assert_true(&outcomes), 0, "no peer timestamps");
                let tally = outcomes.tally;
                if outcomes.resets == 0 {
                    assert_eq!(tally.replies, 1_000, "{url} {connection_use:?} {tally:?}");
                }
                assert!(tally.replies > 150, "{url} {connection_use:?} {tally:?}");
            }
        }
    }
}

#[test]
fn an_interval_far_below_the_rtt_keeps_its_schedule() {
    let spec = spec("ws://h:9", 20_000, Span::from_micros(20));
    let net = Net {
        kernel: 2_000,
        think: 5_000,
        ..QUIET
    };
    let outcomes = run(&spec, net, 5);
    assert_complete(&outcomes, 20_000);
    assert_eq!(assert_true(&outcomes), 20_000);
}

#[test]
fn a_tcp_connect_probe_is_one_message() {
    let mut spec = spec("tcp://h:9", 500, Span::from_millis(1));
    spec.reflector = false;
    let outcomes = run(&spec, Net { kernel: 0, ..QUIET }, 6);
    assert_complete(&outcomes, 500);
    for message in &outcomes.messages {
        let ledger = message.ledger().expect("connected");
        assert_sum(&ledger);
        assert_eq!(
            ledger.stage(Stage::Connect),
            Some(Span::from_nanos(20 * MS))
        );
    }
}

/// Connect 1, TLS 1.3 1, TLS 1.2 2, upgrade 1, exchange 1: exactly, where nothing but the path takes time.
#[test]
fn each_protocol_takes_its_expected_number_of_round_trips() {
    let net = Net {
        forward_delay: 20 * MS,
        reverse_delay: 20 * MS,
        ..Net::default()
    };
    let rtt = Span::from_millis(40);
    let cases = [
        ("http://h:9", None, None),
        ("https://h:9", Some(TlsVersion::V13), Some(rtt)),
        ("https://h:9", Some(TlsVersion::V12), Some(rtt.times(2))),
        ("ws://h:9", None, Some(rtt)),
        ("wss://h:9", Some(TlsVersion::V13), Some(rtt.times(2))),
    ];
    for (url, version, handshake) in cases {
        let mut spec = spec(url, 20, Span::from_millis(500));
        spec.connection_use = ConnectionUse::PerMessage;
        spec.tls_version = version;
        let outcomes = run(&spec, net, 7);
        assert_complete(&outcomes, 20);
        for message in &outcomes.messages {
            let ledger = message.ledger().expect("replied to");
            assert_eq!(ledger.stage(Stage::Connect), Some(rtt), "{url}");
            let handshake_value = ledger.stage(Stage::Handshake);
            assert_eq!(handshake_value, handshake, "{url} {version:?}");
            let before = rtt + handshake.unwrap_or(Span::ZERO);
            assert_eq!(ledger.response_time() - before, rtt, "{url} {version:?}");
        }
    }
}

#[test]
fn an_untrusted_certificate_is_reported_as_such() {
    let mut spec = spec("wss://localhost:9", 3, Span::from_millis(500));
    spec.trust = Trust::Public;
    let outcomes = run(&spec, QUIET, 8);
    assert_complete(&outcomes, 3);
    assert_eq!(outcomes.tally.failed, 3);
    let text = &outcomes.texts[0];
    assert!(text.contains("certificate is not trusted"), "{text}");
}
