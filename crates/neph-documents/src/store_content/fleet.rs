//! Results of a fleet's experiment in addition to messages: transfers on the source ports of its
//! classes, and numbers of traced routes and path changes.

use crate::cell::OrDash;
use neph_flows::{ComparedRoutes, completions};
use neph_model::{ClassTransfer, Experiment, FlowRoute, FlowTrace, Span};

crate::rows! {
    /// Transfers on the source ports of one latency class.
    pub struct ClassTransferRow {
        /// Name of the endpoint.
        endpoint: String => left "ENDPOINT",
        /// Latency class, from 1 (lowest base latency).
        class: u64 => right "CLASS",
        /// Number of transfers, failed ones included.
        n: u64 => right "TRANSFERS",
        /// Number of failed transfers; they count as longer than all others.
        failed: u64 => right "FAILED",
        /// Number of source ports.
        ports: u64 => right "PORTS",
        /// Median over ports of each port's median completion time, connecting included; null
        /// without a number.
        median_ns: Option<Span> => right "MEDIAN",
        /// Lower end of its 95 % confidence interval; null below 6 ports, or if it lies among
        /// failed transfers.
        low_ns: Option<Span> => right "LOW",
        /// Upper end of its 95 % confidence interval; null below 6 ports, or if it lies among
        /// failed transfers.
        high_ns: Option<Span> => right "HIGH",
        /// Median divided by that of the first class that has one; null without a median.
        ratio: Option<f64> => right "RATIO" by |row| {
            row.ratio.or_dash(|ratio| format!("{ratio:.3}"))
        },
    }
}

impl ClassTransferRow {
    /// The rows of these transfers of an experiment.
    pub fn all(experiment: &Experiment, transfers: &[ClassTransfer]) -> Vec<Self> {
        let endpoints = experiment.fleet.iter().flat_map(|fleet| &fleet.endpoints);
        let rows = endpoints.enumerate().flat_map(|(index, endpoint)| {
            let transfers_of_endpoint = transfers
                .iter()
                .filter(move |transfer| transfer.endpoint == index);
            completions(transfers_of_endpoint)
                .into_iter()
                .map(move |completion| Self {
                    endpoint: endpoint.name.clone(),
                    class: completion.class as u64 + 1,
                    n: completion.n,
                    failed: completion.failed,
                    ports: completion.ports,
                    median_ns: completion.median,
                    low_ns: completion.interval.map(|(low, _)| low),
                    high_ns: completion.interval.map(|(_, high)| high),
                    ratio: completion.ratio,
                })
        });
        rows.collect()
    }
}

crate::rows! {
    /// Numbers of routes that were traced while a fleet ran.
    pub struct TracedFacts {
        /// Number of routes.
        routes: u64 => left "routes",
        /// Routes after a path change, including changes that were withdrawn later.
        after_change: u64 => left "after a path change, withdrawn later included",
        /// Changes whose routes before and after could be compared.
        compared: u64 => left "changes compared",
        /// Path changes with other routers.
        other_routers: u64 => left "by other routers",
        /// Path changes with the same routers before and after.
        same_routers: u64 => left "by the same routers",
        /// Changes that could not be compared: no route before, or no router on both.
        not_compared: u64 => left "not compared: no route of the path before, or no router of both",
    }
}

impl TracedFacts {
    /// The numbers for these routes, and for those after a change, whether the routers differ
    /// (`None`: not comparable).
    pub fn of(routes: u64, changes: Vec<Option<bool>>) -> Self {
        let after_change = changes.len() as u64;
        let compared = ComparedRoutes::of(changes);
        Self {
            routes,
            after_change,
            compared: compared.total(),
            other_routers: compared.others,
            same_routers: compared.same,
            not_compared: after_change - compared.total(),
        }
    }
}

crate::rows! {
    /// Numbers of incomplete routes.
    pub struct RoutesFacts {
        /// Routes that end before the target, as configured or because nothing replied; null if
        /// there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        without_target: Option<usize> => left "routes without the target" by |row| {
            row.without_target.map(|count| count.to_string()).unwrap_or_default()
        },
        /// Flows without a reply from any router or the target; null if there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        unanswered: Option<usize> => left "flows that no router and no target answered" by |row| {
            row.unanswered.map(|count| count.to_string()).unwrap_or_default()
        },
    }
}

impl RoutesFacts {
    /// The numbers of a trace; `None` if all routes are complete.
    pub fn of(trace: &FlowTrace) -> Option<Self> {
        let count = |condition: fn(&FlowRoute) -> bool| {
            let routes = trace.routes.iter().filter(|route| condition(route));
            Some(routes.count()).filter(|count| *count > 0)
        };
        let facts = Self {
            without_target: count(|route| !route.reached() && !route.is_unanswered()),
            unanswered: count(FlowRoute::is_unanswered),
        };
        (facts.without_target.is_some() || facts.unanswered.is_some()).then_some(facts)
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowHop, PathHash, TraceEnd, TraceKind, Wall};

    use super::*;

    #[test]
    fn routes_without_target_or_without_answers_are_counted() {
        let route = |end, answered: bool| FlowRoute {
            source_port: 1,
            hops: answered
                .then(|| FlowHop::new(1, Some([192, 0, 2, 1].into())))
                .into_iter()
                .collect(),
            hash: PathHash::of(&[]),
            end,
        };
        let counts = |ends: &[(TraceEnd, bool)]| {
            let trace = FlowTrace {
                destination: ([192, 0, 2, 9], 862).into(),
                kind: TraceKind::Syn,
                started: Wall::from_unix_nanos(0),
                routes: ends
                    .iter()
                    .map(|(end, answered)| route(*end, *answered))
                    .collect(),
                enough: None,
            };
            RoutesFacts::of(&trace).map(|facts| (facts.without_target, facts.unanswered))
        };
        assert_eq!(counts(&[(TraceEnd::Reached, true)]), None);
        let without_target = (TraceEnd::Silent, true);
        let unanswered = (TraceEnd::Silent, false);
        assert_eq!(counts(&[without_target]), Some((Some(1), None)));
        assert_eq!(counts(&[unanswered]), Some((None, Some(1))));
        assert_eq!(
            counts(&[without_target, unanswered]),
            Some((Some(1), Some(1)))
        );
    }
}
