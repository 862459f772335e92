use std::collections::BTreeSet;

use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, Permit, ProbeKind, ReadBy, ReflectorSpec,
    Stop,
};

use super::*;
use crate::Reflector;
use crate::fleet::FleetRun;
use crate::fleet::driver;
use crate::fleet::reports::FleetReports;
use crate::fleet::sockets::Sockets;
use crate::fleet::spec::{FleetReport, FleetTally};
use crate::spec::Priority;

fn spec(endpoints: &[SocketAddr], slots: u32, count: u64) -> FleetSpec {
    let endpoint = |address: &SocketAddr| FleetEndpoint {
        name: address.to_string(),
        address: *address,
    };
    FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Udp,
            slots,
            endpoints: endpoints.iter().map(endpoint).collect(),
            interval: Span::from_millis(100),
            lifetime: None,
            criteria: None,
        },
        count: Some(count),
        request_size: 0,
        response_size: 0,
        timeout: Span::from_millis(500),
        first_port: None,
        rate_cap: 200_000,
        permit: Permit::ANYTHING,
        key: None,
        priority: Priority::Normal,
        site: None,
        sharing: None,
    }
}

/// Where a test that is skipped has failed.
fn is_ci() -> bool {
    std::env::var("CI").as_deref() == Ok("true")
}

/// Carries a fleet out over shared sockets; `None` where that is not permitted.
fn measure(test: &str, spec: FleetSpec) -> Option<(Vec<FleetMessage>, FleetTally)> {
    let transport = match SharedSockets::new(&spec) {
        Ok(transport) => transport,
        Err(error) => {
            assert!(!is_ci(), "{test}: {error}");
            println!("SKIP {test}: {error}");
            return None;
        }
    };
    let (reports, receiver) = FleetReports::new();
    let carrying = std::thread::spawn(move || {
        driver::drive(&spec, Box::new(transport), reports, &Stop::new())
    });
    let (mut messages, mut tally) = (Vec::new(), FleetTally::default());
    for report in receiver {
        match report {
            FleetReport::Messages(more) => messages.extend(more),
            FleetReport::Ended(end) => tally = end,
            FleetReport::Opened { sharing, .. } => assert_eq!(sharing, Sharing::SharedSockets),
            FleetReport::Anchor(_) | FleetReport::ClockStepped(_) | FleetReport::NotSent(_) => {}
        }
    }
    carrying.join().expect("no panic").expect("it could begin");
    Some((messages, tally))
}

#[test]
fn two_sockets_carry_hundreds_of_flows_to_two_endpoints_of_each_version() {
    for here in ["127.0.0.1:0", "[::1]:0"] {
        let at = here.parse().expect("an address");
        let start = || Reflector::start(&ReflectorSpec::at(at)).expect("a port");
        let (first, two) = (start(), start());
        let spec = spec(&[first.address(), two.address()], 300, 5);
        let test = "two_sockets_carry_hundreds_of_flows";
        let Some((messages, tally)) = measure(test, spec) else {
            return;
        };
        assert_eq!(
            (tally.sent, tally.replies, tally.lost),
            (1_500, 1_500, 0),
            "{tally:?}"
        );
        assert_eq!(tally.dropped_here, 0);
        assert!(tally.unstamped < 150, "{tally:?}");
        for message in &messages {
            let FleetOutcome::Reply(reply) = message.outcome else {
                panic!("{message:?}");
            };
            let peer = reply.peer_report.expect("our reflector tells");
            assert_eq!((reply.ttl, peer.ttl), (Some(64), Some(64)));
            assert_eq!(peer.count, Some(message.seq), "each flow is one there too");
            if reply.read_by == ReadBy::Kernel {
                assert!(reply.round_trip > Span::ZERO && reply.network() > Span::ZERO);
            }
        }
    }
}

#[test]
fn replaced_flows_use_new_ports_and_accept_late_replies() {
    let spec_of = ReflectorSpec {
        // Longer than a flow lives.
        reply_delay: Span::from_millis(30),
        ..ReflectorSpec::at("127.0.0.1:0".parse().expect("an address"))
    };
    let reflector = Reflector::start(&spec_of).expect("a port");
    let mut spec = spec(&[reflector.address()], 2, 8);
    spec.fleet.lifetime = Some(Span::from_millis(100));
    let Some((messages, tally)) = measure("replaced_flows_use_new_ports", spec) else {
        return;
    };
    assert_eq!((tally.replies, tally.lost), (16, 0), "{tally:?}");
    let mut ports: Vec<u16> = messages.iter().map(|message| message.source_port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 16);
    assert!(messages.iter().all(|message| message.seq == 0));
}

#[test]
fn simultaneous_fleets_get_only_their_own_replies() {
    let start = || {
        let at = "127.0.0.1:0".parse().expect("an address");
        Reflector::start(&ReflectorSpec::at(at)).expect("a port")
    };
    let reflector = start();
    let carried = [(), ()].map(|()| {
        let spec = spec(&[reflector.address()], 100, 5);
        std::thread::spawn(move || measure("two_fleets_at_once", spec))
    });
    let carried = carried.map(|thread| thread.join().expect("no panic"));
    for result in carried {
        let Some((messages, tally)) = result else {
            return;
        };
        assert_eq!(
            (tally.replies, tally.lost, tally.copies),
            (500, 0, 0),
            "{tally:?}"
        );
        assert_eq!(messages.len(), 500);
    }
}

#[test]
fn fleets_with_separate_and_shared_sockets_use_separate_ports() {
    let at = "127.0.0.1:0".parse().expect("an address");
    let reflector = Reflector::start(&ReflectorSpec::at(at)).expect("a port");
    let spec = |slots| spec(&[reflector.address()], slots, 5);
    let test = "a_fleet_of_sockets_and_one_that_shares_them";
    let (of_sockets, sharing) = (spec(100), spec(100));
    let sockets = std::thread::spawn(move || {
        let run = FleetRun::start(of_sockets, Stop::new()).expect("a fleet that can be");
        run.reports().iter().collect::<Vec<_>>()
    });
    let shared = measure(test, sharing);
    let socket_count = sockets.join().expect("no panic");
    let Some((messages, tally)) = shared else {
        return;
    };
    let is_complete = |tally: &FleetTally| (tally.replies, tally.lost, tally.copies) == (500, 0, 0);
    assert!(is_complete(&tally), "{tally:?}");
    let ports: BTreeSet<u16> = messages.iter().map(|message| message.source_port).collect();
    assert_eq!(ports.len(), 100);
    for report in socket_count {
        match report {
            FleetReport::Opened { sources, sharing } => {
                assert_eq!(sharing, Sharing::SocketPerFlow);
                assert!(sources.iter().all(|port| !ports.contains(port)));
            }
            FleetReport::Ended(tally) => assert!(is_complete(&tally), "{tally:?}"),
            _ => {}
        }
    }
}

#[test]
fn fleets_with_bound_and_unbound_ports_detect_each_other_in_either_order() {
    let spec = FleetSpec {
        first_port: Some(40_000),
        ..spec(&["127.0.0.1:9".parse().expect("an address")], 8, 1)
    };
    let test = "who_binds_ports_and_who_does_not";
    let shared = || match SharedSockets::new(&spec) {
        Ok(shared) => Some(shared),
        Err(error) => {
            assert!(!is_ci(), "{test}: {error}");
            println!("SKIP {test}: {error}");
            None
        }
    };
    let slots = || (0..8).map(Slot);
    let Some(mut first) = shared() else { return };
    let mut sockets = Sockets::new(&spec).expect("no privilege is needed");
    let blocks = |ports: &[u16]| {
        ports
            .iter()
            .map(|port| port / 1_024)
            .collect::<BTreeSet<_>>()
    };
    let open = |transport: &mut dyn Transport| -> Vec<u16> {
        let opened = slots().map(|slot| transport.open(slot, now()).expect("a port"));
        opened.collect()
    };
    let firsts = open(&mut first);
    let bound = open(&mut sockets);
    assert!(
        blocks(&firsts).is_disjoint(&blocks(&bound)),
        "{firsts:?} {bound:?}"
    );
    drop(first);
    let Some(mut second) = shared() else { return };
    let mut seconds = BTreeSet::new();
    while seconds.range(bound[7]..).next().is_none() {
        seconds.extend(open(&mut second));
    }
    assert!(bound.iter().all(|port| !seconds.contains(port)));
}
