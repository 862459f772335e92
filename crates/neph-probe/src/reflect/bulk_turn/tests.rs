use super::*;

fn at(millis: i64) -> Instant<Local> {
    Instant::from_nanos(millis * 1_000_000)
}

fn peer(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn bulk_gate() -> Arc<BulkGate> {
    Arc::default()
}

/// When the holder loses its turn that does `bytes` each 100 ms, and why.
fn lost(turn: &BulkTurn, from: i64, bytes: u64) -> Option<(i64, Counted)> {
    (1..=400).find_map(|tick| {
        let now = from + tick * 100;
        let done = bytes * tick.cast_unsigned();
        turn.progress(done, at(now))
            .map(|reason| (now - from, reason))
    })
}

#[test]
fn bulk_transfers_run_one_at_a_time_in_request_order() {
    let bulk_gate = bulk_gate();
    let ask = |last| bulk_gate.ask(peer(last), at(0)).expect("there is a place");
    let (first, second, third) = (ask(1), ask(2), ask(3));
    assert!(first.has_come(at(1)) && !second.has_come(at(1)));
    drop(first);
    assert!(!third.has_come(at(2)) && second.has_come(at(2)));
    drop(third);
    drop(second);
    assert!(ask(1).has_come(at(3)));
}

#[test]
fn an_idle_transfer_keeps_its_turn_while_the_queue_is_empty() {
    let bulk_gate = bulk_gate();
    let turn = bulk_gate.ask(peer(1), at(0)).expect("there is a place");
    assert_eq!(lost(&turn, 0, 0), None);
}

#[test]
fn a_silent_transfer_loses_its_turn_to_a_waiting_one() {
    let bulk_gate = bulk_gate();
    let silent = bulk_gate.ask(peer(1), at(0)).expect("there is a place");
    assert_eq!(silent.progress(1_000_000, at(100)), None);
    let waits = bulk_gate.ask(peer(2), at(200)).expect("there is a place");
    let reason = lost(&silent, 100, 0).expect("lost");
    assert_eq!(reason, (SILENCE.nanos() / 1_000_000, Counted::BulkStalled));
    drop(silent);
    assert!(waits.has_come(at(2_000)));
}

#[test]
fn a_trickling_transfer_loses_its_turn_sooner_than_a_slow_one() {
    for (bytes, expected) in [
        (10, (2_000, Counted::BulkStalled)),
        (800, (10_000, Counted::BulkShared)),
        (1_000_000, (10_000, Counted::BulkShared)),
    ] {
        let bulk_gate = bulk_gate();
        let turn = bulk_gate.ask(peer(1), at(0)).expect("there is a place");
        let _waits = bulk_gate.ask(peer(2), at(0)).expect("there is a place");
        assert_eq!(lost(&turn, 0, bytes), Some(expected), "{bytes}");
    }
}

/// An address that asks over and over gets the turn after all others, not before them.
#[test]
fn served_connections_queue_behind_unserved_ones() {
    let bulk_gate = bulk_gate();
    let ask = |last, now| {
        bulk_gate
            .ask(peer(last), at(now))
            .expect("there is a place")
    };
    let repeat_peer = ask(1, 0);
    let first_time_peer = ask(2, 10);
    drop(repeat_peer);
    let repeat_peer = ask(1, 20);
    let another = ask(3, 30);
    assert!(first_time_peer.has_come(at(40)));
    drop(first_time_peer);
    assert!(!repeat_peer.has_come(at(50)) && another.has_come(at(50)));
    drop(another);
    assert!(repeat_peer.has_come(at(60)));
}

#[test]
fn an_address_has_one_queue_place_and_the_queue_is_bounded() {
    let bulk_gate = bulk_gate();
    let _first = bulk_gate.ask(peer(1), at(0)).expect("there is a place");
    assert_eq!(bulk_gate.ask(peer(1), at(1)).err(), Some(NoPlace));
    let v6 = |text: &str| bulk_gate.ask(text.parse().expect("an address"), at(1));
    let _v6 = v6("2001:db8::1").expect("there is a place");
    assert_eq!(v6("2001:db8::2").err(), Some(NoPlace), "of the same /64");
    assert_eq!(v6("::ffff:192.0.2.1").err(), Some(NoPlace));
    let last = u8::try_from(MAX_WAITING).expect("few") + 1;
    let others: Vec<_> = (3..=last)
        .map(|last| bulk_gate.ask(peer(last), at(2)))
        .collect();
    assert!(others.iter().all(Result::is_ok));
    assert_eq!(bulk_gate.ask(peer(200), at(3)).err(), Some(NoPlace));
}

#[test]
fn a_56_network_takes_at_most_four_queue_places() {
    let bulk_gate = bulk_gate();
    let host = |number: u16| {
        format!("2001:db8:0:{number:x}::1")
            .parse()
            .expect("an address")
    };
    let mut turns: Vec<BulkTurn> = Vec::new();
    turns.extend((0..256).filter_map(|number| bulk_gate.ask(host(number), at(0)).ok()));
    assert_eq!(turns.len(), MAX_OF_A_SITE);
    assert!(bulk_gate.ask(host(0x100), at(0)).is_ok(), "another /56");
    assert!(bulk_gate.ask(peer(1), at(0)).is_ok(), "an IPv4 address");
}
