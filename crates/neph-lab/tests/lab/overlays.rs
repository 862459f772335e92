//! Overlays: pods reach each other through them, over the links of their hosts and no other way.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use neph_lab::{Direction, Lab, LabError, Topology, UpOptions};
use neph_sys::deadline::Stopwatch;
use neph_sys::netns::with_namespace;
use neph_sys::process;
use neph_text::Source;

use crate::support::{lab_lock, lab_name, leftovers};

const MESSAGES: u32 = 20;
/// An answer that takes longer is none; busy machines were seen to stop for a third of a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// What BIRD's sessions and Docker's engines say besides, in packets a second at most. Engines that
/// have met say two (measured over 10 s), while they meet some more.
const TALK: u64 = 50;

/// Three hosts around a router, 2.5 ms from it each way, with a pod in each of the first two, and
/// one more in the first. The pods of each host have a /24 of their own.
fn lab(name: &str, overlay: &str) -> Option<Lab> {
    let middle = if overlay.contains("macvlan") {
        "switch"
    } else {
        "router"
    };
    let mut text = format!(
        "version = 1\nnetwork = \"10.83.0.0/24\"\n[[{middle}]]\nname = \"middle\"\n\
         [[overlay]]\nname = \"pods\"\npods = [\"pod-a\", \"pod-b\", \"pod-c\"]\n{overlay}\n"
    );
    for host in ["one", "two", "three"] {
        text.push_str(&format!(
            "[[site]]\nname = \"{host}\"\n[[link]]\nname = \"{host}\"\na = \"{host}\"\n\
             b = \"middle\"\ndelay = \"2500us\"\n"
        ));
    }
    let pods = [("pod-a", "one"), ("pod-b", "two"), ("pod-c", "one")];
    for (number, (pod, host)) in (1..).zip(pods) {
        let subnet = u8::from(host == "two");
        text.push_str(&format!(
            "[[site]]\nname = \"{pod}\"\ninside = \"{host}\"\naddress = \"10.85.{subnet}.1{number}\"\n"
        ));
    }
    let topology = Topology::parse(&Source::new("overlay", text)).expect("fine");
    match Lab::up(&topology, &UpOptions::with_name(name)) {
        Ok(lab) => Some(lab),
        // Where a program is not installed the sentence names the package; CI has them.
        Err(LabError::Program(error)) if std::env::var("CI").as_deref() != Ok("true") => {
            println!("SKIP overlays: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn address(lab: &Lab, site: &str) -> IpAddr {
    lab.addresses(site).expect("there")[0]
}

/// The least round trip of `MESSAGES` messages with `bytes` of payload between two sites; none
/// where no answer comes.
fn round_trip(lab: &Lab, from: &str, to: &str, bytes: usize) -> Option<Duration> {
    let bind = |site: &str, port| {
        let at = SocketAddr::new(address(lab, site), port);
        let socket = with_namespace(&lab.namespace(site).expect("there"), || {
            UdpSocket::bind(at).expect("bind")
        });
        let socket = socket.expect("enter");
        socket
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .expect("timeout");
        socket
    };
    let (client, server) = (bind(from, 0), bind(to, 7007));
    let target = server.local_addr().expect("bound");
    let mut min_rtt = None;
    let mut buffer = vec![0; 2000];
    for _ in 0..MESSAGES {
        let stopwatch = Stopwatch::start();
        client.send_to(&vec![1; bytes], target).ok()?;
        let (length, peer) = server.recv_from(&mut buffer).ok()?;
        server.send_to(&buffer[..length], peer).expect("an answer");
        assert_eq!(client.recv_from(&mut buffer).ok()?.0, bytes);
        let rtt = stopwatch.elapsed();
        min_rtt = Some(min_rtt.map_or(rtt, |min_rtt: Duration| min_rtt.min(rtt)));
    }
    min_rtt
}

/// Pods of different hosts are 10 ms apart, those of one host next to nothing; the links saw what
/// passed, and afterwards nothing is left.
fn pods_reach_each_other(test: &str, (letter, overlay): (char, &str)) {
    let Some(_lock) = lab_lock(test) else { return };
    let name = lab_name(letter);
    let Some(lab) = lab(&name, overlay) else {
        return;
    };
    let before = lab.counters(0).expect("emulated").read(Direction::AToB);
    let stopwatch = Stopwatch::start();
    let far_rtt = round_trip(&lab, "pod-a", "pod-b", 1_300).expect("pods reach each other");
    let after = lab.counters(0).expect("emulated").read(Direction::AToB);
    println!("{overlay}: pods {far_rtt:?} apart");
    assert!(
        far_rtt >= Duration::from_millis(10) && far_rtt < Duration::from_millis(13),
        "{far_rtt:?}"
    );
    let delivered = after.delivered - before.delivered;
    let (expected_count, seconds) = (u64::from(MESSAGES), stopwatch.elapsed().as_secs());
    let max_count = expected_count + TALK * (seconds + 1);
    assert!(
        (expected_count..max_count).contains(&delivered),
        "{delivered} in {seconds} s"
    );
    let near_rtt = round_trip(&lab, "pod-a", "pod-c", 1_300).expect("neighbours");
    assert!(near_rtt < Duration::from_millis(2), "{near_rtt:?}");
    lab.down().expect("down");
    assert!(leftovers(&name).is_empty());
}

#[test]
fn pods_reach_each_other_by_vxlan() {
    pods_reach_each_other("pods_reach_each_other_by_vxlan", ('x', "kind = \"vxlan\""));
}

#[test]
fn pods_reach_each_other_through_a_tunnel_in_user_space() {
    let test = "pods_reach_each_other_through_a_tunnel_in_user_space";
    pods_reach_each_other(test, ('y', "kind = \"tunnel\""));
}

#[test]
fn pods_reach_each_other_over_routes_from_bgp() {
    let test = "pods_reach_each_other_over_routes_from_bgp";
    pods_reach_each_other(test, ('z', "kind = \"routed\""));
}

#[test]
fn pods_reach_each_other_as_neighbours_by_macvlan() {
    let test = "pods_reach_each_other_as_neighbours_by_macvlan";
    pods_reach_each_other(test, ('v', "kind = \"macvlan\"\non = \"middle\""));
}

#[test]
fn pods_reach_each_other_by_dockers_own_overlay() {
    let test = "pods_reach_each_other_by_dockers_own_overlay";
    let overlay = "kind = \"docker\"\nnetwork = \"10.85.0.0/16\"";
    let before = of_the_host();
    pods_reach_each_other(test, ('u', overlay));
    assert_eq!(
        of_the_host(),
        before,
        "an engine leaves no file on the host"
    );
}

const FLANNEL: &str = "kind = \"flannel\"\nnetwork = \"10.85.0.0/16\"";

#[test]
#[ignore = "needs flanneld: make test-flannel builds it from Go modules, which make test does not fetch"]
fn pods_reach_each_other_by_flannels_vxlan() {
    pods_reach_each_other("pods_reach_each_other_by_flannels_vxlan", ('f', FLANNEL));
}

#[test]
#[ignore = "needs flanneld: make test-flannel builds it from Go modules, which make test does not fetch"]
fn pods_reach_each_other_by_flannels_tunnel_in_user_space() {
    let test = "pods_reach_each_other_by_flannels_tunnel_in_user_space";
    let overlay = format!("{FLANNEL}\nbackend = \"udp\"");
    pods_reach_each_other(test, ('g', &overlay));
}

/// What the host's own engine has, or would have.
fn of_the_host() -> String {
    let folders = [
        "/run/containerd",
        "/run/docker",
        "/var/lib/docker",
        "/etc/docker",
    ];
    let mut find = process::command("find");
    let output = find.args(folders).args(["-mindepth", "1"]).output();
    String::from_utf8_lossy(&output.expect("find").stdout).into_owned()
}

#[test]
fn a_bridge_lets_pods_out_and_in_only_where_a_port_is_published() {
    let test = "a_bridge_lets_pods_out_and_in_only_where_a_port_is_published";
    let Some(_lock) = lab_lock(test) else { return };
    let name = lab_name('w');
    let overlay = "kind = \"bridge\"\npublish = [{ port = 80, to = \"pod-b:7007\" }]";
    let Some(lab) = lab(&name, overlay) else {
        return;
    };
    assert_eq!(
        round_trip(&lab, "three", "pod-b", 100),
        None,
        "not from outside"
    );
    let out = round_trip(&lab, "pod-a", "three", 100).expect("out");
    assert!(out >= Duration::from_millis(10), "{out:?}");
    let socket = |site: &str, port| {
        let at = SocketAddr::new(address(&lab, site), port);
        let bind = || UdpSocket::bind(at).expect("bind");
        with_namespace(&lab.namespace(site).expect("there"), bind).expect("enter")
    };
    let (outside, pod) = (socket("three", 0), socket("pod-b", 7007));
    for socket in [&outside, &pod] {
        socket
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .expect("timeout");
    }
    let published = SocketAddr::new(address(&lab, "two"), 80);
    outside.send_to(b"in", published).expect("send");
    let mut buffer = [0; 10];
    let (_, peer) = pod.recv_from(&mut buffer).expect("it is led in");
    assert_eq!(peer.ip(), address(&lab, "three"), "the pod sees who asks");
    pod.send_to(b"out", peer).expect("answer");
    let (_, from) = outside.recv_from(&mut buffer).expect("an answer");
    assert_eq!(from, published, "and who asks sees the host");
    lab.down().expect("down");
    assert!(leftovers(&name).is_empty());
}

#[test]
fn invalid_overlays_are_refused_with_their_mistake() {
    let text = |extra_lines: &str| {
        format!(
            "version = 1\nsite = [{{name = \"a\"}}, {{name = \"b\"}}, {{name = \"p\", inside = \"a\"}}]\n\
             link = [{{a = \"a\", b = \"b\"}}]\n{extra_lines}\n"
        )
    };
    for (extra_lines, part) in [
        ("", "'p' is inside another site and in no overlay"),
        (
            "overlay = [{name = \"o\", kind = \"vxlan\", pods = [\"p\"]}, \
             {name = \"q\", kind = \"bridge\", pods = \"p\"}]",
            "in more than one overlay",
        ),
        (
            "guest = [{name = \"m\", kind = \"uml\", sites = [\"p\"]}, \
             {name = \"n\", kind = \"namespace\", sites = [\"p\"]}]",
            "in more than one [[guest]]",
        ),
        (
            "overlay = [{name = \"o\", kind = \"vxlan\", pods = [\"p\"]}]\n\
             guest = [{name = \"m\", kind = \"uml\", sites = [\"p\"]}]",
            "in an overlay and a [[guest]]",
        ),
        (
            "overlay = [{name = \"o\", kind = \"vxlan\", pods = [\"p\", \"b\"]}]",
            "'b' is not inside another site",
        ),
        (
            "overlay = [{name = \"o\", kind = \"macvlan\", pods = \"p\", on = \"b\"}]",
            "'a' has no link 'b'",
        ),
        (
            "overlay = [{name = \"o\", kind = \"bridge\", pods = \"p\", \
             publish = [{port = 80, to = \"b:80\"}]}]",
            "no pod of the overlay",
        ),
    ] {
        let mistakes =
            Topology::parse(&Source::new("lab", text(extra_lines))).expect_err(extra_lines);
        let expected = format!("{mistakes:?}");
        assert!(expected.contains(part), "{expected}");
    }
}
