use neph_model::{FleetOutcome, Slot};

use super::*;
use crate::world::World;

const WIDTH: Span = Span::from_secs(20);

fn default_bins() -> Bins {
    let settings = Settings::default();
    let fleet = World::default().fleet();
    Bins::new(Instant::from_nanos(0), &settings, &fleet)
}

fn push(bins: &mut Bins, flow: (u32, u16), millis: i64, round_trip: Span) {
    push_latency(bins, flow, millis, Latency::Took(round_trip));
}

fn latencies(bin: &Bin) -> [Option<Span>; 5] {
    bin.latency
        .map(|latency| latency.map(CompactRtt::span).took())
}

fn push_latency(bins: &mut Bins, (slot, port): (u32, u16), millis: i64, latency: Latency) {
    let message = FleetMessage {
        slot: Slot(slot),
        source_port: port,
        seq: 0,
        sent: Instant::from_nanos(millis * 1_000_000),
        late: Span::ZERO,
        outcome: FleetOutcome::Lost,
    };
    bins.push(slot, &message, latency);
}

#[test]
fn each_flow_counts_once_with_its_median() {
    let mut bins = default_bins();
    // Flow 0: 10 ms and one reply of a second. Flow 1: 30 ms, many times.
    for millis in [0, 1, 2] {
        push(&mut bins, (0, 1), millis, Span::from_millis(10));
    }
    push(&mut bins, (0, 1), 3, Span::from_secs(1));
    for millis in 0..100 {
        push(&mut bins, (1, 2), millis, Span::from_millis(30));
    }
    let closed = bins.into_bins();
    assert_eq!((closed.len(), closed[0].flows), (1, 2));
    let [lowest, median, _, _, highest] = latencies(&closed[0]);
    let reported = [lowest, median, highest];
    assert_eq!(
        reported,
        [10, 20, 30].map(|millis| Some(Span::from_millis(millis)))
    );
}

#[test]
fn bins_close_in_time_order_and_empty_bins_are_not_stored() {
    let mut bins = default_bins();
    for (slot, second) in [
        (0, 1),
        (0, 25),
        (1, 3),
        (0, 41),
        (0, 45),
        (1, 4),
        (0, 300),
        (0, 301),
    ] {
        let round_trip = Span::from_millis(second);
        push(&mut bins, (slot, 1), second * 1000, round_trip);
    }
    let closed: Vec<(i64, Option<Span>, u32)> = bins
        .into_bins()
        .iter()
        .map(|bin| {
            (
                bin.from.nanos() / 1_000_000_000,
                latencies(bin)[1],
                bin.flows,
            )
        })
        .collect();
    let expected = [(0, 2, 2), (20, 25, 1), (40, 43, 1)]
        .map(|(second, millis, flows)| (second, Some(Span::from_millis(millis)), flows));
    assert_eq!(closed[..3], expected);
    assert_eq!(closed[3], (300, Some(Span::from_micros(300_500)), 1));
    assert_eq!(closed.len(), 4);
}

#[test]
fn a_replaced_flow_counts_as_a_new_flow() {
    let mut bins = default_bins();
    push(&mut bins, (0, 1), 0, Span::from_millis(10));
    push(&mut bins, (0, 2), 1, Span::from_millis(12));
    assert_eq!(bins.into_bins()[0].flows, 2);
}

#[test]
fn bins_beyond_the_maximum_are_thinned_evenly() {
    let mut bins = Bins {
        max_closed: 100,
        ..default_bins()
    };
    for index in 0..1000_i64 {
        push(&mut bins, (0, 1), index * 20_000, Span::from_millis(index));
    }
    let closed = bins.into_bins();
    let indices: Vec<i64> = closed
        .iter()
        .map(|bin| bin.from.nanos() / WIDTH.nanos())
        .collect();
    assert!((50..=100).contains(&indices.len()), "{}", indices.len());
    assert!(indices.windows(2).all(|pair| pair[1] - pair[0] == 16));
    let last_latency = Span::from_millis(indices[indices.len() - 1]);
    assert_eq!(latencies(&closed[closed.len() - 1])[1], Some(last_latency));
}

#[test]
fn a_flow_that_lost_all_messages_ranks_slowest() {
    let mut bins = default_bins();
    for flow in 0..9 {
        let round_trip = Span::from_millis(10 + i64::from(flow));
        push(&mut bins, (flow, 1), 0, round_trip);
    }
    for flow in 9..11 {
        push_latency(&mut bins, (flow, 1), 0, Latency::Lost);
    }
    let closed = bins.into_bins();
    assert_eq!((closed[0].flows, closed[0].lost), (11, 2));
    // Of eleven flows the sixth is the median; p95 and p99 lie among the two that are lost.
    let some_millis = |millis: i64| Some(Span::from_millis(millis));
    assert_eq!(
        latencies(&closed[0]),
        [some_millis(10), some_millis(15), None, None, None]
    );
}

#[test]
fn a_bin_with_only_losses_reports_lost_latencies() {
    let mut bins = default_bins();
    push_latency(&mut bins, (0, 1), 0, Latency::Lost);
    push(&mut bins, (0, 1), 20_000, Span::from_millis(10));
    let closed = bins.into_bins();
    assert_eq!((closed[0].flows, closed[0].lost), (1, 1));
    assert_eq!(closed[0].latency, [Latency::Lost; 5]);
    assert_eq!((closed[1].flows, closed[1].lost), (1, 0));
}

/// What is lost is known when the timeout is over, when others are far ahead.
#[test]
fn a_loss_counts_in_the_bin_of_its_send_time() {
    let settings = Settings {
        settle: Span::from_secs(90),
        ..Settings::default()
    };
    let fleet = World::default().fleet();
    let mut bins = Bins::new(Instant::from_nanos(0), &settings, &fleet);
    for second in 0..90 {
        push(&mut bins, (0, 1), second * 1000, Span::from_millis(10));
    }
    push_latency(&mut bins, (1, 1), 0, Latency::Lost);
    let closed = bins.into_bins();
    assert_eq!(closed.len(), 5);
    assert_eq!((closed[0].flows, closed[0].lost), (2, 1));
}

#[test]
fn messages_sent_before_the_first_reply_belong_to_the_first_bin() {
    let mut bins = default_bins();
    push(&mut bins, (0, 1), 0, Span::from_millis(10));
    push_latency(&mut bins, (1, 1), -3, Latency::Lost);
    assert_eq!(bins.into_bins()[0].flows, 2);
}
