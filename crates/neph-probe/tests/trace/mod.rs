//! Traces through real routers: every path is found, and each flow's is the one that it took.

mod diamond;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use neph_model::{FlowRoute, ReadBy, ReflectorSpec, Span, Stop, TraceEnd, TraceKind};
use neph_probe::{FlowSet, PortUse, Reflector, Sockets, TraceSpec, trace, trace_flow};
use neph_sys::process;

use crate::support::{eventually, has, is_root, skip};
use diamond::{BOTH, Diamond, Family};

const PORT: u16 = 33_434;
/// For 99 %, as neph-stats derives them.
const NEEDED: [u32; 5] = [8, 15, 21, 28, 36];

fn is_possible(test: &str) -> bool {
    if !is_root() || !has("ip", "-V") || !has("nft", "-v") {
        skip(test, "network namespaces need root, the ip program and nft");
        return false;
    }
    true
}

fn enough() -> FlowSet {
    FlowSet::Enough {
        needed: NEEDED.to_vec(),
        max_flows: 512,
        first: 24_000,
    }
}

/// A trace to the far end, faster than one would ask strangers.
fn spec(family: Family, kind: TraceKind, flows: FlowSet) -> TraceSpec {
    let destination = SocketAddr::new(family.address(30, 2), PORT);
    TraceSpec {
        hop_rate: 400,
        rate: 2000,
        timeout: Span::from_millis(300),
        ..TraceSpec::new(destination, kind, flows)
    }
}

/// Which branch each route took.
fn branches(routes: &[FlowRoute], family: Family, count: u8) -> BTreeMap<u16, u8> {
    let number = |address: Option<IpAddr>| {
        (1..=count).find(|branch| address == Some(family.address(10 + branch, 2)))
    };
    let taken = |route: &FlowRoute| {
        let branch = number(route.hops[1].address);
        let branch = branch.unwrap_or_else(|| panic!("no branch: {route:?}"));
        (route.source_port, branch)
    };
    routes.iter().map(taken).collect()
}

#[test]
fn all_four_paths_are_found_and_each_flow_is_on_its_own() {
    if !is_possible("all_four_paths_are_found_and_each_flow_is_on_its_own") {
        return;
    }
    let net = Diamond::up("four", 4);
    net.watch(PORT);
    for family in BOTH {
        for kind in [TraceKind::Udp, TraceKind::Syn] {
            let spec = spec(family, kind, enough());
            let flow_trace = trace(&spec, Some(&net.placement("here")), &Stop::new())
                .expect("a trace")
                .trace;
            let taken = branches(&flow_trace.routes, family, 4);
            let paths: BTreeSet<u8> = taken.values().copied().collect();
            assert_eq!(paths.len(), 4, "{family:?} {kind:?}: {taken:?}");
            assert_eq!(flow_trace.enough, Some(true));
            // 28 flows rule out a fifth path; 8 behind each of the four rule out further ones there.
            assert!((28..=96).contains(&taken.len()), "{} flows", taken.len());
            for (port, branch) in &taken {
                for other in 1..=4 {
                    let has_port = net.ports_seen(other).contains(port);
                    assert_eq!(has_port, other == *branch, "{kind:?}: {port} at {other}");
                }
            }
            for route in &flow_trace.routes {
                assert_eq!(route.end, TraceEnd::Reached);
                let ends: Vec<_> = [0, 2, 3].map(|at| route.hops[at].address).to_vec();
                // Linux answers from the address that leads back, for IPv6 from where it came in.
                let inward = match family {
                    Family::V4 => 21,
                    Family::V6 => 20 + taken[&route.source_port],
                };
                let expected = [(1, 2), (inward, 2), (30, 2)];
                let expected = expected.map(|(net, host)| Some(family.address(net, host)));
                assert_eq!(ends, expected);
                assert!(
                    route.hops.iter().all(|hop| hop.other_addresses.is_empty()),
                    "{route:?}"
                );
                assert!(
                    route.hops.iter().all(|hop| hop.read_by == ReadBy::Kernel),
                    "{route:?}"
                );
            }
            let hashes: BTreeSet<_> = flow_trace.routes.iter().map(|route| route.hash).collect();
            assert_eq!(hashes.len(), 4);
            // The next kind uses the same ports: forget who went where.
            for branch in 1..=4 {
                let flush = ["nft", "flush", "set", "inet", "watch", "ports"];
                net.run(&format!("a{branch}"), &flush);
            }
        }
    }
    without_privilege(&net);
    echoes(&net);
    beside_its_owner(&net);
}

/// The kernel's own sockets take the same paths as packets of our making.
fn without_privilege(net: &Diamond) {
    for family in BOTH {
        let flows = FlowSet::These((25_000..25_012).collect());
        let raw = spec(family, TraceKind::Udp, flows);
        let mut plain = raw.clone();
        plain.sockets = Sockets::Plain;
        let here = net.placement("here");
        let [raw, plain] = [raw, plain].map(|spec| {
            trace(&spec, Some(&here), &Stop::new())
                .expect("a trace")
                .trace
                .routes
        });
        let paths = |routes: &[FlowRoute]| -> Vec<_> {
            let known = routes
                .iter()
                .map(|route| (route.source_port, route.addresses()));
            known.collect()
        };
        assert_eq!(paths(&raw), paths(&plain), "{family:?}");
        assert!(plain.iter().all(FlowRoute::reached));
        for hop in plain.iter().flat_map(|route| &route.hops) {
            assert_eq!((hop.probes, hop.round_trips.len()), (3, 3), "{hop:?}");
        }
    }
}

/// Echo requests keep their path: Linux does not balance them by their identifier, others do.
fn echoes(net: &Diamond) {
    net.set("here", "net/ipv4/ping_group_range", "0 2147483647");
    for family in BOTH {
        for sockets in [Sockets::BestPermitted, Sockets::Plain] {
            let mut spec = spec(family, TraceKind::Icmp, FlowSet::These(vec![7, 700]));
            spec.destination.set_port(0);
            spec.sockets = sockets;
            let here = net.placement("here");
            let flow_trace = trace(&spec, Some(&here), &Stop::new())
                .expect("a trace")
                .trace;
            for route in &flow_trace.routes {
                assert_eq!(route.end, TraceEnd::Reached, "{sockets:?} {family:?}");
                assert_eq!(route.hops.len(), 4);
                assert!(
                    route.hops.iter().all(|hop| hop.other_addresses.is_empty()),
                    "{route:?}"
                );
            }
            branches(&flow_trace.routes, family, 4);
        }
    }
}

/// A flow that somebody is using is traced beside them, and is on the same path.
fn beside_its_owner(net: &Diamond) {
    let here = net.placement("here");
    for family in BOTH {
        let flows = FlowSet::These(vec![26_000]);
        let spec = spec(family, TraceKind::Udp, flows);
        let single_trace = trace(&spec, Some(&here), &Stop::new())
            .expect("a trace")
            .trace;
        let alongside = here.run(|| {
            let owner = UdpSocket::bind((family.address(1, 1), 26_000)).expect("a free port");
            let taken = trace(&spec, None, &Stop::new())
                .expect_err("it is taken")
                .to_string();
            assert!(taken.contains("take source port 26000"), "{taken}");
            let mut combined = spec.clone();
            combined.flows = FlowSet::These(vec![26_000, 26_001]);
            let flow_trace = trace(&combined, None, &Stop::new()).expect("a port is free");
            let traced = flow_trace
                .trace
                .routes
                .iter()
                .map(|route| route.source_port);
            assert_eq!(traced.collect::<Vec<_>>(), [26_001]);
            assert_eq!(flow_trace.left_out.len(), 1, "{:?}", flow_trace.left_out);
            let tracing = trace_flow(spec.destination, TraceKind::Udp, 26_000, Some(&here));
            let traced = tracing.expect("a thread").join().expect("a trace");
            drop(owner);
            let (first, last) = traced.answered.expect("routers answered");
            assert!(first <= last);
            traced.route
        });
        let alongside = alongside.expect("the place is there");
        assert_eq!(alongside.hash, single_trace.routes[0].hash, "{family:?}");
    }
}

#[test]
fn a_trace_to_a_listener_or_a_reflector_reaches_it() {
    if !is_possible("a_trace_to_a_listener_or_a_reflector_reaches_it") {
        return;
    }
    let net = Diamond::up("reached", 1);
    let (here, other_placement) = (net.placement("here"), net.placement("there"));
    let listen = |address| {
        other_placement
            .run(|| TcpListener::bind(address))
            .expect("the place is there")
    };
    for family in BOTH {
        let spec = spec(family, TraceKind::Syn, FlowSet::These(vec![25_000, 25_001]));
        let listener = listen(spec.destination).expect("a free port");
        let flow_trace = trace(&spec, Some(&here), &Stop::new())
            .expect("a trace")
            .trace;
        assert!(
            flow_trace.routes.iter().all(FlowRoute::reached),
            "{flow_trace:?}"
        );
        assert!(flow_trace.routes.iter().all(|route| route.hops.len() == 4));
        // Our kernel refuses what the listener offers: nothing stays half open.
        eventually("no half-open connection", || {
            let open = net.run("there", &["ss", "-Htan", "state", "syn-recv"]);
            open.trim().is_empty()
        });
        drop(listener);
    }
    for family in BOTH {
        let flows = FlowSet::These(vec![25_000, 25_001]);
        let mut spec = spec(family, TraceKind::Udp, flows);
        let wildcard_address: IpAddr = match family {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        let wildcard_reflector = ReflectorSpec::at(SocketAddr::new(wildcard_address, PORT));
        let reflector = Reflector::start_in(&wildcard_reflector, &other_placement);
        let reflector = reflector.expect("a reflector");
        for sockets in [Sockets::BestPermitted, Sockets::Plain] {
            spec.sockets = sockets;
            let flow_trace = trace(&spec, Some(&here), &Stop::new())
                .expect("a trace")
                .trace;
            for route in &flow_trace.routes {
                let last = route.destination().expect("the reflector answers");
                assert_eq!(last.round_trips.len(), 3, "{sockets:?} {family:?} {last:?}");
            }
        }
        // Nor does it count what is asked on behalf of a flow in use.
        spec.sockets = Sockets::BestPermitted;
        spec.ports = PortUse::Shared;
        let flow_trace = trace(&spec, Some(&here), &Stop::new())
            .expect("a trace")
            .trace;
        let is_silent = |route: &FlowRoute| route.end == TraceEnd::Silent;
        assert!(flow_trace.routes.iter().all(is_silent));
        assert!(flow_trace.routes.iter().all(|route| route.hops.len() == 3));
        drop(reflector);
    }
}

/// Linux tells a peer of one expired packet a second, after a few at once.
#[test]
fn routers_that_answer_once_a_second_are_waited_for() {
    if !is_possible("routers_that_answer_once_a_second_are_waited_for") {
        return;
    }
    let net = Diamond::up("seldom", 1);
    net.set("a1", "net/ipv4/icmp_ratelimit", "1000");
    let spec = TraceSpec::new(
        SocketAddr::new(Family::V4.address(30, 2), PORT),
        TraceKind::Udp,
        FlowSet::These((25_000..25_010).collect()),
    );
    let flow_trace = trace(&spec, Some(&net.placement("here")), &Stop::new())
        .expect("a trace")
        .trace;
    for route in &flow_trace.routes {
        assert_eq!(
            route.addresses().into_iter().flatten().count(),
            4,
            "{route:?}"
        );
    }
}

#[test]
fn mtr_and_scamper_report_the_same_single_path() {
    const NAME: &str = "mtr_and_scamper_report_the_same_single_path";
    if !is_possible(NAME) {
        return;
    }
    let net = Diamond::up("single", 1);
    for family in BOTH {
        let spec = spec(family, TraceKind::Udp, FlowSet::These(vec![25_000]));
        let flow_trace = trace(&spec, Some(&net.placement("here")), &Stop::new())
            .expect("a trace")
            .trace;
        let ours: Vec<String> = flow_trace.routes[0]
            .addresses()
            .into_iter()
            .map(|address| address.map_or_else(|| "?".to_owned(), |address| address.to_string()))
            .collect();
        let to = spec.destination.ip().to_string();
        if has("mtr", "--version") {
            let command = [
                "mtr",
                "-G",
                "1",
                "--report-wide",
                "-n",
                "-c",
                "3",
                "-i",
                "0.1",
                "--json",
                &to,
            ];
            let report: serde_json::Value =
                serde_json::from_str(&net.run("here", &command)).expect("JSON");
            let hubs = report["report"]["hubs"].as_array().expect("hubs").iter();
            let hosts: Vec<&str> = hubs.filter_map(|hub| hub["host"].as_str()).collect();
            assert_eq!(ours, hosts, "mtr");
        } else {
            skip(NAME, "mtr is not installed (Debian's mtr-tiny)");
        }
        // It tells its version with an exit status of failure.
        if process::command("scamper").arg("-v").output().is_ok() {
            // Its UDP over IPv6 gets no answers here, whatever the routers are.
            let method = match family {
                Family::V4 => "udp-paris",
                Family::V6 => "icmp-paris",
            };
            let ask = format!("trace -w 1 -P {method} -d {PORT} {to}");
            let stdout = net.run("here", &["scamper", "-O", "json", "-I", &ask]);
            let trace = stdout
                .lines()
                .find(|line| line.contains("\"hops\""))
                .unwrap_or_else(|| panic!("no trace: {stdout}"));
            let trace: serde_json::Value = serde_json::from_str(trace).expect("JSON");
            let hops = trace["hops"].as_array().expect("hops").iter();
            let hosts: Vec<&str> = hops.filter_map(|hop| hop["addr"].as_str()).collect();
            assert_eq!(ours, hosts, "scamper");
        } else {
            skip(NAME, "scamper is not installed");
        }
    }
}
