use std::net::TcpListener;

use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, Permit, ProbeKind, ReadBy, Stop,
};

use super::*;
use crate::fleet::driver;
use crate::fleet::reports::FleetReports;
use crate::fleet::spec::{FleetReport, FleetTally};
use crate::spec::Priority;

fn spec(address: SocketAddr, lifetime: Option<Span>) -> FleetSpec {
    FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Syn,
            slots: 16,
            endpoints: vec![FleetEndpoint {
                name: "listener".to_owned(),
                address,
            }],
            interval: Span::from_millis(20),
            lifetime,
            criteria: None,
        },
        count: Some(10),
        request_size: 0,
        response_size: 0,
        timeout: Span::from_millis(500),
        first_port: None,
        rate_cap: 1_000,
        permit: Permit::ANYTHING,
        key: None,
        priority: Priority::Normal,
        site: None,
        sharing: None,
    }
}

fn run(spec: &FleetSpec) -> (Vec<FleetMessage>, FleetTally) {
    let transport = Connects::new(spec).expect("an empty set");
    let (sender, reports) = FleetReports::new();
    driver::drive(spec, Box::new(transport), sender, &Stop::new()).expect("ports are free");
    let (mut messages, mut tally) = (Vec::new(), FleetTally::default());
    for report in reports {
        match report {
            FleetReport::Messages(more) => messages.extend(more),
            FleetReport::Ended(ended) => tally = ended,
            _ => {}
        }
    }
    (messages, tally)
}

/// Accepts whatever comes.
fn listener() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || listener.incoming().for_each(drop));
    address
}

#[test]
fn connects_report_the_kernels_rtt_and_reuse_one_port() {
    let (messages, tally) = run(&spec(listener(), None));
    assert_eq!((tally.replies, tally.failed), (160, 0), "{tally:?}");
    let ports: std::collections::BTreeSet<u16> =
        messages.iter().map(|message| message.source_port).collect();
    assert_eq!(ports.len(), 16);
    for message in &messages {
        let reply = message.reply().expect("accepted");
        assert_eq!(reply.read_by, ReadBy::Kernel);
        let round_trip = reply.round_trip;
        assert!(
            round_trip > Span::ZERO && round_trip < Span::from_millis(100),
            "{round_trip}"
        );
    }
}

#[test]
fn a_refused_connect_is_a_reply_with_an_application_timestamp() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("bound");
    drop(closed);
    let (messages, tally) = run(&spec(address, Some(Span::from_millis(80))));
    assert_eq!((tally.replies, tally.failed), (160, 0), "{tally:?}");
    let by_program = |message: &FleetMessage| matches!(message.outcome, FleetOutcome::Reply(reply) if reply.read_by == ReadBy::Program);
    assert!(messages.iter().all(by_program));
    let ports: std::collections::BTreeSet<u16> =
        messages.iter().map(|message| message.source_port).collect();
    assert!(ports.len() >= 32, "{}", ports.len());
}
