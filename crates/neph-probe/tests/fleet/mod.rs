//! Fleets against a reflector over loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, Permit, ProbeKind, ReadBy, ReflectorCaps,
    ReflectorSpec, Slot, Span, Stop,
};
use neph_probe::{
    FleetReport, FleetRun, FleetSpec, FleetTally, Priority, Reflector, RefusalWatch, Sharing,
};

use crate::loopback::reflector;

/// A fleet to `address` whose slots send 20 messages a second.
pub(crate) fn fleet(address: SocketAddr, slots: u32, count: u64) -> FleetSpec {
    FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Udp,
            slots,
            endpoints: vec![FleetEndpoint {
                name: "reflector".to_owned(),
                address,
            }],
            interval: Span::from_millis(50),
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

/// What a fleet told.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) sources: Vec<u16>,
    pub(crate) sharing: Option<Sharing>,
    pub(crate) messages: Vec<FleetMessage>,
    pub(crate) tally: FleetTally,
    /// Why the first message that was not sent was not.
    pub(crate) not_sent: Option<String>,
}

pub(crate) fn measure(spec: FleetSpec) -> Reported {
    let run = FleetRun::start(spec, Stop::new()).expect("a fleet that can be");
    let mut result = Reported {
        sources: Vec::new(),
        sharing: None,
        messages: Vec::new(),
        tally: FleetTally::default(),
        not_sent: None,
    };
    for report in run.reports() {
        match report {
            FleetReport::Opened { sources, sharing } => {
                result.sources = sources;
                result.sharing = Some(sharing);
            }
            FleetReport::Messages(messages) => result.messages.extend(messages),
            FleetReport::Ended(tally) => result.tally = tally,
            FleetReport::NotSent(why) => result.not_sent = Some(why),
            FleetReport::Anchor(_) | FleetReport::ClockStepped(_) => {}
        }
    }
    run.join().expect("it could begin");
    result
}

/// Each flow's numbers, in the order in which they were reported.
fn numbers(result: &Reported) -> BTreeMap<(Slot, u16), Vec<u32>> {
    let mut numbers: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for message in &result.messages {
        let flow = (message.slot, message.source_port);
        numbers.entry(flow).or_default().push(message.seq);
    }
    numbers
}

#[test]
fn each_flow_of_a_fleet_reports_its_messages_once_and_in_order() {
    let reflector = reflector(Span::ZERO);
    let result = measure(fleet(reflector.address(), 64, 10));
    assert_eq!(result.sharing, Some(Sharing::SocketPerFlow));
    let ports: BTreeSet<u16> = result.sources.iter().copied().collect();
    assert_eq!(ports.len(), 64);
    let numbers = numbers(&result);
    assert_eq!(numbers.len(), 64);
    for ((slot, port), numbers) in numbers {
        assert_eq!(port, result.sources[slot.0 as usize]);
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    }
    assert_eq!((result.tally.sent, result.tally.replies), (640, 640));
    assert_eq!((result.tally.lost, result.tally.dropped_here), (0, 0));
    let stamped = result.messages.iter().filter_map(FleetMessage::reply);
    let by_kernel = stamped.filter(|reply| reply.read_by == ReadBy::Kernel);
    assert_eq!(by_kernel.count() as u64, 640 - result.tally.unstamped);
    assert!(result.tally.unstamped < 64, "{:?}", result.tally);
}

#[test]
fn a_fleet_reply_contains_its_ttl_and_the_peers_report() {
    let reflector = reflector(Span::from_millis(2));
    let result = measure(fleet(reflector.address(), 4, 5));
    for message in &result.messages {
        let FleetOutcome::Reply(reply) = message.outcome else {
            panic!("{message:?}");
        };
        let peer = reply.peer_report.expect("our reflector tells");
        assert_eq!((reply.ttl, peer.ttl), (Some(64), Some(64)));
        assert_eq!(peer.count, Some(message.seq));
        assert!(peer.residence >= Span::from_millis(2), "{peer:?}");
        assert!(reply.round_trip >= peer.residence, "{reply:?}");
        assert!(reply.network() < reply.round_trip);
    }
}

#[test]
fn flows_that_are_renewed_take_new_ports_and_count_from_0() {
    let reflector = reflector(Span::ZERO);
    let mut spec = fleet(reflector.address(), 8, 12);
    spec.fleet.lifetime = Some(Span::from_millis(200));
    let result = measure(spec);
    let numbers = numbers(&result);
    for numbers in numbers.values() {
        assert_eq!(*numbers, (0_u32..).take(numbers.len()).collect::<Vec<_>>());
        assert!(numbers.len() <= 4);
    }
    assert!(numbers.len() >= 8 * 3, "{}", numbers.len());
    let ports: BTreeSet<u16> = numbers.keys().map(|(_, port)| *port).collect();
    assert_eq!(ports.len(), numbers.len());
    assert_eq!(result.tally.replies, 96, "{:?}", result.tally);
}

#[test]
fn a_silent_target_loses_every_message() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let result = measure(fleet(silent.local_addr().expect("bound"), 8, 3));
    assert_eq!((result.tally.sent, result.tally.lost), (24, 24));
    let lost = |message: &FleetMessage| message.outcome == FleetOutcome::Lost;
    assert!(result.messages.len() == 24 && result.messages.iter().all(lost));
}

#[test]
fn a_fleet_that_cannot_be_is_one_sentence() {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let mut spec = fleet(nobody, 512, 1);
    spec.rate_cap = 1_000;
    let refused = FleetRun::start(spec, Stop::new()).expect_err("too fast");
    let message = refused.to_string();
    assert!(
        message.contains("10240 messages a second, and the cap is 1000"),
        "{message}"
    );
}

/// A reflector on loopback with these caps.
fn capped(caps: ReflectorCaps) -> Reflector {
    let spec = ReflectorSpec::at(([127, 0, 0, 1], 0).into());
    Reflector::start(&ReflectorSpec { caps, ..spec }).expect("loopback has a free port")
}

#[test]
fn messages_over_the_rate_cap_are_reported_apart_from_loss() {
    let reflector = capped(ReflectorCaps {
        messages_per_second: 5,
        ..ReflectorCaps::default()
    });
    // Of 320 messages in 2 s, or what a busy machine makes of them, 5 pass at once and 5 a second.
    let spec = fleet(reflector.address(), 8, 40);
    let watch = RefusalWatch::begin(&spec);
    let result = measure(spec);
    let refused = watch.end();
    assert_eq!(refused.len(), 1);
    let (endpoint, refused) = &refused[0];
    assert_eq!(endpoint.name, "reflector");
    assert_eq!((refused.messages_per_second, refused.connections), (5, 0));
    assert!(
        refused.messages >= 200 && result.tally.lost >= 200,
        "{refused:?}, {:?}",
        result.tally
    );
}

#[test]
fn a_reflector_with_two_names_reports_its_refusals_once() {
    let reflector = capped(ReflectorCaps {
        messages_per_second: 5,
        ..ReflectorCaps::default()
    });
    let mut spec = fleet(reflector.address(), 8, 40);
    let renamed = FleetEndpoint {
        name: "again".to_owned(),
        ..spec.fleet.endpoints[0].clone()
    };
    spec.fleet.endpoints.push(renamed);
    let watch = RefusalWatch::begin(&spec);
    measure(spec);
    let refused = watch.end();
    let names: Vec<&str> = refused
        .iter()
        .map(|(endpoint, _)| endpoint.name.as_str())
        .collect();
    assert_eq!(names, ["reflector"]);
}

#[test]
fn a_fleet_within_the_reflectors_limits_reports_no_refusals() {
    let reflector = capped(ReflectorCaps::default());
    let spec = fleet(reflector.address(), 8, 4);
    let watch = RefusalWatch::begin(&spec);
    let result = measure(spec);
    assert_eq!((result.tally.lost, watch.end()), (0, Vec::new()));
}

#[test]
fn connections_beyond_the_reflectors_cap_are_reported() {
    let caps = ReflectorCaps {
        connections_per_peer: 4,
        ..ReflectorCaps::default()
    };
    let reflector = capped(caps);
    let mut spec = fleet(reflector.address(), 8, 20);
    spec.fleet.probe = ProbeKind::Tcp;
    let watch = RefusalWatch::begin(&spec);
    let result = measure(spec);
    let refused = watch.end();
    assert_eq!(refused.len(), 1, "{:?}", result.tally);
    let refused = refused[0].1;
    assert!(
        refused.connections >= 4 && refused.connections_per_peer == 4,
        "{refused:?}"
    );
    assert!(
        result.tally.failed + result.tally.lost >= 40,
        "{:?}",
        result.tally
    );
}

#[test]
fn a_connection_closed_by_the_reflector_is_reopened_as_the_same_flow_and_the_closer_is_reported() {
    // It closes each connection long before the next message.
    let reflector = capped(ReflectorCaps {
        idle: Span::from_millis(100),
        ..ReflectorCaps::default()
    });
    let mut spec = fleet(reflector.address(), 2, 8);
    spec.fleet.probe = ProbeKind::Tcp;
    spec.fleet.interval = Span::from_millis(600);
    let result = measure(spec);
    let why = result.not_sent.as_deref().unwrap_or_default();
    assert!(why.contains("the reflector closed its connection"), "{why}");
    for (slot, port) in (0..).map(Slot).zip(&result.sources) {
        let slot_messages: Vec<_> = result.messages.iter().filter(|m| m.slot == slot).collect();
        assert!(
            slot_messages
                .iter()
                .all(|message| message.source_port == *port)
        );
        let broken = slot_messages
            .iter()
            .position(|m| m.outcome == FleetOutcome::Failed);
        let after = &slot_messages[broken.expect("neph reconnects each second")..];
        assert!(after.iter().any(|m| m.reply().is_some()), "{after:?}");
    }
}
