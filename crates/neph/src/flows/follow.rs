//! The routers of flows: each flow's route is traced at the start, and again at once when its path
//! changed. Other routers than before speak for the change.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use neph_flows::PathChange;
use neph_model::{Fleet, FlowRoute, FlowTrace, Lane, ProbeKind, TraceKind, Wall};
use neph_probe::{Place, ProbeError, Tracing, anchor, trace_flow};

/// Traces at a time: routers answer a few packets a second only, and all flows meet the same ones
/// first.
const AT_A_TIME: usize = 8;

/// A trace that is wanted, and the change that it follows.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lane: Lane,
    port: u16,
    change: Option<PathChange>,
}

/// What a trace says of a change: whether the flow met other routers than before.
pub(super) type Traced = (PathChange, bool);

/// The traces of a fleet.
#[derive(Debug)]
pub(super) struct Follow {
    kind: TraceKind,
    site: Option<Place>,
    targets: Vec<SocketAddr>,
    waiting: VecDeque<Wanted>,
    running: Vec<(Wanted, Tracing)>,
    /// The latest route of each flow.
    known: BTreeMap<(Lane, u16), FlowRoute>,
    /// When the first trace was wanted.
    began: Wall,
}

impl Follow {
    pub(super) fn new(fleet: &Fleet, site: Option<Place>) -> Self {
        let kind = match fleet.probe {
            ProbeKind::Udp => TraceKind::Udp,
            _ => TraceKind::Syn,
        };
        let addresses = fleet.endpoints.iter().map(|endpoint| endpoint.address);
        Self {
            kind,
            site,
            targets: addresses.collect(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            known: BTreeMap::new(),
            began: anchor().wall,
        }
    }

    /// The fleet's first flows, by lane: their routes are what changes are held against.
    pub(super) fn begin(&mut self, sources: &[u16]) {
        let lanes = (0..).map(Lane).zip(sources);
        self.waiting.extend(lanes.map(|(lane, port)| Wanted {
            lane,
            port: *port,
            change: None,
        }));
    }

    /// A path changed: its route comes before those that only stand by.
    pub(super) fn changed(&mut self, change: &PathChange) {
        self.waiting.push_front(Wanted {
            lane: change.lane,
            port: change.source_port,
            change: Some(*change),
        });
    }

    /// Starts what is wanted, and tells what came of the traces that are over.
    ///
    /// # Errors
    /// Where tracing is not possible at all.
    pub(super) fn poll(&mut self, fleet: &Fleet) -> Result<Vec<Traced>, ProbeError> {
        while self.running.len() < AT_A_TIME
            && let Some(wanted) = self.waiting.pop_front()
        {
            let target = self.targets[fleet.endpoint_of(wanted.lane)];
            let tracing = trace_flow(target, self.kind, wanted.port, self.site.as_ref())?;
            self.running.push((wanted, tracing));
        }
        let mut told = Vec::new();
        while let Some(index) = self.running.iter().position(|(_, one)| one.is_finished()) {
            let (wanted, tracing) = self.running.swap_remove(index);
            told.extend(self.keep(wanted, tracing.join()?));
        }
        Ok(told)
    }

    /// Ends all traces; what those know that still run is not told any more. The latest route of
    /// each flow, by endpoint.
    pub(super) fn end(self, fleet: &Fleet) -> Vec<FlowTrace> {
        self.running.iter().for_each(|(_, tracing)| tracing.stop());
        let mut routes: BTreeMap<usize, Vec<FlowRoute>> = BTreeMap::new();
        for ((lane, _), route) in self.known {
            routes
                .entry(fleet.endpoint_of(lane))
                .or_default()
                .push(route);
        }
        let trace = |(endpoint, mut routes): (usize, Vec<FlowRoute>)| {
            routes.sort_by_key(|route| route.source_port);
            FlowTrace {
                destination: self.targets[endpoint],
                kind: self.kind,
                started: self.began,
                routes,
                enough: None,
            }
        };
        routes.into_iter().map(trace).collect()
    }

    /// Keeps a route, and compares it with the one before.
    fn keep(&mut self, wanted: Wanted, route: FlowRoute) -> Option<Traced> {
        let before = self.known.insert((wanted.lane, wanted.port), route);
        let after = self.known.get(&(wanted.lane, wanted.port))?;
        Some((wanted.change?, differs(&before?, after)?))
    }
}

/// Whether two routes of a flow have different routers at some distance; `None` where no distance is
/// known of both. A router that does not answer is no other router.
fn differs(before: &FlowRoute, after: &FlowRoute) -> Option<bool> {
    let pairs = before.hops.iter().zip(&after.hops);
    let known: Vec<bool> = pairs
        .filter_map(|(one, other)| Some(one.address? != other.address?))
        .collect();
    (!known.is_empty()).then(|| known.contains(&true))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use neph_model::{FleetEndpoint, FlowHop, PathHash, ReadBy, TraceEnd};

    use super::*;

    fn route(hops: &[u8]) -> FlowRoute {
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
            source_port: 1,
            hops: (1..).zip(hops).map(hop).collect(),
            hash: PathHash::of(&[]),
            end: TraceEnd::Stopped,
        }
    }

    #[test]
    fn at_the_end_the_latest_route_of_each_flow_is_told_by_endpoint() {
        let endpoint = |last: u8| FleetEndpoint {
            name: format!("e{last}"),
            address: ([10, 0, 1, last], 862).into(),
        };
        let fleet = Fleet {
            probe: ProbeKind::Udp,
            lanes: 3,
            endpoints: vec![endpoint(1), endpoint(2)],
            interval: neph_model::Span::from_secs(1),
            renewal: None,
            criteria: None,
        };
        let mut follow = Follow::new(&fleet, None);
        for (lane, port, hop) in [(0, 9, 1), (1, 8, 2), (2, 7, 3), (0, 9, 4)] {
            let wanted = Wanted {
                lane: Lane(lane),
                port,
                change: None,
            };
            let mut route = route(&[hop]);
            route.source_port = port;
            follow.keep(wanted, route);
        }
        let told = follow.end(&fleet);
        let told = told.iter().map(|trace| {
            let ports = trace.routes.iter().map(|route| route.source_port);
            let hops = trace.routes.iter().map(|route| route.hops[0].address);
            (trace.destination, ports.collect(), hops.collect())
        });
        let told: Vec<(SocketAddr, Vec<u16>, Vec<Option<IpAddr>>)> = told.collect();
        let at = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        assert_eq!(
            told,
            [
                (fleet.endpoints[0].address, vec![7, 9], vec![at(3), at(4)]),
                (fleet.endpoints[1].address, vec![8], vec![at(2)]),
            ]
        );
    }

    #[test]
    fn only_routers_that_answered_both_times_are_compared() {
        let of = |before: &[u8], after: &[u8]| differs(&route(before), &route(after));
        assert_eq!(of(&[1, 2, 3], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[1, 2, 3], &[1, 4, 3]), Some(true));
        assert_eq!(of(&[1, 0, 3], &[1, 4, 3]), Some(false));
        assert_eq!(of(&[1, 2], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[0], &[1]), None);
    }
}
