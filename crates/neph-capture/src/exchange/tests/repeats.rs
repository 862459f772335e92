//! Requests that are asked again, or are too many to be followed.

use super::*;

#[test]
fn a_reused_number_is_a_new_request_and_the_first_stays_unanswered() {
    let mut test = TestExchanges::new(9);
    // Each fifth of the first round is not answered, and all of the second are.
    for number in 0..20 {
        let at = i64::from(number) * 1_000;
        test.add(at, &echo(true, number));
        if number % 5 > 0 {
            test.add(at + 10, &echo(false, number));
        }
    }
    for number in 0..20 {
        let at = 100_000 + i64::from(number) * 1_000;
        test.add(at, &echo(true, number));
        test.add(at + 10, &echo(false, number));
    }
    let exchange = test.end();
    assert_eq!(exchange.requests, (40, 36));
    assert_eq!(exchange.round_trips, Some((36, 10, 10)));
}

#[test]
fn pings_with_the_same_number_are_distinguished_by_payload() {
    let ping_with = |by_client: bool, content: u8| {
        let kind = if by_client { 8 } else { 0 };
        ipv4(by_client, 1, &[kind, 0, 0, 0, 0, 77, 0, 1, content])
    };
    let mut test = TestExchanges::new(9);
    test.add(0, &ping_with(true, 1));
    test.add(100, &ping_with(true, 2));
    test.add(130, &ping_with(false, 2));
    test.add(140, &ping_with(false, 1));
    let exchange = test.end();
    assert_eq!(
        (exchange.requests, exchange.round_trips),
        ((2, 2), Some((2, 30, 140)))
    );
}

/// A query for a name of one label, or its answer.
fn query(by_client: bool, label: u8) -> Vec<u8> {
    let flags = if by_client { 1 } else { 0x81 };
    let message = [
        0xab, 0xcd, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, label, 0, 0, 1, 0, 1,
    ];
    udp(by_client, 53, &message)
}

#[test]
fn a_repeated_query_counts_once_while_it_is_pending() {
    let mut test = TestExchanges::new(9);
    for at in [0, 5_000, 10_000] {
        test.add(at, &query(true, b'a'));
    }
    // Another name under the same number.
    test.add(10_001, &query(true, b'b'));
    test.add(10_004, &query(false, b'b'));
    test.add(100_000, &query(true, b'a'));
    test.add(100_007, &query(false, b'a'));
    let exchange = test.end();
    assert_eq!(
        (exchange.requests, exchange.round_trips),
        ((3, 2), Some((2, 3, 7)))
    );
}

#[test]
fn a_sample_of_many_pending_requests_represents_slow_answers_too() {
    let mut test = TestExchanges::new(9);
    let ping_numbered = |by_client: bool, number: u16| {
        let kind = if by_client { 8 } else { 0 };
        let [a, b] = number.to_be_bytes();
        ipv4(by_client, 1, &[kind, 0, 0, 0, 0, 77, a, b])
    };
    // One each millisecond, and each second answer takes 2 s longer: 5,000 wait at a time.
    let mut packets: Vec<(i64, bool, u16)> = Vec::new();
    for number in 0..20_000_u16 {
        let at = i64::from(number);
        let extra_delay = i64::from(number % 2) * 2_000;
        packets.push((at, true, number));
        packets.push((at + 4_000 + extra_delay, false, number));
    }
    packets.sort_unstable();
    for (at, by_client, number) in packets {
        test.add(at, &ping_numbered(by_client, number));
    }
    let mut total_counts = None;
    test.exchanges
        .end(|pair| total_counts = Some(pair.counts()));
    let total = total_counts.expect("a pair");
    assert_eq!(
        (total.requests(), total.responses_without_request()),
        (20_000, 0)
    );
    assert_eq!(total.answered() + total.requests_not_tracked(), 20_000);
    let round_trips = total.round_trips(Half::Server).expect("some");
    assert!(
        round_trips.n > 1_000 && round_trips.n == total.answered(),
        "{round_trips:?}"
    );
    assert!(
        (18_000..22_000).contains(&round_trips.estimated),
        "{round_trips:?}"
    );
    assert!(
        (4_900..5_100).contains(&(round_trips.mean.nanos() / 1_000_000)),
        "{round_trips:?}"
    );
}
