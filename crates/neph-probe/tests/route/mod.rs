//! A traceroute along a chain of two routers in namespaces of their own.

use std::fs;
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use neph_model::Span;
use neph_probe::{Place, Stop, TracerouteSpec, traceroute};
use neph_sys::netns::{self, NetNs};

use crate::support::{eventually, has, is_root, skip};

/// Four namespaces in a row, removed when dropped, also by a panic.
struct Chain {
    names: Vec<String>,
}

impl Chain {
    fn new() -> Self {
        let pid = std::process::id();
        let mut chain = Self { names: Vec::new() };
        for place in ["here", "r1", "r2", "there"] {
            let name = format!("neph-route-{pid}-{place}");
            chain.names.push(name.clone());
            ip(&["netns", "add", &name]);
            ip(&["-n", &name, "link", "set", "lo", "up"]);
        }
        for at in 0..3 {
            chain.join(at);
        }
        let [here, r1, r2, there] = [0, 1, 2, 3].map(|at| chain.names[at].as_str());
        ip(&["-n", here, "route", "add", "default", "via", "10.99.0.2"]);
        ip(&["-n", r1, "route", "add", "10.99.2.0/24", "via", "10.99.1.2"]);
        ip(&["-n", r2, "route", "add", "10.99.0.0/24", "via", "10.99.1.1"]);
        ip(&["-n", there, "route", "add", "default", "via", "10.99.2.1"]);
        for router in [r1, r2] {
            let ns = NetNs::open(router).expect("just made");
            let forward = || fs::write("/proc/sys/net/ipv4/ip_forward", "1");
            let done = netns::with_namespace(&ns, forward).expect("enter");
            done.expect("a namespace's own setting");
        }
        // The kernel passes the carrier on at most once a second; until then it drops packets.
        for name in &chain.names {
            eventually("links are up", || {
                let links = ip(&["-n", name, "link", "show", "type", "veth"]);
                !links.contains("state DOWN") && !links.contains("LOWERLAYERDOWN")
            });
        }
        chain
    }

    /// Link `at`: 10.99.at.1 in one namespace, 10.99.at.2 in the next.
    fn join(&self, at: usize) {
        let (left, right) = (&self.names[at], &self.names[at + 1]);
        ip(&[
            "link", "add", "right", "netns", left, "type", "veth", "peer", "name", "left", "netns",
            right,
        ]);
        for (name, device, last) in [(left, "right", 1), (right, "left", 2)] {
            let address = format!("10.99.{at}.{last}/24");
            ip(&["-n", name, "address", "add", &address, "dev", device]);
            ip(&["-n", name, "link", "set", device, "up"]);
        }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for name in &self.names {
            // One that was not made yet cannot be removed, and need not be.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) -> String {
    let done = Command::new("ip")
        .args(arguments)
        .output()
        .expect("ip runs");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments:?}: {told}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn this_host_is_one_hop_away() {
    for host in ["127.0.0.1", "::1"] {
        let destination: IpAddr = host.parse().expect("an address");
        if std::net::UdpSocket::bind((destination, 0)).is_err() {
            skip("this_host_is_one_hop_away", "there is no IPv6 here");
            continue;
        }
        let spec = TracerouteSpec::default();
        let route = traceroute(destination, &spec, None, &Stop::new()).expect("loopback");
        assert!(route.reached, "{route:?}");
        let seen: Vec<&[IpAddr]> = route.hops.iter().map(|hop| &hop.addresses[..]).collect();
        assert_eq!(seen, [[destination]]);
    }
}

#[test]
fn the_routers_of_a_chain_answer_in_order() {
    const NAME: &str = "the_routers_of_a_chain_answer_in_order";
    if !is_root() || !has("ip", "-V") {
        return skip(NAME, "network namespaces need root and the ip program");
    }
    let chain = Chain::new();
    let destination: IpAddr = "10.99.2.2".parse().expect("an address");
    let began = Instant::now();
    let spec = TracerouteSpec::default();
    let here = Place::named(&chain.names[0]);
    let route = traceroute(destination, &spec, Some(&here), &Stop::new()).expect("a route");
    assert!(began.elapsed() < Duration::from_secs(4));
    assert!(route.reached);
    let seen: Vec<String> = route
        .hops
        .iter()
        .map(|hop| format!("{:?}", hop.addresses))
        .collect();
    assert_eq!(seen, ["[10.99.0.2]", "[10.99.1.2]", "[10.99.2.2]"]);
    for hop in &route.hops {
        assert_eq!(hop.round_trips.len(), 3, "{hop:?}");
        for time in &hop.round_trips {
            assert!(
                *time > Span::ZERO && *time < Span::from_millis(100),
                "{hop:?}"
            );
        }
    }
    let nowhere: IpAddr = "10.98.0.1".parse().expect("an address");
    let lost = traceroute(nowhere, &spec, Some(&here), &Stop::new()).expect("a route that ends");
    assert!(!lost.reached && lost.hops.len() <= 3, "{lost:?}");
    let nowhere: IpAddr = "10.97.0.1".parse().expect("an address");
    let r1 = Place::named(&chain.names[1]);
    let no_route = traceroute(nowhere, &spec, Some(&r1), &Stop::new());
    let told = no_route.expect_err("r1 has no default route").to_string();
    assert!(told.contains("trace the route to 10.97.0.1"), "{told}");
}
