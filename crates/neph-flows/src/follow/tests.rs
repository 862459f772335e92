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
        at: at(seconds),
        reported: at(seconds),
        before: span(1),
        after: span(2),
        evidence: crate::Evidence::default(),
    }
}

const SECOND: i64 = 1_000_000_000;

fn at(seconds: i64) -> Instant<Local> {
    Instant::from_nanos(seconds * SECOND)
}

/// Only the test traces.
fn begun() -> RouteTracker {
    let mut follow = RouteTracker::new(&fleet());
    follow.begin(&[9]);
    follow
}

fn take_certain(follow: &mut RouteTracker) -> Vec<Traced> {
    std::mem::take(&mut follow.results)
}

/// The trace whose turn it is met this router, asked at this second.
fn traces(follow: &mut RouteTracker, hop: u8, target: i64) -> Vec<Traced> {
    let request = follow.queue.pop_front().expect("wanted");
    let traced = TracedFlow {
        route: route(request.port, &[hop]),
        answered: Some((at(target), at(target))),
    };
    follow.store_result(request, traced, at(target + 3));
    take_certain(follow)
}

fn comparison(traced: &Traced) -> Option<Result<bool, UncomparedReason>> {
    let comparison = traced.verdict?.comparison;
    Some(comparison.map(|comparison| comparison.others))
}

#[test]
fn a_verdict_waits_until_no_further_change_can_be_reported() {
    let mut follow = begun();
    let first = traces(&mut follow, 1, 5);
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].route.change, first[0].verdict), (None, None));
    follow.record_change(&change(20));
    assert!(traces(&mut follow, 2, 22).is_empty(), "who knows");
    let certain = at(22) + follow.report_delay;
    assert_eq!(follow.pending.due(certain - Span::from_nanos(1)), None);
    let slot = follow.pending.due(certain).expect("it is certain");
    follow.decide(slot, Some(certain));
    let second = take_certain(&mut follow);
    assert_eq!(comparison(&second[0]), Some(Ok(true)));
    let followed = second[0].route.change.expect("it follows a change");
    assert_eq!(followed.before, Some(first[0].route.route.hash));
    // The next change makes it certain too, and that it was late.
    follow.record_change(&change(100));
    assert!(traces(&mut follow, 3, 112).is_empty());
    follow.record_change(&change(111));
    let third = take_certain(&mut follow);
    assert_eq!(comparison(&third[0]), Some(Err(UncomparedReason::MovedOn)));
    assert_eq!(third[0].route.change, None, "it is of another path");
}

#[test]
fn a_path_that_was_left_before_it_was_traced_speaks_neither_for_nor_against_a_change() {
    let mut follow = begun();
    traces(&mut follow, 1, 5);
    // There and back again before the first of both was traced.
    follow.record_change(&change(20));
    follow.record_change(&change(30));
    traces(&mut follow, 1, 31);
    follow.record_change(&change(40));
    let traced = take_certain(&mut follow);
    assert_eq!(
        comparison(&traced[0]),
        Some(Err(UncomparedReason::NoBefore))
    );
    let followed = traced[0].route.change.expect("it is of that path");
    assert_eq!((followed.before, followed.other_routers), (None, None));
    // The last one is not traced by the end.
    let (_, uncompared) = follow.end();
    let expected = [
        UncomparedReason::NoBefore,
        UncomparedReason::MovedOn,
        UncomparedReason::Unfinished,
    ]
    .map(|reason| (reason, 1));
    assert_eq!(uncompared[0].by_reason(), expected);
    assert_eq!(uncompared[1].all(), 0);
}

#[test]
fn withdrawn_changes_are_not_traced_and_running_traces_are_marked() {
    let mut follow = begun();
    follow.queue.take(Slot(0));
    // Without a route to compare with, one is still wanted.
    follow.record_change(&change(1));
    follow.record_withdrawal(&change(1));
    let request = follow.queue.get(Slot(0)).expect("wanted");
    assert!(request.change.is_none());
    assert_eq!(traces(&mut follow, 1, 5)[0].verdict, None);
    // With one, the trace that has not begun is dropped, and the others stay.
    follow.record_change(&change(12));
    follow.record_withdrawal(&change(1));
    assert!(follow.queue.get(Slot(0)).is_some());
    follow.record_withdrawal(&change(12));
    assert!(follow.queue.get(Slot(0)).is_none());
    // One that has begun tells, and that it is of no change.
    follow.record_change(&change(13));
    let begun = follow.next_trace().expect("wanted");
    follow.record_withdrawal(&change(13));
    let met = TracedFlow {
        route: route(begun.source_port, &[1]),
        answered: Some((at(16), at(16))),
    };
    follow.record_result(begun.id, met, at(19));
    let traced = take_certain(&mut follow);
    assert_eq!(traced[0].route.change, None);
    let verdict = traced[0].verdict.expect("it followed a change");
    assert!(
        verdict.is_withdrawn
            && verdict
                .comparison
                .is_ok_and(|comparison| !comparison.others)
    );
    // So does one that was over already, and neither is counted.
    follow.record_change(&change(20));
    assert!(traces(&mut follow, 1, 22).is_empty());
    follow.record_withdrawal(&change(20));
    assert_eq!(take_certain(&mut follow)[0].route.change, None);
    let (_, uncompared) = follow.end();
    assert_eq!(uncompared[0].all(), 0);
}

#[test]
fn a_flow_whose_port_was_renewed_is_not_compared_with_the_one_before() {
    let mut follow = begun();
    traces(&mut follow, 1, 5);
    follow.record_change(&change(20));
    assert!(traces(&mut follow, 2, 22).is_empty());
    let mut of_next = change(60);
    of_next.source_port = 10;
    follow.record_change(&of_next);
    assert_eq!(comparison(&take_certain(&mut follow)[0]), Some(Ok(true)));
    assert!(traces(&mut follow, 2, 62).is_empty());
    let (last, _) = follow.end();
    assert_eq!(comparison(&last[0]), Some(Err(UncomparedReason::NoBefore)));
}

#[test]
fn no_more_traces_run_at_a_time_than_routers_answer() {
    let mut follow = RouteTracker::new(&fleet());
    follow.begin(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let running: Vec<TraceOrder> = std::iter::from_fn(|| follow.next_trace()).collect();
    assert_eq!(running.len(), MAX_CONCURRENT_TRACES);
    follow.record_failure(running[0].id);
    assert_eq!(
        follow.next_trace().map(|request| request.source_port),
        Some(9)
    );
    assert_eq!(follow.next_trace(), None);
}
