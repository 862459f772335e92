//! A hostile peer: its impossible times are discarded and reported, and a reply that does not match a
//! request is ignored.

mod fleets;
mod floods;

use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_model::{EventKind, Message, Span, Stop, Tally};
use neph_probe::{Flow, Report};
use neph_wire::marks::{PeerMarks, PreviousTx};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format, ReplyFields, Request, Timestamp, decode_request, reflect,
};

use crate::loopback::flow;

/// Where an open reply repeats the request's timestamp and error estimate.
const ECHOED: std::ops::Range<usize> = 28..38;
const SECOND: i64 = 1_000_000_000;

/// How a reply is spoilt.
type Lie = fn(&Request<'_>, &mut ReplyFields);

/// A reflector whose times `lie` changes and whose reply bytes `spoil` changes.
struct Server {
    address: SocketAddr,
    stop: Stop,
    answering: JoinHandle<()>,
}

impl Server {
    fn begin(lie: Lie, spoil: fn(&mut [u8])) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let patience = Some(Duration::from_millis(50));
        socket.set_read_timeout(patience).expect("a limit");
        let address = socket.local_addr().expect("bound");
        let stop = Stop::new();
        let over = stop.clone();
        let answering = thread::spawn(move || {
            let mut buffer = [0; 2_000];
            while !over.is_set() {
                let Ok((len, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                let request = decode_request(&buffer[..len], Auth::Open).expect("a request");
                let mut answer = honest(request.packet.seq);
                lie(&request, &mut answer);
                let mut reply = Vec::new();
                reflect(&request, &answer, Auth::Open, &mut reply);
                spoil(&mut reply);
                socket.send_to(&reply, from).expect("sent");
            }
        });
        Self {
            address,
            stop,
            answering,
        }
    }

    fn end(self) {
        self.stop.set();
        self.answering.join().expect("no panic");
    }
}

/// Measures five messages against a reflector whose times `lie` changes and whose reply bytes `spoil`
/// changes; also returns the notes on impossible times.
fn measured(lie: Lie, spoil: fn(&mut [u8])) -> (Vec<Message>, Tally, Vec<String>) {
    let server = Server::begin(lie, spoil);
    let at = server.address;
    let mut spec = flow(&format!("udp://{at}"), 5);
    (spec.timeout, spec.reflector) = (Span::from_millis(300), true);
    let running = Flow::start(spec, Stop::new()).expect("a thread");
    let (mut messages, mut tally, mut notes) = (Vec::new(), Tally::default(), Vec::new());
    for report in running.reports() {
        match report {
            Report::Message(message) => messages.push(message),
            Report::Ended(ended) => tally = ended,
            Report::Event {
                kind: EventKind::Implausible,
                text,
                ..
            } => notes.push(text),
            _ => {}
        }
    }
    running.join().expect("the flow ran");
    server.end();
    (messages, tally, notes)
}

/// Answers at once, by a clock of its own that stands still.
fn honest(seq: u32) -> ReplyFields {
    ReplyFields {
        seq,
        receive: Timestamp::from_unix(SECOND, Format::Ntp).expect("in range"),
        timestamp: Timestamp::from_unix(SECOND, Format::Ntp).expect("in range"),
        error: ErrorEstimate::from_nanos(1_000, Format::Ntp),
        sender_ttl: 64,
        timestamps: PeerMarks {
            rx: Some(0),
            app_rx: Some(0),
            app_tx: Some(0),
            wall_offset: SECOND,
            previous: None,
        },
        follow_up: None,
    }
}

fn believed(messages: &[Message]) -> usize {
    let marked = messages
        .iter()
        .filter(|message| message.marks.peer.rx.is_some());
    marked.count()
}

#[test]
fn honest_times_are_believed() {
    let (messages, tally, notes) = measured(|_, _| {}, |_| {});
    assert_eq!((tally.replies, believed(&messages)), (5, 5));
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn impossible_peer_timestamps_are_discarded_and_reported() {
    let lies: [Lie; 4] = [
        // Longer at the peer than the round trip took: the network would take -3,600 s.
        |_, fields| fields.timestamps.app_tx = Some(3_600 * SECOND),
        |_, fields| fields.timestamps.app_rx = Some(244_000_000),
        // Sent before it came.
        |_, fields| fields.timestamps.app_tx = Some(-1),
        |_, fields| {
            (fields.timestamps.rx, fields.timestamps.app_tx) = (Some(i64::MIN), Some(i64::MAX));
        },
    ];
    for lie in lies {
        let (messages, tally, notes) = measured(lie, |_| {});
        assert_eq!((tally.replies, believed(&messages)), (5, 0));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("cannot be true"), "{notes:?}");
        for message in &messages {
            let ledger = message.ledger().expect("a reply");
            let times = ledger.entries().iter().map(neph_model::Entry::time);
            assert!(times.clone().all(|time| time >= Span::ZERO), "{ledger:?}");
            assert_eq!(times.sum::<Span>(), ledger.response_time());
        }
    }
}

/// The departure time comes with the next reply.
#[test]
fn a_departure_after_the_replys_arrival_is_left_out() {
    let lie: Lie = |request, fields| {
        let seq = u64::from(request.packet.seq);
        fields.timestamps.previous = seq.checked_sub(1).map(|seq| PreviousTx {
            seq,
            nic_tx: 3_600 * SECOND,
        });
    };
    let (messages, tally, _) = measured(lie, |_| {});
    assert_eq!((tally.replies, believed(&messages)), (5, 5));
    assert!(
        messages
            .iter()
            .all(|message| message.marks.peer.nic_tx.is_none())
    );
}

#[test]
fn a_flow_ignores_replies_that_do_not_echo_the_request() {
    let spoilt: [fn(&mut [u8]); 3] = [
        |reply| reply[ECHOED].fill(0),
        |reply| reply[ECHOED.start + 7] ^= 1,
        |reply| reply[ECHOED.end - 1] ^= 1,
    ];
    for spoil in spoilt {
        let (_, tally, _) = measured(|_, _| {}, spoil);
        assert_eq!((tally.replies, tally.lost), (0, 5));
    }
}
