use neph_model::{Fleet, FleetEndpoint, FleetMessage, FleetOutcome, ProbeKind, ReadBy};

use super::*;
use crate::fleet::driver;
use crate::fleet::reports::FleetReports;
use crate::fleet::spec::{FleetReport, FleetTally};
use crate::spec::Priority;
use crate::stop::Stop;
use crate::{Reflector, ReflectorSpec};

fn spec(endpoints: &[SocketAddr], lanes: u32, count: u64) -> FleetSpec {
    let endpoint = |address: &SocketAddr| FleetEndpoint {
        name: address.to_string(),
        address: *address,
    };
    FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Udp,
            lanes,
            endpoints: endpoints.iter().map(endpoint).collect(),
            interval: Span::from_millis(100),
            renewal: None,
            criteria: None,
        },
        count: Some(count),
        request_size: 0,
        timeout: Span::from_millis(500),
        first_port: None,
        rate_cap: 200_000,
        key: None,
        priority: Priority::Normal,
        site: None,
    }
}

/// Carries a fleet out over shared sockets; `None` where that is not permitted.
fn measure(test: &str, spec: FleetSpec) -> Option<(Vec<FleetMessage>, FleetTally)> {
    let transport = match Shared::new(&spec) {
        Ok(transport) => transport,
        Err(error) => {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{test}: {error}"
            );
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
            FleetReport::Opened { how, .. } => assert_eq!(how, Sharing::OneForAll),
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
        let (one, two) = (start(), start());
        let spec = spec(&[one.address(), two.address()], 300, 5);
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
            let peer = reply.at_peer.expect("our reflector tells");
            assert_eq!((reply.ttl, peer.ttl), (Some(64), Some(64)));
            assert_eq!(peer.count, Some(message.seq), "each flow is one there too");
            if reply.read_by == ReadBy::Kernel {
                assert!(reply.round_trip > Span::ZERO && reply.network() > Span::ZERO);
            }
        }
    }
}

#[test]
fn renewed_flows_come_from_new_ports_and_their_late_replies_are_taken() {
    let spec_of = ReflectorSpec {
        // Longer than a flow lives.
        think: Span::from_millis(30),
        ..ReflectorSpec::at("127.0.0.1:0".parse().expect("an address"))
    };
    let reflector = Reflector::start(&spec_of).expect("a port");
    let mut spec = spec(&[reflector.address()], 2, 8);
    spec.fleet.renewal = Some(Span::from_millis(100));
    let Some((messages, tally)) = measure("renewed_flows_come_from_new_ports", spec) else {
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
fn two_fleets_at_once_have_each_their_own_replies() {
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
    for told in carried {
        let Some((messages, tally)) = told else {
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
