//! The preset in which each probe is a flow of its own.

use neph_model::{Permit, Span, TraceLimits};

use super::hop;
use super::net::{DESTINATION, Net, Run, Stage, addr, run};
use crate::trace::spec::TraceSpec;
use crate::trace::tracer_io::ProbeMatching;

fn traced(net: &mut Net) -> Run {
    let spec = TraceSpec::traceroute(DESTINATION, TraceLimits::default(), Permit::ANYTHING);
    run(&spec, ProbeMatching::ByNumber, net)
}

#[test]
fn each_hop_gets_three_probes_at_once() {
    let mut net = Net::new(vec![hop(1), hop(2)]);
    let Run {
        all_hops, duration, ..
    } = traced(&mut net);
    assert!(all_hops.reached);
    for (hop, address) in all_hops.hops.iter().zip([addr(1), addr(2), DESTINATION]) {
        let rtt = Span::from_millis(10 * i64::from(hop.ttl));
        assert_eq!(
            (&hop.addresses[..], &hop.round_trips[..]),
            (&[address][..], &[rtt; 3][..])
        );
    }
    assert_eq!((all_hops.hops.len(), net.sends.len()), (3, 24));
    assert_eq!(
        duration,
        Span::from_millis(30),
        "the last answer that matters"
    );
}

#[test]
fn one_hop_lists_the_routers_of_all_paths() {
    let mut net = Net::new(vec![hop(1), Stage::Packets(vec![10, 11]), hop(30)]);
    let hops = traced(&mut net).all_hops.hops;
    assert_eq!((hops[1].addresses.len(), hops[1].round_trips.len()), (2, 3));
}

#[test]
fn a_trace_to_a_silent_destination_takes_four_seconds() {
    let mut net = Net::new(vec![hop(1), hop(2)]);
    net.mute = true;
    let Run {
        all_hops, duration, ..
    } = traced(&mut net);
    assert!(!all_hops.reached);
    assert_eq!((all_hops.hops.len(), net.farthest), (30, 30));
    // Whether the next hop is silent too is asked twice, behind the fourth second.
    assert!(duration <= Span::from_secs(7), "{duration}");
    let late = net.sends.iter().filter(|(at, _)| *at > 4_000_000_000);
    assert!(late.map(|(_, ttl)| *ttl).eq([3, 3]), "{:?}", net.sends);
}

#[test]
fn a_router_at_three_hops_is_not_always_a_loop() {
    let stages = [1, 2, 1, 3, 1, 4].map(hop).into_iter().collect();
    let all_hops = traced(&mut Net::new(stages)).all_hops;
    assert!(all_hops.reached && all_hops.hops.len() == 7);
}

#[test]
fn a_rate_limited_destination_is_probed_until_its_hop_is_known() {
    let mut net = Net::new(vec![hop(1), hop(2)]);
    net.reluctant = Some(Span::from_secs(1));
    // It answers once at first, then in its own time.
    let Run {
        all_hops, duration, ..
    } = traced(&mut net);
    assert!(all_hops.reached);
    assert_eq!(all_hops.hops.len(), 3, "{all_hops:?}");
    assert!(duration <= Span::from_secs(13), "{duration}");
}
