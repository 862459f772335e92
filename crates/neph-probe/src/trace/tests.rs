//! Traces of a simulated network, in virtual time.

mod net;
mod traceroute;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use neph_model::{Span, TraceEnd};

use super::spec::FlowSet;
use super::tracer_io::ProbeMatching;
use net::{Net, Run, Stage, addr, hash, run, spec};

/// For 99 %: 8, 15, 21, 28, 36 ... (neph-stats derives them).
const NEEDED: [u32; 8] = [8, 15, 21, 28, 36, 43, 51, 58];

fn enough(max_flows: u32) -> FlowSet {
    FlowSet::Enough {
        needed: NEEDED.to_vec(),
        max_flows,
        first: 1000,
    }
}

fn these(flows: u16) -> FlowSet {
    FlowSet::These((1000..1000 + flows).collect())
}

fn hop(last: u8) -> Stage {
    Stage::Flows(Box::new(move |_| last))
}

/// Chooses among `among` by the flow.
fn balanced(salt: u64, among: &'static [u8]) -> Stage {
    Stage::Flows(Box::new(move |port| {
        let at = hash(salt, u64::from(port)) % among.len() as u64;
        among[usize::try_from(at).expect("small")]
    }))
}

/// Each flow's addresses; `None` for holes.
fn addresses(run: &Run) -> Vec<Vec<Option<IpAddr>>> {
    run.routes
        .iter()
        .map(neph_model::FlowRoute::addresses)
        .collect()
}

#[test]
fn a_trace_reports_each_hop_of_a_path_with_its_rtts() {
    for matching in [ProbeMatching::ByNumber, ProbeMatching::OneAtATime] {
        let mut net = Net::new(vec![hop(1), hop(2), hop(3)]);
        let run = run(&spec(these(2)), matching, &mut net);
        let expected = vec![
            Some(addr(1)),
            Some(addr(2)),
            Some(addr(3)),
            Some(net::DESTINATION),
        ];
        assert_eq!(addresses(&run), vec![expected.clone(), expected]);
        assert_eq!(run.routes[0].hash, run.routes[1].hash);
        for hop in &run.routes[0].hops {
            assert_eq!((hop.probes, hop.round_trips.len()), (3, 3), "{hop:?}");
            let expected = Span::from_millis(10 * i64::from(hop.ttl));
            assert!(hop.round_trips.iter().all(|trip| *trip == expected));
        }
        assert!(run.routes.iter().all(neph_model::FlowRoute::reached));
    }
}

#[test]
fn each_flow_reports_its_own_path() {
    let mut net = Net::new(vec![
        hop(1),
        balanced(7, &[10, 11, 12, 13]),
        balanced(9, &[20, 21]),
        hop(30),
    ]);
    let run = run(&spec(these(64)), ProbeMatching::ByNumber, &mut net);
    for route in &run.routes {
        let truth = net.path(route.source_port);
        let addresses: Vec<IpAddr> = route.addresses().into_iter().flatten().collect();
        assert_eq!(addresses, truth, "port {}", route.source_port);
        assert!(route.hops.iter().all(|hop| hop.other_addresses.is_empty()));
    }
    let hashes: BTreeSet<_> = run.routes.iter().map(|route| route.hash).collect();
    assert_eq!(hashes.len(), 8, "four times two paths");
}

#[test]
fn multipath_detection_stops_at_the_theoretical_flow_count() {
    let mut single = Net::new(vec![hop(1), hop(2)]);
    let result = run(&spec(enough(500)), ProbeMatching::ByNumber, &mut single);
    assert_eq!((result.routes.len(), result.enough), (8, Some(true)));
    let mut diamond = Net::new(vec![hop(1), balanced(3, &[10, 11, 12, 13]), hop(30)]);
    let result = run(&spec(enough(500)), ProbeMatching::ByNumber, &mut diamond);
    let routers: BTreeSet<_> = result
        .routes
        .iter()
        .map(|route| route.hops[1].address)
        .collect();
    assert_eq!((routers.len(), result.enough), (4, Some(true)));
    // 28 rule out a fifth next hop; behind each of the four, 8 rule out a second one.
    assert!(
        (28..=80).contains(&result.routes.len()),
        "{}",
        result.routes.len()
    );
    let mut behind: BTreeMap<Option<IpAddr>, u32> = BTreeMap::new();
    for route in &result.routes {
        *behind.entry(route.hops[1].address).or_default() += 1;
    }
    assert!(behind.values().all(|flows| *flows >= 8), "{behind:?}");
}

#[test]
fn nested_diamonds_are_found() {
    // Behind router 10 there are three more, behind 11 one.
    let inner = |port: u16| match hash(1, u64::from(port)) % 2 {
        0 => 20 + u8::try_from(hash(2, u64::from(port)) % 3).expect("small"),
        _ => 25,
    };
    let outer = |port: u16| 10 + u8::try_from(hash(1, u64::from(port)) % 2).expect("small");
    let mut net = Net::new(vec![
        Stage::Flows(Box::new(outer)),
        Stage::Flows(Box::new(inner)),
        hop(30),
    ]);
    let result = run(&spec(enough(500)), ProbeMatching::ByNumber, &mut net);
    let routers: BTreeSet<_> = result
        .routes
        .iter()
        .map(|route| route.hops[1].address)
        .collect();
    assert_eq!((routers.len(), result.enough), (4, Some(true)));
    let through = result
        .routes
        .iter()
        .filter(|route| route.hops[0].address == Some(addr(10)));
    assert!(through.count() >= 21, "three next hops need 21 flows");
}

/// The promise of the rule itself, over a thousand networks: behind one router, another next hop is
/// missed in at most one case of a hundred.
#[test]
fn at_most_1_percent_of_diamonds_is_missed() {
    let mut missed = 0;
    for salt in 0..1000 {
        let two = Stage::Flows(Box::new(move |port| {
            10 + u8::try_from(hash(salt, u64::from(port)) % 2).expect("small")
        }));
        let mut net = Net::new(vec![two]);
        let mut quick = spec(enough(500));
        quick.queries = 1;
        let result = run(&quick, ProbeMatching::ByNumber, &mut net);
        let routers: BTreeSet<_> = result
            .routes
            .iter()
            .map(|route| route.hops[0].address)
            .collect();
        missed += usize::from(routers.len() < 2);
    }
    // The expectation is 1000 / 128 = 7.8; 20 are exceeded in fewer than 1 of 10,000 such tests.
    assert!((1..=20).contains(&missed), "{missed}");
}

#[test]
fn a_trace_with_too_few_flows_reports_that_it_needs_more() {
    let mut net = Net::new(vec![balanced(3, &[10, 11, 12, 13])]);
    let result = run(&spec(enough(10)), ProbeMatching::ByNumber, &mut net);
    assert_eq!((result.routes.len(), result.enough), (10, Some(false)));
}

#[test]
fn per_packet_balancing_is_distinguished_from_per_flow() {
    let mut net = Net::new(vec![hop(1), Stage::Packets(vec![10, 11]), hop(30)]);
    let mut repeated_spec = spec(these(8));
    repeated_spec.queries = 10;
    let run = run(&repeated_spec, ProbeMatching::ByNumber, &mut net);
    assert!(
        run.routes
            .iter()
            .all(|route| route.hops[1].other_addresses.len() == 1)
    );
    assert!(
        run.routes
            .iter()
            .all(|route| route.hops[2].other_addresses.is_empty())
    );
    for hop in run.routes.iter().map(|route| &route.hops[1]) {
        let [theirs] = &hop.other_addresses_round_trips[..] else {
            panic!("each has its own round trips: {hop:?}");
        };
        assert!(!theirs.is_empty() && theirs.len() <= hop.round_trips.len());
        assert_eq!(theirs.len() + hop.round_trips.len(), 10, "{hop:?}");
    }
}

#[test]
fn balancing_by_destination_is_one_path() {
    let chosen = 10 + u8::try_from(hash(5, 7) % 4).expect("small");
    let mut net = Net::new(vec![hop(1), hop(chosen), hop(30)]);
    let result = run(&spec(enough(500)), ProbeMatching::ByNumber, &mut net);
    let hashes: BTreeSet<_> = result.routes.iter().map(|route| route.hash).collect();
    assert_eq!((hashes.len(), result.routes.len()), (1, 8));
}

#[test]
fn silent_hops_are_gaps_and_get_few_probes() {
    for matching in [ProbeMatching::ByNumber, ProbeMatching::OneAtATime] {
        let mut net = Net::new(vec![hop(1), Stage::Silent, Stage::Silent, hop(4)]);
        let run = run(&spec(these(32)), matching, &mut net);
        let expected = vec![
            Some(addr(1)),
            None,
            None,
            Some(addr(4)),
            Some(net::DESTINATION),
        ];
        assert!(addresses(&run).iter().all(|address| *address == expected));
        let requested: u32 = run.routes.iter().map(|route| route.hops[1].probes).sum();
        assert!(
            requested <= 40,
            "{requested} probes of 32 flows for nothing"
        );
    }
}

#[test]
fn a_destination_that_is_silent_ends_after_a_few_hops() {
    let mut net = Net::new(vec![hop(1), hop(2)]);
    net.mute = true;
    let run = run(&spec(these(4)), ProbeMatching::ByNumber, &mut net);
    assert!(run.routes.iter().all(|route| route.end == TraceEnd::Silent));
    assert!(run.routes.iter().all(|route| route.hops.len() == 2));
    assert!(net.farthest <= 8, "asked up to {}", net.farthest);
    assert!(run.duration <= Span::from_secs(8), "{}", run.duration);
}

#[test]
fn a_rate_limited_router_is_probed_slowly_until_it_answers_every_flow() {
    // Ten answers a second, asked at fifty.
    let mut net = Net::new(vec![
        hop(1),
        Stage::Limited(2, Span::from_millis(100)),
        hop(3),
    ]);
    let run = run(&spec(these(24)), ProbeMatching::ByNumber, &mut net);
    let holes = run
        .routes
        .iter()
        .filter(|route| route.hops[1].address.is_none());
    assert_eq!(holes.count(), 0);
    assert!(run.duration < Span::from_secs(60), "{}", run.duration);
}

#[test]
fn lost_probes_are_retried() {
    let mut net = Net::new(vec![hop(1), hop(2), hop(3)]);
    net.loss_percent = 10;
    let run = run(&spec(these(32)), ProbeMatching::ByNumber, &mut net);
    for route in &run.routes {
        assert!(route.reached(), "{route:?}");
        assert_eq!(
            route.addresses().into_iter().flatten().count(),
            4,
            "{route:?}"
        );
        assert!(route.hops.iter().any(|hop| hop.probes > 0));
    }
    let (requested, answered) = run
        .routes
        .iter()
        .flat_map(|route| &route.hops)
        .fold((0, 0), |(requested, answered), hop| {
            (requested + hop.probes, answered + hop.round_trips.len())
        });
    assert!(
        answered < usize::try_from(requested).expect("few"),
        "loss is counted"
    );
}

#[test]
fn a_routing_loop_is_reported_and_ends_the_trace() {
    let stages = (0..30).map(|at| hop(10 + at % 2)).collect();
    let mut net = Net::new(stages);
    let run = run(&spec(these(2)), ProbeMatching::ByNumber, &mut net);
    for route in &run.routes {
        assert_eq!(route.end, TraceEnd::Loop { at: addr(10) });
        assert_eq!(route.hops.len(), 5, "10, 11, 10, 11, 10");
    }
}

#[test]
fn a_router_that_refuses_ends_the_route() {
    let mut net = Net::new(vec![hop(1), Stage::Refuses(2, 13), hop(3)]);
    let run = run(&spec(these(2)), ProbeMatching::ByNumber, &mut net);
    for route in &run.routes {
        let (from, code) = (addr(2), 13);
        assert_eq!(route.end, TraceEnd::Unreachable { from, code });
        assert_eq!(route.hops.len(), 2);
    }
}

#[test]
fn a_trace_probes_no_hop_beyond_its_maximum() {
    let mut net = Net::new(vec![hop(1), hop(2), hop(3), hop(4), hop(5)]);
    let mut near_spec = spec(these(1));
    near_spec.max_hops = 3;
    let run = run(&near_spec, ProbeMatching::ByNumber, &mut net);
    assert_eq!((run.routes[0].end, net.farthest), (TraceEnd::TooFar, 3));
}

#[test]
fn neither_the_total_nor_the_per_hop_rate_is_exceeded() {
    let mut net = Net::new(vec![hop(1), hop(2), hop(3), hop(4), hop(5), hop(6)]);
    let mut spec = spec(these(40));
    (spec.hop_rate, spec.rate) = (40, 100);
    run(&spec, ProbeMatching::ByNumber, &mut net);
    let per_second = |ttl: Option<u8>| {
        let sent = net
            .sends
            .iter()
            .filter(|(_, to)| ttl.is_none_or(|ttl| ttl == *to));
        let sent: Vec<i64> = sent.map(|(at, _)| *at).collect();
        let within = |from: i64| {
            sent.iter()
                .filter(move |at| (from..from + 1_000_000_000).contains(at))
        };
        sent.iter().map(|from| within(*from).count()).max()
    };
    assert!(per_second(Some(1)) <= Some(40) && per_second(Some(7)) <= Some(40));
    assert_eq!(per_second(None), Some(100), "and the rate in all is used");
}

#[test]
fn a_trace_stopped_early_reports_its_known_hops() {
    let mut net = Net::new(vec![hop(1), hop(2), hop(3)]);
    net.until = Some(Span::from_millis(15));
    let run = run(&spec(these(1)), ProbeMatching::ByNumber, &mut net);
    assert_eq!(run.routes[0].end, TraceEnd::Stopped);
    assert_eq!(run.routes[0].addresses(), vec![Some(addr(1))]);
}

#[test]
fn a_destination_that_rarely_answers_has_one_hop_distance() {
    let mut net = Net::new(vec![hop(1), balanced(3, &[10, 11, 12, 13]), hop(30)]);
    net.reluctant = Some(Span::from_secs(1));
    let result = run(&spec(these(16)), ProbeMatching::ByNumber, &mut net);
    for route in &result.routes {
        assert!(route.reached(), "{route:?}");
        assert_eq!(route.hops.len(), 4, "{route:?}");
    }
    assert!(result.duration < Span::from_secs(90), "{}", result.duration);
}

#[test]
fn linux_routers_are_traced_despite_their_icmp_rate_limit() {
    let limited = |last| Stage::Limited(last, Span::from_secs(1));
    let mut net = Net::new(vec![limited(1), limited(2), limited(3)]);
    net.reluctant = Some(Span::from_secs(1));
    let result = run(&spec(enough(500)), ProbeMatching::ByNumber, &mut net);
    assert_eq!((result.routes.len(), result.enough), (8, Some(true)));
    for route in &result.routes {
        assert_eq!(
            route.addresses().into_iter().flatten().count(),
            4,
            "{route:?}"
        );
    }
    assert!(result.duration < Span::from_secs(90), "{}", result.duration);
}
