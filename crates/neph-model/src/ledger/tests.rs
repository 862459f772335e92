#![expect(
    clippy::unnecessary_wraps,
    reason = "reads as the marks do: present or absent"
)]

use super::*;
use crate::{Peer, PeerMarks};

fn instant(nanos: i64) -> Option<Instant<Local>> {
    Some(Instant::from_nanos(nanos))
}
fn peer(nanos: i64) -> Option<Instant<Peer>> {
    Some(Instant::from_nanos(nanos))
}

/// A message with every timestamp; the peer's clock is 1,000,000 ahead.
fn complete() -> Marks {
    Marks {
        intended: Instant::from_nanos(0),
        dialled: instant(2),
        connected: instant(42),
        opened: instant(90),
        app_send: instant(91),
        queued: instant(95),
        nic_tx: instant(97),
        acked: instant(140),
        peer: PeerMarks {
            rx: peer(1_000_117),
            app_rx: peer(1_000_120),
            app_tx: peer(1_000_180),
            nic_tx: peer(1_000_182),
        },
        nic_rx: instant(203),
        app_recv: instant(210),
    }
}

fn lines(marks: &Marks) -> Vec<(String, i64)> {
    let ledger = Ledger::of(marks).expect("there is a reply");
    ledger
        .entries()
        .iter()
        .map(|e| (e.stages.to_string(), e.time().nanos()))
        .collect()
}

#[test]
fn all_stages_of_a_complete_message_are_listed() {
    let expected = [
        ("schedule lateness", 2),
        ("connect", 40),
        ("handshake", 48),
        ("compose", 1),
        ("send window", 4),
        ("send queue", 2),
        ("network", 41),
        ("peer kernel", 3),
        ("peer application", 60),
        ("peer send", 2),
        ("client kernel", 7),
    ];
    let lines = lines(&complete());
    assert_eq!(lines, expected.map(|(name, time)| (name.to_owned(), time)));
}

#[test]
fn one_way_delays_have_their_error_bound() {
    let offset = ClockOffset::new(Span::from_nanos(1_000_000), Span::from_nanos(5));
    let (forward, reverse) = Ledger::directions(&complete(), offset).expect("four marks");
    assert_eq!((forward.delay.nanos(), reverse.delay.nanos()), (20, 21));
    assert_eq!(forward.bound, Span::from_nanos(5));
}

#[test]
fn a_third_party_server_leaves_network_and_peer_in_one_stage() {
    let mut marks = complete();
    marks.peer = PeerMarks::default();
    let lines = lines(&marks);
    let merged = (
        "network + peer kernel + peer application + peer send".to_owned(),
        106,
    );
    assert!(lines.contains(&merged), "{lines:?}");
}

#[test]
fn the_ledger_of_a_connect_ends_at_establishment() {
    let mut marks = Marks::intended_at(Instant::from_nanos(0));
    (marks.dialled, marks.connected, marks.app_recv) = (instant(3), instant(43), instant(43));
    let expected = [("schedule lateness", 3), ("connect", 40)];
    assert_eq!(
        lines(&marks),
        expected.map(|(name, time)| (name.to_owned(), time))
    );
}

#[test]
fn without_a_reply_there_is_no_ledger() {
    let mut marks = complete();
    marks.app_recv = None;
    assert_eq!(Ledger::of(&marks), None);
}

/// For any missing timestamps, the entries add up and every stage is covered exactly once.
#[test]
fn the_sum_is_exact_for_every_combination_of_absent_timestamps() {
    for absent in 0_u32..1 << 11 {
        let missing = |bit: u32| absent & (1 << bit) != 0;
        let mut marks = complete();
        let own_marks = [
            &mut marks.connected,
            &mut marks.opened,
            &mut marks.app_send,
            &mut marks.queued,
            &mut marks.nic_tx,
            &mut marks.nic_rx,
            &mut marks.dialled,
        ];
        for (mark, bit) in own_marks.into_iter().zip(0..) {
            if missing(bit) {
                *mark = None;
            }
        }
        let peer_marks = [
            &mut marks.peer.rx,
            &mut marks.peer.app_rx,
            &mut marks.peer.app_tx,
            &mut marks.peer.nic_tx,
        ];
        for (mark, bit) in peer_marks.into_iter().zip(7..) {
            if missing(bit) {
                *mark = None;
            }
        }
        let ledger = Ledger::of(&marks).expect("there is a reply");
        let sum: Span = ledger.entries().iter().map(Entry::time).sum();
        assert_eq!(sum, ledger.response_time(), "absent {absent:011b}");
        for stage in Stage::ALL {
            let times = ledger
                .entries()
                .iter()
                .filter(|e| e.stages.contains(stage))
                .count();
            assert!(
                times <= 1,
                "{stage} told {times} times, absent {absent:011b}"
            );
        }
    }
}

/// For any timestamps of a peer and any clock steps: no time is negative, and they add up.
#[test]
fn no_stage_is_negative_for_any_timestamps() {
    let mut state = 7_u64;
    let mut random = |max: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        i64::try_from((state >> 33) % max).expect("small")
    };
    for _ in 0..100_000 {
        let mut marks = Marks::intended_at(Instant::from_nanos(random(20)));
        let mut any = |ahead: i64| (random(4) > 0).then(|| random(100) + ahead);
        let mut client_time = || any(0).map(Instant::from_nanos);
        marks.dialled = client_time();
        marks.connected = client_time();
        marks.opened = client_time();
        marks.app_send = client_time();
        marks.queued = client_time();
        marks.nic_tx = client_time();
        marks.nic_rx = client_time();
        marks.app_recv = client_time();
        let mut peer_time = || any(1_000).map(Instant::from_nanos);
        marks.peer.rx = peer_time();
        marks.peer.app_rx = peer_time();
        marks.peer.app_tx = peer_time();
        marks.peer.nic_tx = peer_time();
        let Some(ledger) = Ledger::of(&marks) else {
            continue;
        };
        let times = || ledger.entries().iter().map(Entry::time);
        assert!(times().all(|time| time >= Span::ZERO), "{marks:?}");
        assert_eq!(times().sum::<Span>(), ledger.response_time(), "{marks:?}");
    }
}
