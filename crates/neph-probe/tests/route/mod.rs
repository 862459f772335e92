//! A traceroute along a chain of two routers in namespaces of their own.

use std::net::IpAddr;
use std::time::Duration;

use neph_model::{Permit, Span, Stop, TraceLimits};
use neph_probe::traceroute;
use neph_sys::deadline::Stopwatch;

use crate::support::{End, Net, has, is_root, skip};

const PLACES: [&str; 4] = ["here", "r1", "r2", "there"];

/// Four namespaces in a row; link `at` has 10.99.at.1 in one and 10.99.at.2 in the next.
fn chain(name: &str) -> Net {
    let net = Net::new(name, &PLACES);
    for (at, pair) in PLACES.windows(2).enumerate() {
        let of = |host| [format!("10.99.{at}.{host}/24")];
        let end = |namespace, device, addresses| End {
            namespace,
            device,
            addresses,
        };
        net.join(
            &end(pair[0], "right", &of(1)),
            &end(pair[1], "left", &of(2)),
        );
    }
    net.ip("here", "route add default via 10.99.0.2");
    net.ip("r1", "route add 10.99.2.0/24 via 10.99.1.2");
    net.ip("r2", "route add 10.99.0.0/24 via 10.99.1.1");
    net.ip("there", "route add default via 10.99.2.1");
    for router in ["r1", "r2"] {
        net.set(router, "net/ipv4/ip_forward", "1");
    }
    net.wait();
    net
}

#[test]
fn this_host_is_one_hop_away() {
    for host in ["127.0.0.1", "::1"] {
        let destination: IpAddr = host.parse().expect("an address");
        if std::net::UdpSocket::bind((destination, 0)).is_err() {
            skip("this_host_is_one_hop_away", "there is no IPv6 here");
            continue;
        }
        let limits = TraceLimits::default();
        let route = traceroute(destination, limits, &Permit::ANYTHING, None, &Stop::new())
            .expect("loopback");
        assert!(route.reached, "{route:?}");
        let hop_addresses: Vec<&[IpAddr]> =
            route.hops.iter().map(|hop| &hop.addresses[..]).collect();
        assert_eq!(hop_addresses, [[destination]]);
    }
}

#[test]
fn the_routers_of_a_chain_answer_in_order() {
    const NAME: &str = "the_routers_of_a_chain_answer_in_order";
    if !is_root() || !has("ip", "-V") {
        return skip(NAME, "network namespaces need root and the ip program");
    }
    let chain = chain("route");
    let destination: IpAddr = "10.99.2.2".parse().expect("an address");
    let began = Stopwatch::start();
    let limits = TraceLimits::default();
    let here = chain.placement("here");
    let route = traceroute(
        destination,
        limits,
        &Permit::ANYTHING,
        Some(&here),
        &Stop::new(),
    )
    .expect("a route");
    assert!(began.elapsed() < Duration::from_secs(4));
    assert!(route.reached);
    let hop_texts: Vec<String> = route
        .hops
        .iter()
        .map(|hop| format!("{:?}", hop.addresses))
        .collect();
    assert_eq!(hop_texts, ["[10.99.0.2]", "[10.99.1.2]", "[10.99.2.2]"]);
    for hop in &route.hops {
        assert_eq!(hop.round_trips.len(), 3, "{hop:?}");
        let min_rtt = hop.round_trips.iter().min().expect("three");
        // The machine may stop for a while; not each time.
        assert!(
            *min_rtt > Span::ZERO && *min_rtt < Span::from_millis(100),
            "{hop:?}"
        );
    }
    let nowhere: IpAddr = "10.98.0.1".parse().expect("an address");
    let lost = traceroute(
        nowhere,
        limits,
        &Permit::ANYTHING,
        Some(&here),
        &Stop::new(),
    )
    .expect("a route that ends");
    assert!(!lost.reached && lost.hops.len() <= 3, "{lost:?}");
    let nowhere: IpAddr = "10.97.0.1".parse().expect("an address");
    let r1 = chain.placement("r1");
    let no_route = traceroute(nowhere, limits, &Permit::ANYTHING, Some(&r1), &Stop::new());
    let message = no_route.expect_err("r1 has no default route").to_string();
    assert!(
        message.contains("trace the route to 10.97.0.1"),
        "{message}"
    );
}

#[test]
fn a_recently_traced_destination_keeps_its_distance() {
    const NAME: &str = "a_recently_traced_destination_keeps_its_distance";
    if !is_root() || !has("ip", "-V") {
        return skip(NAME, "network namespaces need root and the ip program");
    }
    let chain = chain("again");
    let destination: IpAddr = "10.99.2.2".parse().expect("an address");
    let here = chain.placement("here");
    for round in 0..5 {
        // The last looks no farther than where the destination is.
        let max_hops = if round < 4 { 30 } else { 3 };
        let limits = TraceLimits {
            max_hops,
            ..TraceLimits::default()
        };
        let began = Stopwatch::start();
        let route = traceroute(
            destination,
            limits,
            &Permit::ANYTHING,
            Some(&here),
            &Stop::new(),
        )
        .expect("a route");
        let route = route.into_traceroute(0, "there", destination);
        let length = route.length().expect("reached");
        assert_eq!((length.least, length.most), (3, 3), "{round}: {route:?}");
        assert!(began.elapsed() < Duration::from_secs(14), "{round}");
    }
}

#[test]
fn behind_a_router_that_never_answers_a_destination_may_be_nearer() {
    const NAME: &str = "behind_a_router_that_never_answers_a_destination_may_be_nearer";
    if !is_root() || !has("ip", "-V") {
        return skip(NAME, "network namespaces need root and the ip program");
    }
    let chain = chain("silent");
    // What it says itself goes nowhere; what it passes on does.
    let silent = "rule add iif lo to 10.99.0.0/24 blackhole";
    chain.ip("r2", silent);
    let destination: IpAddr = "10.99.2.2".parse().expect("an address");
    let limits = TraceLimits::default();
    let here = chain.placement("here");
    let began = Stopwatch::start();
    let route = traceroute(
        destination,
        limits,
        &Permit::ANYTHING,
        Some(&here),
        &Stop::new(),
    )
    .expect("a route");
    assert!(began.elapsed() < Duration::from_secs(14));
    let route = route.into_traceroute(0, "there", destination);
    let length = route.length().expect("reached");
    assert_eq!((length.least, length.most), (2, 3), "{route:?}");
}
