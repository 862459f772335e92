//! The routers of flows: each flow's route is traced at the start, and again at once when its path
//! changed. Other routers than before speak for the change.

mod waiting;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_flows::PathChange;
use neph_model::{Fleet, FlowRoute, Instant, Lane, Own, TraceKind, TracedChange, TracedRoute};
use neph_probe::{Place, ProbeError, Tracing, now, trace_flow};

use waiting::Waiting;

/// Traces at a time: routers answer a few packets a second only, and all flows meet the same ones
/// first.
const AT_A_TIME: usize = 8;

/// A trace that is wanted, and the change that it follows.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lane: Lane,
    port: u16,
    change: Option<PathChange>,
    /// The flow's path changed again since: nobody knows which of the paths was traced.
    is_outdated: bool,
    /// The change was none after all.
    is_withdrawn: bool,
}

impl Wanted {
    const fn new(lane: Lane, port: u16) -> Self {
        Self {
            lane,
            port,
            change: None,
            is_outdated: false,
            is_withdrawn: false,
        }
    }

    fn follows(&self, change: &PathChange) -> bool {
        self.change.is_some_and(|own| own.id() == change.id())
    }
}

/// A route, and whether it is of the path that the flow is on, as far as is known.
#[derive(Debug)]
struct Known {
    route: FlowRoute,
    at: Instant<Own>,
    is_current: bool,
}

/// What a trace says of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) change: PathChange,
    /// Whether the flow met other routers than before.
    pub(super) others: bool,
    /// When the route before was found. A move since then that was not told is in the comparison too:
    /// one in the first messages of a flow, whose level is not settled.
    pub(super) before: Instant<Own>,
    /// The change was taken back while the trace ran.
    pub(super) is_withdrawn: bool,
}

/// A route that was found, and what it says of the change that it follows, where it can tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Traced {
    pub(super) route: TracedRoute,
    pub(super) verdict: Option<Verdict>,
}

/// The traces of a fleet.
#[derive(Debug)]
pub(super) struct Follow {
    kind: TraceKind,
    site: Option<Place>,
    targets: Vec<SocketAddr>,
    waiting: Waiting,
    running: Vec<(Wanted, Tracing)>,
    /// The latest route of each lane's flow.
    known: BTreeMap<Lane, Known>,
}

impl Follow {
    pub(super) fn new(fleet: &Fleet, site: Option<Place>) -> Self {
        let addresses = fleet.endpoints.iter().map(|endpoint| endpoint.address);
        Self {
            kind: TraceKind::of_flows(fleet.probe),
            site,
            targets: addresses.collect(),
            waiting: Waiting::default(),
            running: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The fleet's first flows, by lane: their routes are what changes are held against.
    pub(super) fn begin(&mut self, sources: &[u16]) {
        let lanes = (0..).map(Lane).zip(sources);
        for (lane, port) in lanes {
            self.waiting.push_back(Wanted::new(lane, *port));
        }
    }

    /// A path changed: its route comes before those that only stand by. Of the path before, what
    /// was not traced by now never will be.
    pub(super) fn changed(&mut self, change: &PathChange) {
        let lane = change.lane;
        let mut is_untraced = self.waiting.of(lane).is_some();
        for (wanted, _) in self.running.iter_mut().filter(|(one, _)| one.lane == lane) {
            wanted.is_outdated = true;
            is_untraced = true;
        }
        if is_untraced {
            self.outdate(lane);
        }
        self.waiting.push_front(Wanted {
            change: Some(*change),
            ..Wanted::new(lane, change.source_port)
        });
    }

    /// A change was none: its trace, if it has not begun, is wanted only where no route is known to
    /// hold the next change against.
    pub(super) fn withdrawn(&mut self, change: &PathChange) {
        for (wanted, _) in self
            .running
            .iter_mut()
            .filter(|(one, _)| one.follows(change))
        {
            wanted.is_withdrawn = true;
        }
        let lane = change.lane;
        if !self.waiting.of(lane).is_some_and(|one| one.follows(change)) {
            return;
        }
        self.waiting.take(lane);
        let known = self.known.get(&lane);
        if known.is_none_or(|known| !known.is_current) {
            self.waiting
                .push_back(Wanted::new(lane, change.source_port));
        }
    }

    /// Starts what is wanted, and tells the routes that were found since.
    ///
    /// # Errors
    /// Where tracing is not permitted. A trace that fails otherwise is left out: the next one may
    /// find its way.
    pub(super) fn poll(&mut self, fleet: &Fleet) -> Result<Vec<Traced>, ProbeError> {
        while self.running.len() < AT_A_TIME
            && let Some(wanted) = self.waiting.pop_front()
        {
            let target = self.targets[fleet.endpoint_of(wanted.lane)];
            match trace_flow(target, self.kind, wanted.port, self.site.as_ref()) {
                Ok(tracing) => self.running.push((wanted, tracing)),
                Err(error @ ProbeError::RawForbidden { .. }) => return Err(error),
                Err(_) => self.outdate(wanted.lane),
            }
        }
        let mut told = Vec::new();
        while let Some(index) = self.running.iter().position(|(_, one)| one.is_finished()) {
            let (wanted, tracing) = self.running.swap_remove(index);
            match tracing.join() {
                Ok(route) => told.extend(self.keep(wanted, route, now())),
                Err(error @ ProbeError::RawForbidden { .. }) => return Err(error),
                Err(_) => self.outdate(wanted.lane),
            }
        }
        Ok(told)
    }

    /// The route that is known of a lane is not that of its path any more.
    fn outdate(&mut self, lane: Lane) {
        if let Some(known) = self.known.get_mut(&lane) {
            known.is_current = false;
        }
    }

    /// Ends all traces; what those know that still run is not told any more.
    pub(super) fn end(self) {
        self.running.iter().for_each(|(_, tracing)| tracing.stop());
    }

    /// Keeps a route in mind, and compares it with that of the path before.
    fn keep(&mut self, wanted: Wanted, route: FlowRoute, at: Instant<Own>) -> Option<Traced> {
        if wanted.is_outdated {
            return None;
        }
        let after = Known {
            route: route.clone(),
            at,
            is_current: true,
        };
        let before = self.known.insert(wanted.lane, after);
        let before =
            before.filter(|known| known.is_current && known.route.source_port == route.source_port);
        let others = before
            .as_ref()
            .and_then(|before| differs(&before.route, &route));
        let verdict = wanted.change.zip(others).zip(before.as_ref());
        let verdict = verdict.map(|((change, others), before)| Verdict {
            change,
            others,
            before: before.at,
            is_withdrawn: wanted.is_withdrawn,
        });
        let change = wanted.change.filter(|_| !wanted.is_withdrawn);
        let change = change.map(|change| TracedChange {
            at: change.at,
            before: before.as_ref().map(|before| before.route.hash),
            others,
        });
        Some(Traced {
            route: TracedRoute {
                lane: wanted.lane,
                at,
                route,
                change,
            },
            verdict,
        })
    }
}

/// Whether two routes of a flow have different routers at some distance; `None` where no distance is
/// known of both. A router that does not answer is no other router.
fn differs(before: &FlowRoute, after: &FlowRoute) -> Option<bool> {
    let known: Vec<bool> = before
        .hops
        .iter()
        .zip(&after.hops)
        .filter_map(|(one, other)| Some(one.address? != other.address?))
        .collect();
    (!known.is_empty()).then(|| known.contains(&true))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use neph_model::{FleetEndpoint, FlowHop, PathHash, ProbeKind, ReadBy, TraceEnd};

    use super::*;

    fn route(source_port: u16, hops: &[u8]) -> FlowRoute {
        let hop = |(ttl, last): (u8, &u8)| FlowHop {
            ttl,
            address: (*last > 0).then(|| IpAddr::from([10, 0, 0, *last])),
            others: Vec::new(),
            asked: 1,
            round_trips: Vec::new(),
            read_by: ReadBy::Kernel,
            labels: Vec::new(),
        };
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
            lanes: 3,
            endpoints: vec![endpoint(1), endpoint(2)],
            interval: neph_model::Span::from_secs(1),
            renewal: None,
            criteria: None,
        }
    }

    fn change(at: i64) -> PathChange {
        let span = neph_model::Span::from_millis;
        PathChange {
            lane: Lane(0),
            source_port: 9,
            at: neph_model::Instant::from_nanos(at),
            told: neph_model::Instant::from_nanos(at),
            before: span(1),
            after: span(2),
            evidence: neph_flows::Evidence::default(),
        }
    }

    #[test]
    fn a_path_that_was_left_before_it_was_traced_speaks_neither_for_nor_against_a_change() {
        let mut follow = Follow::new(&fleet(), None);
        follow.begin(&[9]);
        let traced = |follow: &mut Follow, hop: u8| {
            let wanted = follow.waiting.pop_front().expect("wanted");
            let moment = Instant::from_nanos(50 + i64::from(hop));
            let found = follow.keep(wanted, route(9, &[hop]), moment);
            found.expect("it is of the path that the flow is on")
        };
        let first = traced(&mut follow, 1);
        assert_eq!((first.route.change, first.verdict), (None, None));
        // There and back again before the first of both was traced.
        follow.changed(&change(1));
        follow.changed(&change(2));
        let second = traced(&mut follow, 1);
        assert_eq!(second.verdict, None);
        let told = second.route.change.expect("it follows a change");
        assert_eq!((told.at.nanos(), told.before, told.others), (2, None, None));
        assert!(follow.waiting.of(Lane(0)).is_none());
        follow.changed(&change(3));
        let third = traced(&mut follow, 2);
        let verdict = third.verdict.expect("two routes");
        assert_eq!((verdict.change, verdict.others), (change(3), true));
        assert_eq!(verdict.before, second.route.at, "when it was there last");
        let told = third.route.change.expect("it follows a change");
        assert_eq!(told.before, Some(second.route.route.hash));
    }

    #[test]
    fn a_change_that_is_withdrawn_is_not_traced_and_one_whose_trace_runs_says_so() {
        let mut follow = Follow::new(&fleet(), None);
        let moment = Instant::from_nanos(50);
        // Without a route to compare with, one is still wanted.
        follow.changed(&change(1));
        follow.withdrawn(&change(1));
        let wanted = follow.waiting.pop_front().expect("wanted");
        assert!(wanted.change.is_none() && follow.waiting.of(Lane(0)).is_none());
        let first = follow
            .keep(wanted, route(9, &[1]), moment)
            .expect("a route");
        assert_eq!((first.verdict, first.route.change), (None, None));
        // With one, the trace that has not begun is dropped, and the others stay.
        follow.changed(&change(2));
        follow.withdrawn(&change(1));
        assert!(follow.waiting.of(Lane(0)).is_some());
        follow.withdrawn(&change(2));
        assert!(follow.waiting.of(Lane(0)).is_none());
        // One that has begun tells, and that it is of no change.
        follow.changed(&change(3));
        let begun = follow.waiting.pop_front().expect("wanted");
        let nobody = ([127, 0, 0, 1], 9).into();
        let trace = trace_flow(nobody, TraceKind::Udp, 9, None).expect("a thread");
        follow.running.push((begun, trace));
        follow.withdrawn(&change(3));
        let (wanted, trace) = follow.running.pop().expect("it runs");
        trace.stop();
        let told = follow
            .keep(wanted, route(9, &[1]), moment)
            .expect("a route");
        assert_eq!(told.route.change, None);
        let verdict = told.verdict.expect("two routes");
        assert_eq!((verdict.others, verdict.is_withdrawn), (false, true));
    }

    #[test]
    fn only_routers_that_answered_both_times_are_compared() {
        let of = |before: &[u8], after: &[u8]| differs(&route(9, before), &route(9, after));
        assert_eq!(of(&[1, 2, 3], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[1, 2, 3], &[1, 4, 3]), Some(true));
        assert_eq!(of(&[1, 0, 3], &[1, 4, 3]), Some(false));
        assert_eq!(of(&[1, 2], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[0], &[1]), None);
    }
}
