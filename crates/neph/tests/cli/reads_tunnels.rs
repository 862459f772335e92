//! Captures of connections whose directions travel in different VLANs and tunnels, and of address spaces
//! that overlap.

use std::fs;

use serde_json::Value;

use crate::neph::TestFolder;

/// What a direction travels in.
#[derive(Clone, Copy)]
enum Encapsulation {
    Nothing,
    Vlan(u16),
    Vxlan(u32),
    Geneve(u32),
    Gre(u32),
    IpInIp,
}

fn ip(protocol: u8, (from, to): (u8, u8), body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + body.len()).expect("short");
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([
        0, 9, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to,
    ]);
    packet.extend(body);
    packet
}

fn udp(to: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("short");
    let mut datagram = vec![0xc0, 0];
    datagram.extend(to.to_be_bytes());
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

fn ethernet(tag: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], tag, &[8, 0], packet].concat()
}

impl Encapsulation {
    fn frame(self, packet: &[u8]) -> Vec<u8> {
        let outer = |protocol, body: &[u8]| ethernet(&[], &ip(protocol, (101, 102), body));
        let network = |id: u32| (id << 8).to_be_bytes();
        match self {
            Self::Nothing => ethernet(&[], packet),
            Self::Vlan(id) => ethernet(&[&[0x81, 0][..], &id.to_be_bytes()].concat(), packet),
            Self::Vxlan(id) => {
                let inner = ethernet(&[], packet);
                let body = [&[8, 0, 0, 0][..], &network(id), &inner].concat();
                outer(17, &udp(4789, &body))
            }
            Self::Geneve(id) => {
                let body = [&[0, 0, 8, 0][..], &network(id), packet].concat();
                outer(17, &udp(6081, &body))
            }
            Self::Gre(key) => {
                let body = [&[0x20, 0, 8, 0][..], &key.to_be_bytes(), packet].concat();
                outer(47, &body)
            }
            Self::IpInIp => outer(4, packet),
        }
    }
}

/// Frames of Ethernet with times in milliseconds.
#[derive(Default)]
struct Capture(Vec<(u32, Vec<u8>)>);

impl Capture {
    fn write(mut self, folder: &TestFolder) {
        self.0.sort_by_key(|(at, _)| *at);
        let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
        for (at, frame) in self.0 {
            let length = u32::try_from(frame.len()).expect("short");
            for field in [1_700_000_000 + at / 1000, at % 1000 * 1000, length, length] {
                file.extend(field.to_le_bytes());
            }
            file.extend(frame);
        }
        fs::write(folder.path("a.pcap"), file).expect("a file");
    }

    /// A connection from host 1 to host 2 with these first numbers, answered after 20 ms: a handshake and
    /// a request with its reply.
    fn connection(
        &mut self,
        at: u32,
        numbers: (u32, u32),
        (encapsulation, reverse): (Encapsulation, Encapsulation),
    ) {
        let tcp = |is_client: bool, (seq, ack): (u32, u32), flags, payload: usize| {
            let (from, to, ports) = if is_client {
                (1, 2, [0x9c, 0x40, 0, 80])
            } else {
                (2, 1, [0, 80, 0x9c, 0x40])
            };
            let mut segment = ports.to_vec();
            segment.extend(seq.to_be_bytes());
            segment.extend(ack.to_be_bytes());
            segment.extend([0x50, flags, 255, 255, 0, 0, 0, 0]);
            segment.resize(20 + payload, 7);
            ip(6, (from, to), &segment)
        };
        let (c, s) = numbers;
        for (after, is_client, numbers, flags, payload) in [
            (0, true, (c, 0), 2, 0),
            (20, false, (s, c + 1), 18, 0),
            (21, true, (c + 1, s + 1), 16, 0),
            (30, true, (c + 1, s + 1), 24, 100),
            (50, false, (s + 1, c + 101), 16, 0),
            (60, false, (s + 1, c + 101), 24, 500),
            (61, true, (c + 101, s + 501), 16, 0),
        ] {
            let frame = if is_client { encapsulation } else { reverse };
            let packet = tcp(is_client, numbers, flags, payload);
            self.0.push((at + after, frame.frame(&packet)));
        }
    }

    /// A ping that is answered after 20 ms.
    fn ping(
        &mut self,
        at: u32,
        number: u8,
        (encapsulation, reverse): (Encapsulation, Encapsulation),
    ) {
        let echo = |kind| [kind, 0, 0, 0, 0, 7, 0, number, 1, 2, 3, number];
        self.0
            .push((at, encapsulation.frame(&ip(1, (1, 2), &echo(8)))));
        self.0
            .push((at + 20, reverse.frame(&ip(1, (2, 1), &echo(0)))));
    }
}

fn read(folder: &TestFolder) -> Value {
    let ran = folder.neph(["read", "a.pcap", "--format", "json"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    serde_json::from_str(&ran.out).expect("JSON")
}

/// The shortest round trips to servers, in milliseconds, of each flow.
fn round_trips(document: &Value) -> Vec<Option<i64>> {
    let flows = document["flows"].as_array().expect("a list").iter();
    let min_millis = |flow: &Value| {
        let path = &flow["round_trips"]["server"]["acknowledgement"];
        let any = path
            .as_object()
            .into_iter()
            .flat_map(|classes| classes.values());
        let min_nanos = any.filter_map(|class| class["min_ns"].as_i64()).min();
        min_nanos.map(|nanos| nanos / 1_000_000)
    };
    flows.map(min_millis).collect()
}

#[test]
fn directions_in_different_networks_are_one_connection() {
    for directions in [
        (Encapsulation::Vlan(0), Encapsulation::Nothing),
        (Encapsulation::Vlan(10), Encapsulation::Vlan(20)),
        (Encapsulation::Vlan(10), Encapsulation::Nothing),
        (Encapsulation::Geneve(7), Encapsulation::Geneve(8)),
        (Encapsulation::Vxlan(7), Encapsulation::Vxlan(8)),
        (Encapsulation::Gre(7), Encapsulation::Gre(8)),
        (Encapsulation::IpInIp, Encapsulation::Nothing),
        (Encapsulation::Vxlan(7), Encapsulation::Geneve(7)),
    ] {
        for (encapsulation, reverse) in [directions, (directions.1, directions.0)] {
            let folder = TestFolder::empty();
            let mut capture = Capture::default();
            capture.connection(0, (1_000, 9_000), (encapsulation, reverse));
            // The same ports again.
            capture.connection(500, (3_000_000_000, 77), (encapsulation, reverse));
            for number in 0..5 {
                capture.ping(u32::from(number) * 100, number, (encapsulation, reverse));
            }
            capture.write(&folder);
            let document = read(&folder);
            assert_eq!(round_trips(&document), [Some(20), Some(20)], "{document}");
            let [pings] = document["exchanges"].as_array().expect("a list").as_slice() else {
                panic!("{document}");
            };
            assert_eq!(
                (&pings["requests"], &pings["answered"]),
                (&5.into(), &5.into())
            );
            let summary = &document["summary"];
            assert_eq!(summary["flows_one_direction_only"], 0, "{summary}");
            assert_eq!(summary["ambiguous_directions"], 0, "{summary}");
        }
    }
}

#[test]
fn a_connection_that_began_before_the_capture_is_joined_too() {
    let folder = TestFolder::empty();
    let mut capture = Capture::default();
    capture.connection(
        0,
        (1_000, 9_000),
        (Encapsulation::Vlan(10), Encapsulation::Vlan(20)),
    );
    capture.0.drain(..3);
    capture.write(&folder);
    let document = read(&folder);
    assert_eq!(round_trips(&document), [Some(20)], "{document}");
}

#[test]
fn address_spaces_that_overlap_stay_apart() {
    let folder = TestFolder::empty();
    let mut capture = Capture::default();
    // The same addresses and ports at once, with numbers of their own; two of them even turn over.
    for (tenant, at) in [(1, 0), (2, 3), (3, 5)] {
        let encapsulation = Encapsulation::Vxlan(tenant);
        capture.connection(
            at,
            (tenant * 1_000_000_000, tenant * 7),
            (encapsulation, encapsulation),
        );
    }
    capture.connection(
        7,
        (500_000_000, 4_000_000_000),
        (Encapsulation::Vlan(10), Encapsulation::Vlan(20)),
    );
    capture.connection(
        9,
        (2_500_000_000, 1_500_000_000),
        (Encapsulation::Vlan(30), Encapsulation::Vlan(40)),
    );
    capture.write(&folder);
    let document = read(&folder);
    assert_eq!(round_trips(&document), [Some(20); 5], "{document}");
    assert_eq!(document["summary"]["flows_in_different_tunnels"], 2);
}

#[test]
fn directions_that_several_could_answer_are_left_apart_and_reported() {
    let folder = TestFolder::empty();
    let mut capture = Capture::default();
    // To the number the same: which answer is whose cannot be known.
    capture.connection(
        0,
        (1_000, 9_000),
        (Encapsulation::Vlan(10), Encapsulation::Vlan(20)),
    );
    capture.connection(
        2,
        (1_000, 9_000),
        (Encapsulation::Vlan(30), Encapsulation::Vlan(40)),
    );
    capture.write(&folder);
    let document = read(&folder);
    let summary = &document["summary"];
    assert_eq!(summary["flows"], 4, "{document}");
    assert_eq!(summary["flows_one_direction_only"], 4);
    assert_eq!(summary["ambiguous_directions"], 2);
    let text = folder.neph(["read", "a.pcap"]).out;
    let expected = "2 directions in VLANs or tunnels of their own that several others could answer";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_two_files_of_a_tap_are_read_as_one_capture() {
    let folder = TestFolder::empty();
    let mut capture = Capture::default();
    capture.connection(
        0,
        (1_000, 9_000),
        (Encapsulation::Nothing, Encapsulation::Nothing),
    );
    let halves = [&[10, 0, 0, 1], &[10, 0, 0, 2]].map(|from: &[u8; 4]| {
        let sent = capture
            .0
            .iter()
            .filter(|(_, frame)| frame[26..30] == from[..]);
        Capture(sent.cloned().collect())
    });
    for (half, name) in halves.into_iter().zip(["up.pcap", "down+2.pcap"]) {
        half.write(&folder);
        fs::rename(folder.path("a.pcap"), folder.path(name)).expect("a file");
    }
    capture.write(&folder);
    let tapped_flows = read(&folder)["flows"].clone();
    for names in ["up.pcap+down+2.pcap", "down+2.pcap+up.pcap"] {
        let ran = folder.neph(["read", names, "--format", "json"]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        let pair: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(pair["flows"], tapped_flows, "{names}");
    }
    let out = folder.neph(["read", "up.pcap"]).out;
    assert!(out.contains("give both, a.pcap+b.pcap"), "{out}");
    assert_eq!(folder.neph(["read", "up.pcap+none.pcap"]).status, 2);
    fs::write(folder.path("text.pcap"), "no capture").expect("a file");
    let ran = folder.neph(["read", "up.pcap+text.pcap"]);
    assert_eq!((ran.status, ran.err.lines().count()), (2, 1), "{}", ran.err);
    assert!(ran.err.contains("text.pcap is no capture"), "{}", ran.err);
}
