//! Equal ways through routers: the kernels spread flows over them, and change their minds when told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::time::Duration;

use neph_lab::{Lab, Record, Recording, ScheduleEvent, TruthFile, UpOptions, Verdict};
use neph_sys::deadline::wait_until;
use neph_sys::netns::with_namespace;

use crate::support::{lab_lock, lab_name, leftovers, parse_shipped};

const DIAMOND: &str = include_str!("../../topologies/diamond.toml");
const FLOWS: usize = 64;

fn socket(lab: &Lab, site: &str, family: fn(&IpAddr) -> bool) -> UdpSocket {
    let addresses = lab.addresses(site).expect("there");
    let address = addresses.into_iter().find(family).expect("both families");
    let socket = with_namespace(&lab.namespace(site).expect("there"), || {
        UdpSocket::bind(SocketAddr::new(address, 0))
    });
    let socket = socket.expect("enter").expect("bind");
    let second = Some(Duration::from_secs(1));
    socket.set_read_timeout(second).expect("timeout");
    socket
}

/// One datagram of each flow there and back, all at once.
fn exchange(flows: &[UdpSocket], server: &UdpSocket) {
    let target = server.local_addr().expect("address");
    let mut buffer = [0; 64];
    for flow in flows {
        flow.send_to(b"there", target).expect("send");
    }
    for _ in flows {
        let (length, source) = server.recv_from(&mut buffer).expect("it arrives");
        server.send_to(&buffer[..length], source).expect("send");
    }
    for flow in flows {
        flow.recv(&mut buffer).expect("and back");
    }
}

/// Which of the four ways each flow went in each of `rounds` exchanges, in one direction of the links
/// from r0 to the routers in the middle.
fn paths_by_port(folder: &std::path::Path, direction: u8) -> BTreeMap<u16, Vec<usize>> {
    let mut arrivals: BTreeMap<u16, Vec<(i64, usize)>> = BTreeMap::new();
    for path in 1..=4 {
        let file = folder.join(format!("r0-m{path}.truth"));
        for record in TruthFile::open(&file).expect("open") {
            let Record::Packet {
                passage, verdict, ..
            } = record.expect("fine")
            else {
                continue;
            };
            let identity = passage.identity;
            // With IPv6 the kernels tell their groups (MLD), which is no flow of ours.
            let counts = identity.protocol == 17 && passage.direction == direction;
            if counts && verdict == Verdict::Delivered {
                let port = if direction == 0 {
                    identity.source_port
                } else {
                    identity.destination_port
                };
                arrivals
                    .entry(port)
                    .or_default()
                    .push((passage.arrival, path));
            }
        }
    }
    let in_order = arrivals.into_iter().map(|(port, mut arrivals)| {
        arrivals.sort_unstable();
        (port, arrivals.into_iter().map(|(_, path)| path).collect())
    });
    in_order.collect()
}

/// The shipped diamond with all its changes of routes at these times instead.
fn diamond(reroutes: &str) -> String {
    let links = DIAMOND
        .split("[[reroute]]")
        .next()
        .expect("split gives one");
    let links = links.rsplit_once("# The way there").expect("its comment").0;
    format!("{links}{reroutes}")
}

/// Four sends and three changes in between, for one address family: what is on record.
fn test_reroutes(test: &str, letter: char, family: fn(&IpAddr) -> bool) {
    let Some(_lock) = lab_lock(test) else { return };
    let topology = diamond(
        "[[reroute]]\nsite = \"r0\"\nat = \"800ms\"\nreshuffle = true\n\
         [[reroute]]\nsite = \"r0\"\nlink = \"r0-m4\"\nweight = 0\nat = \"1800ms\"\nuntil = \"2800ms\"\n",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let name = lab_name(letter);
    let options = UpOptions {
        truth: Some(Recording {
            folder: folder.path().into(),
            every: NonZeroU32::MIN,
        }),
        ..UpOptions::with_name(&name)
    };
    let lab = Lab::up(&parse_shipped(&topology), &options).expect("up");
    let server = socket(&lab, "server", family);
    let flows: Vec<UdpSocket> = (0..FLOWS).map(|_| socket(&lab, "client", family)).collect();
    exchange(&flows, &server);
    lab.cue();
    let done = |entry: usize, times: u64, holds: bool| {
        let is_done = wait_until(Duration::from_secs(20), || {
            let status = Lab::status(&name).expect("it is up");
            let reroute = &status.reroutes[entry];
            assert_eq!(reroute.refused, 0, "{status:?}");
            reroute.times == times && reroute.holds == holds && reroute.last_ns.is_some()
        });
        assert!(is_done, "{:?}", Lab::status(&name));
    };
    done(0, 1, true);
    exchange(&flows, &server);
    done(1, 1, true);
    exchange(&flows, &server);
    done(1, 1, false);
    exchange(&flows, &server);
    lab.down().expect("down");
    assert!(leftovers(&name).is_empty());
    assert_recorded_paths(folder.path());
}

fn assert_recorded_paths(folder: &std::path::Path) {
    let (forward, reverse) = (paths_by_port(folder, 0), paths_by_port(folder, 1));
    assert_eq!((forward.len(), reverse.len()), (FLOWS, FLOWS));
    assert!(
        forward
            .values()
            .chain(reverse.values())
            .all(|paths| paths.len() == 4)
    );
    let used =
        |round: usize| -> BTreeSet<usize> { forward.values().map(|paths| paths[round]).collect() };
    let all_paths = BTreeSet::from([1, 2, 3, 4]);
    // 64 flows over four ways: one is missed once in 25 million times.
    assert_eq!(used(0), all_paths);
    assert_eq!(
        used(2),
        BTreeSet::from([1, 2, 3]),
        "the fourth has no weight"
    );
    assert_eq!(used(3), all_paths, "and has it back");
    let moved = |first: usize, other: usize| {
        forward
            .values()
            .filter(|paths| paths[first] != paths[other])
            .count()
    };
    // Of 64 flows 48 move, within five deviations of the binomial.
    assert!((31..=63).contains(&moved(0, 1)), "{}", moved(0, 1));
    assert_eq!(moved(1, 3), 0, "the same seed and weights: the same ways");
    for paths in reverse.values() {
        assert!(
            paths.iter().all(|path| *path == paths[0]),
            "nothing changed at r5"
        );
    }
    let steps: Vec<(u16, ScheduleEvent)> = TruthFile::open(&folder.join("routes_.truth"))
        .expect("open")
        .filter_map(|record| match record.expect("fine") {
            Record::Step { number, event, .. } => Some((number, event)),
            _ => None,
        })
        .collect();
    let expected = [
        (0, ScheduleEvent::Reshuffles),
        (1, ScheduleEvent::Begins),
        (1, ScheduleEvent::Ends),
    ];
    assert!(steps.ends_with(&expected), "{steps:?}");
}

#[test]
fn kernels_spread_flows_over_a_diamond_and_move_them_on_schedule() {
    let test = "kernels_spread_flows_over_a_diamond_and_move_them_on_schedule";
    test_reroutes(test, 'e', IpAddr::is_ipv4);
}

#[test]
fn they_do_the_same_with_ipv6() {
    test_reroutes("they_do_the_same_with_ipv6", 'f', IpAddr::is_ipv6);
}
