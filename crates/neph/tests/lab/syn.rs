//! SYNs and small transfers over emulated links: their times match the delays of the link.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_load::{TRANSFER_SIZE, TransferSpec, run_transfers};
use neph_model::{Fleet, FleetEndpoint, FleetMessage, Permit, ProbeKind, Span, Stop, Target};
use neph_probe::{
    DiscoveryOptions, FleetReport, FleetRun, FleetSpec, FlowSpec, Priority, SmallTransfer, Trust,
};

use crate::setup::{TwoSites, is_privileged, measure, median};
use crate::undisturbed::measure_undisturbed;

/// As for the network stage, once for each direction.
const MAX_ERROR: i64 = 2 * 20_000;
/// Ports that are measured: all on one path once in 32,768.
const PORTS: u32 = 16;

fn round_trips(spec: FlowSpec) -> Vec<i64> {
    let messages = measure(FlowSpec {
        reflector: false,
        ..spec
    });
    let round_trips = messages
        .iter()
        .map(|message| message.marks.network_and_peer_round_trip());
    round_trips
        .map(|rtt| rtt.expect("nothing is lost here").nanos())
        .collect()
}

#[test]
fn the_rtt_of_a_syn_equals_the_delay_of_the_link() {
    if !is_privileged("the_rtt_of_a_syn_equals_the_delay_of_the_link") {
        return;
    }
    let (syn_rtt, own_rtt, link_delays) = measure_undisturbed(|| {
        let lab = TwoSites::up("syn", "delay = \"10ms\"");
        let reflector = lab.reflector(Span::ZERO);
        // Shorter than the round trip too: each SYN then finds the target waiting for the one before.
        let mut syn_rtts = round_trips(lab.flow("syn", Span::from_millis(7), 60));
        syn_rtts.extend(round_trips(lab.flow("syn", Span::from_millis(50), 30)));
        let own_rtts = round_trips(lab.flow_without_link("syn", Span::from_millis(20), 30));
        drop(reflector);
        let link_delays = lab.delays(50).map(median);
        (median(syn_rtts), median(own_rtts), link_delays)
    });
    let difference = syn_rtt - link_delays[0] - link_delays[1];
    let late = link_delays[0] + link_delays[1] - 20_000_000;
    println!(
        "link {link_delays:?}, SYN {syn_rtt}, difference {difference}; {own_rtt} without a link"
    );
    assert!(
        difference.abs() - 2 * own_rtt <= MAX_ERROR + 2 * late,
        "{difference} ns of difference"
    );
}

fn fleet_of_syns(lab: &TwoSites, address: SocketAddr) -> FleetSpec {
    let flow = lab.flow("syn", Span::from_millis(100), 1);
    FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Syn,
            slots: PORTS,
            endpoints: vec![FleetEndpoint {
                name: "server".to_owned(),
                address,
            }],
            interval: Span::from_millis(200),
            lifetime: None,
            criteria: None,
        },
        count: Some(10),
        request_size: 0,
        response_size: 0,
        timeout: Span::from_secs(1),
        first_port: Some(23_000),
        rate_cap: 1_000,
        permit: Permit::ANYTHING,
        key: None,
        priority: Priority::Auto,
        site: flow.site,
        sharing: None,
    }
}

/// The smallest RTT of each port.
fn min_rtt_by_port(spec: FleetSpec) -> BTreeMap<u16, Span> {
    let run = FleetRun::start(spec, Stop::new()).expect("a fleet that can be");
    let mut min_rtts = BTreeMap::new();
    let mut add_message = |message: &FleetMessage| {
        let rtt = message.reply().expect("nothing is lost here").round_trip;
        let known = min_rtts.entry(message.source_port).or_insert(rtt);
        *known = rtt.min(*known);
    };
    for report in run.reports() {
        if let FleetReport::Messages(messages) = report {
            messages.iter().for_each(&mut add_message);
        }
    }
    run.join().expect("it could begin");
    min_rtts
}

#[test]
fn a_transfer_takes_multiples_of_its_own_paths_round_trip() {
    if !is_privileged("a_transfer_takes_multiples_of_its_own_paths_round_trip") {
        return;
    }
    let link = "[[link.path]]\nname = \"short\"\ndelay = \"5ms\"\n\
                [[link.path]]\nname = \"long\"\ndelay = \"9ms\"";
    let lab = TwoSites::up("transfer", link);
    let _reflector = lab.reflector(Span::ZERO);
    let flow = lab.flow("syn", Span::from_millis(100), 1);
    let rtts = min_rtt_by_port(fleet_of_syns(&lab, flow.address));
    // In each direction the packets of a port take one of both paths.
    let distance = |rtt: &Span, millis: i64| (*rtt - Span::from_millis(millis)).abs().nanos();
    for rtt in rtts.values() {
        let distances = [10, 14, 18].map(|millis| distance(rtt, millis));
        let nearest = distances.into_iter().min();
        assert!(nearest < Some(1_000_000), "{rtt}");
    }
    let classes = [10, 14, 18].map(|millis| {
        let is_in_class = |rtt: &&Span| distance(rtt, millis) < 1_000_000;
        rtts.values().filter(is_in_class).count()
    });
    println!("ports by round trip of 10, 14 and 18 ms: {classes:?}");
    assert!(classes.iter().filter(|count| **count > 0).count() > 1);
    for (scheme, round_trips) in [("http", 2), ("tcp", 3)] {
        let target = Target::parse(&format!("{scheme}://{}", flow.address)).expect("a target");
        let spec = TransferSpec {
            address: flow.address,
            source_ports: rtts.keys().copied().collect(),
            repetitions: 4,
            interval: Span::from_millis(1),
            timeout: Span::from_secs(2),
            site: flow.site.clone(),
        };
        let options = DiscoveryOptions {
            tls_version: None,
            trust: Trust::Public,
            patience: spec.timeout,
            site: spec.site.clone(),
        };
        let small = SmallTransfer::at(&target, flow.address, TRANSFER_SIZE, &options);
        let small = small.expect("a reflector");
        let transfers = run_transfers(&spec, &|| small.exchange(), &Stop::new()).expect("a site");
        for (port, rtt) in &rtts {
            let port_transfers = transfers.iter();
            let port_transfers = port_transfers.filter(|run| run.source_port == *port);
            let port_transfers: Vec<_> = port_transfers.collect();
            assert_eq!(port_transfers.len(), 4);
            let connects = port_transfers.iter().filter_map(|run| run.connect());
            let totals = port_transfers.iter().filter_map(|run| run.total());
            let connect = connects.min().expect("it did");
            let total = totals.min().expect("it came");
            println!("{scheme} port {port}: trip {rtt}, connect {connect}, whole {total}");
            // Beside the link, the program and both kernels take less than half a round trip.
            let is_near = |duration: Span, round_trips: i64| {
                let excess = duration - rtt.times(round_trips);
                excess > Span::from_micros(-500) && excess.times(2) < *rtt
            };
            assert!(
                is_near(connect, 1) && is_near(total, round_trips),
                "{connect}, {total}"
            );
        }
    }
}
