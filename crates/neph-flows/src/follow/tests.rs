//! What is reported about routes, and of changes, as they come.

use std::net::IpAddr;

use neph_model::{FleetEndpoint, FlowHop, FlowRoute, PathHash, ProbeKind, TraceEnd};

use super::*;

/// A route over these; 0: a hole.
pub(crate) fn route(source_port: u16, hops: &[u8]) -> FlowRoute {
    let address = |last: &u8| (*last > 0).then(|| IpAddr::from([10, 0, 0, *last]));
    let hop = |(ttl, last)| FlowHop::new(ttl, address(last));
    FlowRoute {
        source_port,
        hops: (1..).zip(hops).map(hop).collect(),
        hash: PathHash::of(&[]),
        end: TraceEnd::Stopped,
    }
}

fn fleet() -> Fleet {
    let endpoint = |last: u8| FleetEndpoint {
        name: format!("e{last}"),
        address: ([10, 0, 1, last], 862).into(),
    };
    Fleet {
        probe: ProbeKind::Udp,
        slots: 3,
        endpoints: vec![endpoint(1), endpoint(2)],
        interval: neph_model::Span::from_secs(1),
        lifetime: None,
        criteria: None,
    }
}

/// By seconds.
fn change(seconds: i64) -> PathChange {
    let span = neph_model::Span::from_millis;
    PathChange {
        slot: Slot(0),
        source_port: 9,
        at: instant(seconds),
        reported: instant(seconds),
        before: span(1),
        after: span(2),
        evidence: crate::Evidence::default(),
    }
}

const SECOND: i64 = 1_000_000_000;

fn instant(seconds: i64) -> Instant<Local> {
    Instant::from_nanos(seconds * SECOND)
}

/// Only the test traces.
fn start_tracker() -> RouteTracker {
    let mut tracker = RouteTracker::new(&fleet());
    tracker.begin(&[9]);
    tracker
}

fn take_certain(tracker: &mut RouteTracker) -> Vec<Traced> {
    std::mem::take(&mut tracker.results)
}

/// The trace whose turn it is met this router, asked at this second.
fn finish_trace(tracker: &mut RouteTracker, hop: u8, target: i64) -> Vec<Traced> {
    let request = tracker.queue.pop_front().expect("wanted");
    let traced = TracedFlow {
        route: route(request.port, &[hop]),
        answered: Some((instant(target), instant(target))),
    };
    tracker.store_result(request, traced, instant(target + 3));
    take_certain(tracker)
}

fn comparison(traced: &Traced) -> Option<Result<bool, UncomparedReason>> {
    let comparison = traced.verdict?.comparison;
    Some(comparison.map(|comparison| comparison.others))
}

#[test]
fn a_verdict_waits_until_no_further_change_can_be_reported() {
    let mut tracker = start_tracker();
    let first = finish_trace(&mut tracker, 1, 5);
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].route.change, first[0].verdict), (None, None));
    tracker.record_change(&change(20));
    assert!(finish_trace(&mut tracker, 2, 22).is_empty(), "who knows");
    let certain_at = instant(22) + tracker.report_delay;
    assert_eq!(
        tracker.pending.pop_due(certain_at - Span::from_nanos(1)),
        None
    );
    let slot = tracker.pending.pop_due(certain_at).expect("it is certain");
    tracker.decide(slot, Some(certain_at));
    let second = take_certain(&mut tracker);
    assert_eq!(comparison(&second[0]), Some(Ok(true)));
    let traced_change = second[0].route.change.expect("it follows a change");
    assert_eq!(traced_change.before, Some(first[0].route.route.hash));
    // The next change makes it certain too, and that it was late.
    tracker.record_change(&change(100));
    assert!(finish_trace(&mut tracker, 3, 112).is_empty());
    tracker.record_change(&change(111));
    let third = take_certain(&mut tracker);
    assert_eq!(comparison(&third[0]), Some(Err(UncomparedReason::MovedOn)));
    assert_eq!(third[0].route.change, None, "it is of another path");
}

#[test]
fn a_path_left_before_its_trace_is_no_evidence() {
    let mut tracker = start_tracker();
    finish_trace(&mut tracker, 1, 5);
    // There and back again before the first of both was traced.
    tracker.record_change(&change(20));
    tracker.record_change(&change(30));
    finish_trace(&mut tracker, 1, 31);
    tracker.record_change(&change(40));
    let traced = take_certain(&mut tracker);
    assert_eq!(
        comparison(&traced[0]),
        Some(Err(UncomparedReason::NoBefore))
    );
    let traced_change = traced[0].route.change.expect("it is of that path");
    assert_eq!(
        (traced_change.before, traced_change.other_routers),
        (None, None)
    );
    // The last one is not traced by the end.
    let (_, uncompared) = tracker.end();
    let expected = [
        UncomparedReason::NoBefore,
        UncomparedReason::MovedOn,
        UncomparedReason::Unfinished,
    ]
    .map(|reason| (reason, 1));
    assert_eq!(uncompared[0].by_reason(), expected);
    assert_eq!(uncompared[1].total(), 0);
}

#[test]
fn withdrawn_changes_are_not_traced_and_running_traces_are_marked() {
    let mut tracker = start_tracker();
    tracker.queue.take(Slot(0));
    // Without a route to compare with, one is still wanted.
    tracker.record_change(&change(1));
    tracker.record_withdrawal(&change(1));
    let request = tracker.queue.get(Slot(0)).expect("wanted");
    assert!(request.change.is_none());
    assert_eq!(finish_trace(&mut tracker, 1, 5)[0].verdict, None);
    // With one, the trace that has not begun is dropped, and the others stay.
    tracker.record_change(&change(12));
    tracker.record_withdrawal(&change(1));
    assert!(tracker.queue.get(Slot(0)).is_some());
    tracker.record_withdrawal(&change(12));
    assert!(tracker.queue.get(Slot(0)).is_none());
    // One that has begun tells, and that it is of no change.
    tracker.record_change(&change(13));
    let order = tracker.next_trace().expect("wanted");
    tracker.record_withdrawal(&change(13));
    let traced_flow = TracedFlow {
        route: route(order.source_port, &[1]),
        answered: Some((instant(16), instant(16))),
    };
    tracker.record_result(order.id, traced_flow, instant(19));
    let traced = take_certain(&mut tracker);
    assert_eq!(traced[0].route.change, None);
    let verdict = traced[0].verdict.expect("it followed a change");
    assert!(
        verdict.is_withdrawn
            && verdict
                .comparison
                .is_ok_and(|comparison| !comparison.others)
    );
    // So does one that was over already, and neither is counted.
    tracker.record_change(&change(20));
    assert!(finish_trace(&mut tracker, 1, 22).is_empty());
    tracker.record_withdrawal(&change(20));
    assert_eq!(take_certain(&mut tracker)[0].route.change, None);
    let (_, uncompared) = tracker.end();
    assert_eq!(uncompared[0].total(), 0);
}

#[test]
fn routes_of_a_replaced_flow_are_not_compared() {
    let mut tracker = start_tracker();
    finish_trace(&mut tracker, 1, 5);
    tracker.record_change(&change(20));
    assert!(finish_trace(&mut tracker, 2, 22).is_empty());
    let mut next_flow_change = change(60);
    next_flow_change.source_port = 10;
    tracker.record_change(&next_flow_change);
    assert_eq!(comparison(&take_certain(&mut tracker)[0]), Some(Ok(true)));
    assert!(finish_trace(&mut tracker, 2, 62).is_empty());
    let (last, _) = tracker.end();
    assert_eq!(comparison(&last[0]), Some(Err(UncomparedReason::NoBefore)));
}

#[test]
fn concurrent_traces_are_limited_to_the_rate_of_router_answers() {
    let mut tracker = RouteTracker::new(&fleet());
    tracker.begin(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let running: Vec<TraceOrder> = std::iter::from_fn(|| tracker.next_trace()).collect();
    assert_eq!(running.len(), MAX_CONCURRENT_TRACES);
    tracker.record_failure(running[0].id);
    assert_eq!(
        tracker.next_trace().map(|request| request.source_port),
        Some(9)
    );
    assert_eq!(tracker.next_trace(), None);
}
