//! One spoofed packet must not start an endless exchange between a neph reflector and a second one,
//! itself, a UDP echo, or a service with a constant reply (CVE-2024-2169).
//!
//! Everything happens on the loopback of a namespace of the test's own.

use super::*;
use crate::support::{Net, is_root, skip};

use neph_probe::Placement;
use neph_wire::ip::{UdpHeaders, encode_udp};
use socket2::Protocol;

/// A peer's reply to a packet.
type Replies = fn(&[u8]) -> Vec<u8>;

/// What a loop may take before it is over.
const MAXIMUM: u64 = 10;

/// A namespace of its own.
struct Stage {
    net: Net,
}

impl Stage {
    fn new(test: &str, name: &str) -> Option<Self> {
        if !is_root() {
            skip(test, "spoofed packets need root");
            return None;
        }
        let net = Net::new(name, &["here"]);
        Some(Self { net })
    }

    fn placement(&self) -> Placement {
        self.net.placement("here")
    }

    fn reflector(&self, at: &str, key: Option<&[u8]>) -> Reflector {
        let key = key.map(key_file);
        let spec = ReflectorSpec {
            stamp_key: key.as_ref().map(source),
            ..ReflectorSpec::at(at.parse().expect("an address"))
        };
        start_in(&spec, &self.placement())
    }

    /// Sends these bytes as if `from` had sent them.
    fn spoof(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let datagram = UdpHeaders {
            source: from,
            destination: to,
            hop_limit: 64,
        };
        let mut packet = Vec::new();
        encode_udp(&datagram, payload, &mut packet).expect("it fits");
        self.net.within("here", || {
            // IPPROTO_RAW: the header is ours.
            let raw = Some(Protocol::from(255));
            let socket = Socket::new(Domain::for_address(to), Type::from(3), raw).expect("root");
            let mut host = to;
            host.set_port(0);
            socket.send_to(&packet, &host.into()).expect("sent");
        });
    }

    /// Asks honestly, `count` times one after the other, from a port of its own; each is answered.
    fn asks(&self, reflector: &Reflector, count: u32, auth: Auth<'_>) {
        let to = reflector.address();
        self.net.within("here", || {
            let any = if to.is_ipv4() {
                "127.0.0.1:0"
            } else {
                "[::1]:0"
            };
            let socket = UdpSocket::bind(any).expect("bind");
            socket.connect(to).expect("connect");
            let patience = Some(Duration::from_secs(5));
            socket.set_read_timeout(patience).expect("a limit");
            for seq in 0..count {
                socket.send(&request(seq, auth)).expect("send");
                socket.recv(&mut [0; 200]).expect("an answer");
            }
        });
    }
}

fn request(seq: u32, auth: Auth<'_>) -> Vec<u8> {
    numbered_request(seq, auth, 44)
}

/// Spoofs a packet of each of two reflectors to the other, then asks both honestly: a loop does some
/// tens of thousands of answers meanwhile.
fn two_answer_no_more_than_a_few(stage: &Stage, pair: [&Reflector; 2], auth: Auth<'_>) {
    let [first, second] = pair.map(Reflector::address);
    stage.spoof(first, second, &request(0, auth));
    stage.spoof(second, first, &request(0, auth));
    for reflector in pair {
        stage.asks(reflector, 500, auth);
    }
    // A reply is counted when it has gone: its reader may be quicker.
    let replies = || {
        pair.iter()
            .map(|reflector| counted(reflector, Counted::Replies))
            .sum::<u64>()
    };
    eventually("all replies are counted", || replies() >= 1_000);
    let of_the_loop = replies() - 1_000;
    assert!(of_the_loop <= MAXIMUM, "{of_the_loop} replies");
    let refused = |counter| {
        pair.iter()
            .map(|reflector| counted(reflector, counter))
            .sum::<u64>()
    };
    let [ports, answers] = [Counted::RefusedPorts, Counted::RefusedAnswers].map(refused);
    assert_eq!(ports + answers, 2, "{ports} by port, {answers} by fields");
}

#[test]
fn two_reflectors_do_not_answer_each_others_answers() {
    let test = "two reflectors do not answer each other";
    let Some(stage) = Stage::new(test, "loop2") else {
        return;
    };
    let at_two_ports = ["127.0.0.1:8080", "127.0.0.1:9090"];
    let at_one_port = ["127.0.0.2:8080", "127.0.0.3:8080"];
    let of_ipv6 = ["[::1]:8081", "[::1]:9091"];
    for [first, second] in [at_two_ports, at_one_port, of_ipv6] {
        let pair = [first, second].map(|at| stage.reflector(at, None));
        two_answer_no_more_than_a_few(&stage, pair.each_ref(), Auth::Open);
    }
}

#[test]
fn a_replayed_packet_makes_no_loop_of_two_reflectors_with_one_key() {
    let test = "a replayed packet makes no loop";
    let Some(stage) = Stage::new(test, "loopkey") else {
        return;
    };
    let pair = ["127.0.0.1:8080", "127.0.0.1:9090"];
    let pair = pair.map(|at| stage.reflector(at, Some(b"shared")));
    let key = Key::new(b"shared").expect("a key");
    two_answer_no_more_than_a_few(&stage, pair.each_ref(), Auth::Keyed(&key));
}

#[test]
fn a_reflector_does_not_answer_its_own_packets() {
    let test = "a reflector does not talk to itself";
    let Some(stage) = Stage::new(test, "loopself") else {
        return;
    };
    for at in ["127.0.0.1:8080", "[::1]:9090"] {
        let reflector = stage.reflector(at, None);
        let own_address = reflector.address();
        stage.spoof(own_address, own_address, &request(0, Auth::Open));
        stage.asks(&reflector, 500, Auth::Open);
        eventually("all replies are counted", || {
            counted(&reflector, Counted::Replies) >= 500
        });
        assert_eq!(counted(&reflector, Counted::Replies), 500);
        assert_eq!(counted(&reflector, Counted::RefusedPorts), 1);
    }
}

/// Answers every packet until `stop` is set; returns the number of answers.
fn answering(
    stage: &Stage,
    stop: &Stop,
    answer: Replies,
) -> (SocketAddr, std::thread::JoinHandle<u64>) {
    let bound = || UdpSocket::bind("127.0.0.1:0").expect("bind");
    let socket = stage.net.within("here", bound);
    let patience = Some(Duration::from_millis(20));
    socket.set_read_timeout(patience).expect("a limit");
    let at = socket.local_addr().expect("bound");
    let stop = stop.clone();
    let work = move || {
        let (mut answers, mut buffer) = (0, [0; 1_000]);
        while !stop.is_set() {
            let Ok((len, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            socket.send_to(&answer(&buffer[..len]), from).expect("sent");
            answers += 1;
        }
        answers
    };
    (at, std::thread::spawn(work))
}

#[test]
fn echo_services_and_constant_repliers_are_soon_left_unanswered() {
    let test = "echoes are soon answered no more";
    let Some(stage) = Stage::new(test, "loopecho") else {
        return;
    };
    let echo = |packet: &[u8]| packet.to_vec();
    // As a service that answers everything with one message of its own.
    let same = |_: &[u8]| request(7, Auth::Open);
    let cases: [(Replies, Counted); 2] = [
        (echo, Counted::RefusedAnswers),
        (same, Counted::RefusedRepeats),
    ];
    for (answer, reason) in cases {
        let reflector = stage.reflector("127.0.0.1:8080", None);
        let stop = Stop::new();
        let (at, echoing) = answering(&stage, &stop, answer);
        stage.spoof(at, reflector.address(), &request(0, Auth::Open));
        eventually("refused", || counted(&reflector, reason) == 1);
        stage.asks(&reflector, 500, Auth::Open);
        stop.set();
        let answers = echoing.join().expect("no panic");
        let replies = counted(&reflector, Counted::Replies) - 500;
        assert!(replies + answers <= 2 * MAXIMUM, "{replies} and {answers}");
        assert_eq!(counted(&reflector, reason), 1, "it is over");
    }
}

#[test]
fn well_known_source_ports_are_answered_only_if_allowed() {
    let test = "ports of servers are answered where asked for";
    let Some(stage) = Stage::new(test, "loopport") else {
        return;
    };
    let spec = ReflectorSpec {
        answered_ports: vec![862],
        ..ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 8080)))
    };
    let asked_for = start_in(&spec, &stage.placement());
    for port in [53, 862] {
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        stage.spoof(from, asked_for.address(), &request(0, Auth::Open));
    }
    eventually("both came", || {
        counted(&asked_for, Counted::Replies) == 1
            && counted(&asked_for, Counted::RefusedPorts) == 1
    });
}
