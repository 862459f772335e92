//! Routers and switches: what is joined by them reaches each other, and how.

use neph_lab::{Lab, Topology};
use neph_sys::deadline::Stopwatch;
use neph_sys::netns::with_namespace;
use neph_sys::process;
use neph_text::Source;

use crate::support::{echo_round_trips, lab_lock, lab_name, leftovers, up};

fn topology(text: &str) -> Topology {
    let source = Source::new("nodes", format!("version = 1\n{text}"));
    Topology::parse(&source).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

/// What `program` writes inside a site.
fn stdout_in(lab: &Lab, site: &str, args: &[&str]) -> String {
    let namespace = lab.namespace(site).expect("there");
    let output = with_namespace(&namespace, || {
        process::command(args[0])
            .args(&args[1..])
            .output()
            .expect("the program is there")
    });
    String::from_utf8(output.expect("enter").stdout).expect("UTF-8")
}

#[test]
fn sites_at_two_switches_are_neighbours_and_need_no_address_resolution() {
    let Some(_lock) =
        lab_lock("sites_at_two_switches_are_neighbours_and_need_no_address_resolution")
    else {
        return;
    };
    let text = "network_v6 = \"fd78::/64\"\n\
                site = [{name = \"a\"}, {name = \"b\"}, {name = \"c\"}, {name = \"d\"}]\n\
                switch = [{name = \"left\"}, {name = \"right\"}]\n\
                link = [{a = \"a\", b = \"left\", delay = \"1ms\"}, {a = \"b\", b = \"left\"},\n\
                {a = \"left\", b = \"right\", delay = \"2ms\"}, {a = \"right\", b = \"c\"},\n\
                {a = \"c\", b = \"d\"}]\n";
    let name = lab_name('s');
    let lab = up(&topology(text), &name);
    for family in [std::net::IpAddr::is_ipv4, std::net::IpAddr::is_ipv6] {
        assert_eq!(echo_round_trips(&lab, "a", "b", family), 5, "one switch");
        assert_eq!(echo_round_trips(&lab, "a", "c", family), 5, "two switches");
        assert_eq!(echo_round_trips(&lab, "a", "d", family), 5, "and a router");
    }
    let route = stdout_in(&lab, "a", &["ip", "route", "get", "10.78.0.3"]);
    assert!(!route.contains("via"), "c is a neighbour: {route}");
    let neighbours = stdout_in(&lab, "a", &["ip", "-4", "neighbour"]);
    assert_eq!(neighbours.matches("PERMANENT").count(), 2, "{neighbours}");
    let counts = lab.counters(1).expect("emulated");
    let reverse = counts.read(neph_lab::Direction::BToA).delivered;
    let reverse_packets = counts.read(neph_lab::Direction::AToB).delivered;
    // A router behind the switch may report to all that it listens for routers (MLD).
    let fine = (10..13).contains(&reverse) && (10..13).contains(&reverse_packets);
    assert!(
        fine,
        "only what is meant for b is on its link: {reverse}, {reverse_packets}"
    );
    lab.down().expect("down");
    assert_eq!(leftovers(&name), [].into());
}

#[test]
fn mesh_circuits_are_direct_even_if_a_detour_is_faster() {
    let Some(_lock) = lab_lock("mesh_circuits_are_direct_even_if_a_detour_is_faster") else {
        return;
    };
    let name = lab_name('m');
    let text = "[[generate]]\nshape = \"mesh\"\nnames = [\"a\", \"b\", \"c\"]\n\
                matrix = [[\"2ms\", \"8ms\"], [\"2ms\"]]\n";
    let lab = up(&topology(text), &name);
    assert_eq!(
        echo_round_trips(&lab, "a", "c", std::net::IpAddr::is_ipv4),
        5
    );
    let direct = lab.topology().links.iter().position(|l| l.name == "a-c");
    let counts = lab.counters(direct.expect("there")).expect("emulated");
    assert_eq!(counts.read(neph_lab::Direction::AToB).delivered, 5);
    lab.down().expect("down");
}

#[test]
fn a_router_forwards_with_one_link_and_a_site_does_not() {
    let Some(_lock) = lab_lock("a_router_forwards_with_one_link_and_a_site_does_not") else {
        return;
    };
    let text = "site = [{name = \"a\"}]\nrouter = [{name = \"r\"}]\n\
                link = [{a = \"a\", b = \"r\"}]\n";
    let lab = up(&topology(text), &lab_name('o'));
    let forwards = ["cat", "/proc/sys/net/ipv4/ip_forward"];
    assert_eq!(stdout_in(&lab, "a", &forwards).trim(), "0");
    assert_eq!(stdout_in(&lab, "r", &forwards).trim(), "1");
    lab.down().expect("down");
}

#[test]
fn a_mesh_of_twenty_sites_comes_up_and_goes_down_in_less_than_ten_seconds_each() {
    let test = "a_mesh_of_twenty_sites_comes_up_and_goes_down_in_less_than_ten_seconds_each";
    let Some(_lock) = lab_lock(test) else {
        return;
    };
    let name = lab_name('z');
    let mesh = topology("[[generate]]\nshape = \"mesh\"\nsites = 20\nlink = { delay = \"5ms\" }\n");
    assert_eq!(mesh.links.len(), 190);
    let began = Stopwatch::start();
    let lab = up(&mesh, &name);
    let up_took = began.elapsed();
    assert!(lab.is_forwarding());
    let began = Stopwatch::start();
    lab.down().expect("down");
    let down_took = began.elapsed();
    assert_eq!(leftovers(&name), [].into());
    // 2 s each here, and busy machines take their time.
    let limit = std::time::Duration::from_secs(10);
    assert!(
        up_took < limit && down_took < limit,
        "{up_took:?}, {down_took:?}"
    );
}
