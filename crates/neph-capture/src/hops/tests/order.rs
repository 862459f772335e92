//! Packets that were reordered between two points.

use super::*;

#[test]
fn a_packet_that_leaves_after_a_later_one_is_reordered() {
    let first: Vec<_> = (0..4)
        .map(|number| (i64::from(number), datagram(number, 1, 2)))
        .collect();
    let order = [0_u16, 2, 3, 1];
    let second: Vec<_> = (10..)
        .zip(order)
        .map(|(at, number)| (at, datagram(number, 1, 2)))
        .collect();
    let followed = follow(&[&first, &second]);
    let out_of_order: Vec<bool> = followed
        .passages()
        .map(|passage| passage.is_reordered(0))
        .collect();
    assert_eq!(out_of_order, [false, true, false, false]);
}

/// Four datagrams of a flow by a point that has these stamps of them, in the order of its capture.
fn datagrams_at(timestamps: [(i64, u16); 4]) -> Vec<(i64, Vec<u8>)> {
    let observed = timestamps.map(|(at, number)| (at, datagram(number, 1, 2)));
    observed.into()
}

fn out_of_order(first: [(i64, u16); 4], second: [(i64, u16); 4]) -> Vec<bool> {
    let followed = follow(&[&datagrams_at(first), &datagrams_at(second)]);
    let mut passages: Vec<Passage> = followed.passages().collect();
    passages.sort_by_key(|passage| passage.passed_at(0));
    passages
        .iter()
        .map(|passage| passage.is_reordered(0))
        .collect()
}

#[test]
fn reordering_is_detected_by_timestamps_and_not_by_file_order() {
    let none = [false; 4];
    let departures = [(0, 0), (1, 1), (2, 2), (3, 3)];
    // Two processors: what one of them saw stands behind what the other did.
    let arrivals = [(10, 0), (12, 2), (11, 1), (13, 3)];
    assert_eq!(out_of_order(departures, arrivals), none);
    let swapped_departures = [(0, 0), (2, 2), (1, 1), (3, 3)];
    assert_eq!(out_of_order(swapped_departures, arrivals), none);
    assert_eq!(
        out_of_order(swapped_departures, [(10, 0), (11, 1), (12, 2), (13, 3)]),
        none
    );
    let late_arrivals = [(10, 0), (13, 1), (11, 2), (12, 3)];
    assert_eq!(
        out_of_order(departures, late_arrivals),
        [false, true, false, false]
    );
    // At one moment, at either point.
    assert_eq!(
        out_of_order(departures, [(10, 0), (11, 2), (11, 1), (13, 3)]),
        none
    );
    let simultaneous_departures = [(0, 0), (1, 1), (1, 2), (3, 3)];
    assert_eq!(
        out_of_order(simultaneous_departures, late_arrivals),
        [false, true, false, false]
    );
    assert_eq!(
        out_of_order(
            simultaneous_departures,
            [(10, 0), (12, 1), (11, 2), (13, 3)]
        ),
        none
    );
}

#[test]
fn a_clock_set_back_causes_no_reordering() {
    const MILLI: i64 = 1_000_000;
    let departures = [(0, 0), (1, 1), (2, 2), (3, 3)].map(|(at, number)| (at * MILLI, number));
    let arrivals = [(50, 0), (51, 1), (22, 2), (23, 3)].map(|(at, number)| (at * MILLI, number));
    assert_eq!(out_of_order(departures, arrivals), [false; 4]);
}
