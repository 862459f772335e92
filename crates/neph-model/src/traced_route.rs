//! A route that was traced while its flow was measured, and its result for the path change that
//! caused the trace.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fleet, FlowRoute, FlowTrace, Instant, Local, PathHash, Slot, TraceKind, Wall};

/// The route of one flow of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracedRoute {
    /// Slot of the flow.
    #[serde(alias = "lane")]
    pub slot: Slot,
    /// When the route was known, after its trace; nanoseconds on the client's monotonic clock.
    pub at: Instant<Local>,
    /// The route; its hash is that of the path after the change.
    pub route: FlowRoute,
    /// The path change that caused the trace. null if there was none, if it was withdrawn before it
    /// was reported, or if the flow had left its path before. A change that was withdrawn later
    /// remains.
    pub change: Option<TracedChange>,
}

/// The id of a path change within its fleet; ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeId {
    /// When the first message with the new latency was sent.
    pub at: Instant<Local>,
    /// Slot of the flow.
    pub slot: Slot,
    /// Local source port: with [`Fleet::lifetime`] a slot has several flows, one after the other.
    pub source_port: u16,
}

/// The comparison of the routes before and after a path change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracedChange {
    /// When the first message with the new latency was sent, nanoseconds on the client's monotonic
    /// clock.
    pub at: Instant<Local>,
    /// Hash of the path before; null if no route is known that belongs to that path only.
    pub before: Option<PathHash>,
    /// Whether another router answered at some distance; null if the routes could not be compared.
    #[serde(alias = "others")]
    pub other_routers: Option<bool>,
}

impl TracedRoute {
    /// The path change that caused the trace; `None` without one.
    pub fn change_id(&self) -> Option<ChangeId> {
        Some(ChangeId {
            at: self.change?.at,
            slot: self.slot,
            source_port: self.route.source_port,
        })
    }
}

/// The latest route of each flow.
#[derive(Clone, Debug, Default)]
pub struct LatestRoutes(BTreeMap<Slot, FlowRoute>);

impl LatestRoutes {
    /// The next routes, by time: none of them was found before those of earlier calls.
    pub fn take(&mut self, routes: &[TracedRoute]) {
        // Only what is the latest among these is copied.
        let latest: BTreeMap<Slot, &FlowRoute> = routes
            .iter()
            .map(|traced| (traced.slot, &traced.route))
            .collect();
        let latest = latest.into_iter();
        self.0
            .extend(latest.map(|(slot, route)| (slot, route.clone())));
    }

    /// A trace for each endpoint of their fleet, as if all had been traced at once; the traces
    /// `started` then.
    pub fn traces(self, fleet: &Fleet, started: Wall) -> Vec<FlowTrace> {
        let mut by_endpoint: BTreeMap<usize, Vec<FlowRoute>> = BTreeMap::new();
        for (slot, route) in self.0 {
            let endpoint = fleet.endpoint_of(slot);
            by_endpoint.entry(endpoint).or_default().push(route);
        }
        let trace = |(endpoint, mut routes): (usize, Vec<FlowRoute>)| {
            routes.sort_by_key(|route| route.source_port);
            Some(FlowTrace {
                destination: fleet.endpoints.get(endpoint)?.address,
                kind: TraceKind::of_flows(fleet.probe),
                started,
                routes,
                enough: None,
            })
        };
        by_endpoint.into_iter().filter_map(trace).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::{FleetEndpoint, FlowHop, ProbeKind, SourcePortOutcome, Span, TraceEnd};

    #[test]
    fn old_json_keys_are_accepted() {
        let change: TracedChange =
            serde_json::from_str(r#"{"at":5,"before":null,"others":true}"#).expect("a change");
        assert_eq!(change.other_routers, Some(true));
        let hop: FlowHop = serde_json::from_str(
            r#"{"ttl":1,"address":null,"others":["192.0.2.1"],"asked":3,"round_trips":[],
                "others_round_trips":[[7]],"read_by":"kernel","labels":[]}"#,
        )
        .expect("a hop");
        assert_eq!((hop.other_addresses.len(), hop.probes), (1, 3));
        assert_eq!(hop.other_addresses_round_trips, [[Span::from_nanos(7)]]);
        let done: SourcePortOutcome =
            serde_json::from_str(r#"{"done":{"connect":1,"whole":2}}"#).expect("an outcome");
        let total = Span::from_nanos(2);
        assert!(matches!(done, SourcePortOutcome::Done { total: is, .. } if is == total));
    }

    #[test]
    fn the_latest_route_of_each_flow_is_listed_by_endpoint() {
        let endpoint = |last: u8| FleetEndpoint {
            name: format!("e{last}"),
            address: ([10, 0, 1, last], 862).into(),
        };
        let fleet = Fleet {
            probe: ProbeKind::Udp,
            slots: 3,
            endpoints: vec![endpoint(1), endpoint(2)],
            interval: Span::from_secs(1),
            lifetime: None,
            criteria: None,
        };
        let route = |(slot, source_port, hash)| TracedRoute {
            slot: Slot(slot),
            at: Instant::from_nanos(0),
            route: FlowRoute {
                source_port,
                hops: Vec::new(),
                hash: PathHash(hash),
                end: TraceEnd::Stopped,
            },
            change: None,
        };
        let routes = [(0, 9, 1), (1, 8, 2), (2, 7, 3), (0, 9, 4), (1, 8, 5)].map(route);
        let mut latest = LatestRoutes::default();
        // As they come: two in one batch are of one flow, and two in different ones.
        latest.take(&routes[..4]);
        latest.take(&routes[4..]);
        let traces = latest.traces(&fleet, Wall::from_unix_nanos(5));
        let known_routes = traces.iter().map(|trace| {
            let routes = trace.routes.iter();
            let known = routes.map(|route| (route.source_port, route.hash.0));
            (trace.destination, known.collect())
        });
        let known_routes: Vec<(SocketAddr, Vec<(u16, u64)>)> = known_routes.collect();
        let [first, second] = [0, 1].map(|n| fleet.endpoints[n].address);
        assert_eq!(
            known_routes,
            [(first, vec![(7, 3), (9, 4)]), (second, vec![(8, 5)])]
        );
    }
}
