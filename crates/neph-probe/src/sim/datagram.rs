//! STAMP in the simulated network: datagrams are lost, duplicated and reordered.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{Anchor, Instant, Ledger, Message, Outcome, Span, Stage, Tally, Wall};
use neph_wire::marks::PreviousTx;
use neph_wire::stamp::{Auth, ErrorEstimate, Format, Key, decode_request, reflect};

use super::{Net, PEER_AHEAD, Random, at, proved, spec};
use crate::datagram::session::Session;
use crate::datagram::{Codec, udp};
use crate::exchange::SendPoint;
use crate::reflect::reply_timestamps::Arrived;
use crate::reflect::session::{ReceivedDatagram, Session as PeerSession};
use crate::secret::Secret;
use crate::spec::FlowSpec;

const MS: i64 = 1_000_000;
const SECRET: &[u8] = b"simulated";
/// Both wall clocks minus their monotonic clocks: in 2023, within the range of STAMP's format.
const WALL: i64 = 1_700_000_000_000_000_000;

/// One request as the network saw it, on the local clock.
#[derive(Clone, Debug, Default)]
struct Truth {
    sent: i64,
    nic_tx: i64,
    peer_rx: i64,
    /// How often the peer answered: twice when the network duplicated the request.
    answered: u32,
    /// Its replies in the order of departure: when each left, and when it arrived.
    replies: Vec<(i64, i64)>,
}

enum Event {
    ToPeer(Vec<u8>),
    ToUs(Vec<u8>),
}

struct World {
    net: Net,
    random: Random,
    now: i64,
    session: Session,
    codec: udp::Udp,
    peer: PeerSession,
    key: Option<Key>,
    events: BTreeMap<(i64, u64), Event>,
    tie: u64,
    sent: u32,
    truth: BTreeMap<u64, Truth>,
    messages: Vec<Message>,
    timeout: i64,
}

struct Outcomes {
    messages: Vec<Message>,
    tally: Tally,
    truth: BTreeMap<u64, Truth>,
    timeout: i64,
}

fn run(spec: &FlowSpec, net: Net, seed: u64) -> Outcomes {
    let mut session = Session::new(spec);
    session.begin(at(MS));
    let mut world = World {
        net,
        random: Random(seed),
        now: 0,
        session,
        codec: udp::codec(spec),
        peer: PeerSession::new(at(0)),
        key: spec.key.as_ref().map(Secret::key),
        events: BTreeMap::new(),
        tie: 0,
        sent: 0,
        truth: BTreeMap::new(),
        messages: Vec::new(),
        timeout: spec.timeout.nanos(),
    };
    world.carry_out();
    Outcomes {
        tally: *world.session.tally(),
        messages: world.messages,
        truth: world.truth,
        timeout: world.timeout,
    }
}

impl World {
    fn carry_out(&mut self) {
        let mut ends = None;
        loop {
            let due = self.session.next_due().map_or(i64::MAX, Instant::nanos);
            let deadline = self
                .session
                .next_deadline()
                .map_or(i64::MAX, Instant::nanos);
            let event = self.events.first_key_value().map(|(key, _)| *key);
            let next = event.map_or(i64::MAX, |key| key.0);
            if next <= due.min(deadline) {
                let Some(key) = event else { break };
                self.now = key.0;
                match self.events.remove(&key).expect("just seen") {
                    Event::ToPeer(bytes) => self.answer(&bytes),
                    Event::ToUs(bytes) => self.receive(&bytes),
                }
            } else if due <= deadline {
                self.now = due + self.random.up_to(self.net.kernel);
                let seq = self.session.sending(at(self.now)).expect("it is due");
                self.send(seq.0);
            } else {
                self.now = self.now.max(deadline);
            }
            self.session.at_time(at(self.now));
            while let Some(message) = self.session.take_finished(at(self.now)) {
                self.messages.push(message);
            }
            if let Some(seq) = self.session.tail() {
                self.send(seq);
            }
            // Late replies are still to be counted.
            if self.session.is_done() && self.now > *ends.get_or_insert(self.now) + 10_000 * MS {
                break;
            }
        }
        while let Some(message) = self.session.take_rest() {
            self.messages.push(message);
        }
        self.session.take_notes();
    }

    fn schedule_event(&mut self, time: i64, event: Event) {
        self.tie += 1;
        self.events.insert((time, self.tie), event);
    }

    fn send(&mut self, seq: u64) {
        let mut bytes = Vec::new();
        let wall = Wall::from_unix_nanos(WALL + self.now);
        self.codec.request(seq, wall, &mut bytes);
        let queued = self.now + self.random.up_to(self.net.kernel);
        let nic_tx = queued + self.random.up_to(self.net.kernel);
        for (point, time) in [(SendPoint::Queued, queued), (SendPoint::NicTx, nic_tx)] {
            self.session.stamped(point, self.sent, at(time));
        }
        self.sent += 1;
        let truth = self.truth.entry(seq).or_default();
        (truth.sent, truth.nic_tx) = (self.now, nic_tx);
        for arrives in self.arrivals(nic_tx + self.net.forward_delay) {
            self.schedule_event(arrives, Event::ToPeer(bytes.clone()));
        }
    }

    /// Arrival times of a datagram: none, one or two.
    fn arrivals(&mut self, time: i64) -> Vec<i64> {
        if self.random.chance(self.net.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.random.chance(self.net.duplicates));
        let arrivals = (0..copies).map(|_| time + self.random.up_to(self.net.jitter));
        arrivals.collect()
    }

    fn answer(&mut self, bytes: &[u8]) {
        let auth = self.key.as_ref().map_or(Auth::Open, Auth::Keyed);
        let request = decode_request(bytes, auth).expect("a request of ours");
        let seq = u64::from(request.packet.seq);
        let app_rx = self.now + self.random.up_to(self.net.kernel);
        let app_tx = app_rx + self.net.think;
        let requested = ReceivedDatagram {
            bytes,
            ttl: 64,
            from: ([192, 0, 2, 9], 9).into(),
            arrived: Arrived {
                rx: Some(at(self.now + PEER_AHEAD)),
                app_rx: at(app_rx + PEER_AHEAD),
            },
        };
        let wall = Anchor {
            at: at(0),
            wall: Wall::from_unix_nanos(WALL),
        };
        let error = ErrorEstimate::from_nanos(1_000, Format::Ntp);
        let answer = self
            .peer
            .answer(&requested, at(app_tx + PEER_AHEAD), wall, error);
        let mut reply = Vec::new();
        reflect(&request, &answer, auth, &mut reply);
        assert_eq!(reply.len(), bytes.len(), "never larger than the request");
        let nic_tx = app_tx + self.random.up_to(self.net.kernel);
        self.peer.previous = Some(PreviousTx {
            seq,
            nic_tx: nic_tx + PEER_AHEAD,
        });
        let peer_rx = self.now;
        self.truth.get_mut(&seq).expect("it was sent").answered += 1;
        for arrives in self.arrivals(nic_tx + self.net.reverse_delay) {
            let truth = self.truth.get_mut(&seq).expect("it was sent");
            truth.replies.push((nic_tx, arrives));
            if truth.peer_rx == 0 {
                truth.peer_rx = peer_rx;
            }
            self.schedule_event(arrives, Event::ToUs(reply.clone()));
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let answer = self.codec.answer(bytes, self.session.next_seq());
        let answer = answer.expect("a reply of the reflector's");
        let now = at(self.now);
        self.session.answered(&answer, Some(now), now);
    }
}

/// What the network did to the messages, counted without any of the code under test.
fn injected(outcomes: &Outcomes, count: u64) -> Tally {
    let mut arrivals: Vec<(i64, u64)> = Vec::new();
    for (seq, truth) in outcomes.truth.range(..count) {
        arrivals.extend(truth.replies.iter().map(|(_, arrived)| (*arrived, *seq)));
    }
    arrivals.sort_unstable();
    let mut tally = Tally {
        messages: count,
        ..Tally::default()
    };
    let (mut answered, mut highest) = (BTreeSet::new(), None);
    for (arrived, seq) in arrivals {
        let in_time = arrived < outcomes.truth[&seq].sent + outcomes.timeout;
        if answered.contains(&seq) {
            tally.duplicates += 1;
        } else if !in_time {
            tally.late += 1;
        } else {
            answered.insert(seq);
            tally.reordered += u64::from(highest > Some(seq));
            highest = highest.max(Some(seq));
        }
    }
    tally.replies = answered.len() as u64;
    tally.lost = count - tally.replies;
    tally
}

fn assert_true(outcomes: &Outcomes) {
    for message in &outcomes.messages {
        let truth = &outcomes.truth[&message.seq.0];
        let Some(ledger) = message.ledger() else {
            assert_eq!(message.outcome, Outcome::Lost);
            continue;
        };
        let sum: Span = ledger.entries().iter().map(neph_model::Entry::time).sum();
        assert_eq!(sum, ledger.response_time());
        assert_eq!(message.marks.nic_tx.map(Instant::nanos), Some(truth.nic_tx));
        let received = message.marks.nic_rx.map(Instant::nanos);
        let left = message
            .marks
            .peer
            .nic_tx
            .map(|left| left.nanos() - PEER_AHEAD);
        let peer = &message.marks.peer;
        assert!(left.is_none() || peer.nic_tx >= peer.app_tx, "{peer:?}");
        let known = truth.replies.iter().any(|(nic_tx, arrived)| {
            Some(*arrived) == received && left.is_none_or(|l| l == *nic_tx)
        });
        assert!(known || truth.answered > 1, "{:?} {truth:?}", message.marks);
    }
}

#[test]
fn without_loss_each_stage_equals_the_injected_delay() {
    for key in [None, Secret::new(SECRET)] {
        let net = Net {
            forward_delay: 15 * MS,
            reverse_delay: 5 * MS,
            jitter: 800_000,
            kernel: 10_000,
            think: 300_000,
            ..Net::default()
        };
        let mut spec = spec("udp://h:9", 3_000, Span::from_millis(1));
        spec.key = key;
        let outcomes = run(&spec, net, 11);
        assert_eq!(outcomes.tally, injected(&outcomes, 3_000));
        assert_true(&outcomes);
        let marks = outcomes.messages.iter().map(|message| &message.marks);
        let offset = proved(marks).expect("all four marks are there");
        let error = (offset.value() - Span::from_nanos(PEER_AHEAD)).abs();
        assert!(error <= offset.bound(), "{error}");
        for message in &outcomes.messages {
            let truth = &outcomes.truth[&message.seq.0];
            let (left, received) = truth.replies[0];
            let ledger = message.ledger().expect("nothing was lost");
            let network = truth.peer_rx - truth.nic_tx + received - left;
            assert_eq!(
                ledger.stage(Stage::Network),
                Some(Span::from_nanos(network))
            );
            assert_eq!(
                ledger.stage(Stage::PeerApp),
                Some(Span::from_nanos(300_000))
            );
            let (forward, _) = Ledger::directions(&message.marks, offset).expect("marks");
            let error = (forward.delay - Span::from_nanos(truth.peer_rx - truth.nic_tx)).abs();
            assert!(error <= forward.bound);
        }
    }
}

/// Loss x delay x reordering: the report equals what the network did, message by message.
#[test]
fn the_tally_equals_the_events_of_the_simulated_network() {
    let mut table =
        String::from("loss/1000  delay ms  jitter ms   replies  lost  dup  reord  late\n");
    for loss in [0, 100, 500] {
        for delay in [0, 20, 120] {
            for jitter in [0, 40] {
                let net = Net {
                    forward_delay: delay * MS,
                    reverse_delay: delay * MS,
                    jitter: jitter * MS,
                    kernel: 10_000,
                    think: 50_000,
                    loss,
                    duplicates: 20,
                    ..Net::default()
                };
                let mut spec = spec("udp://h:9", 1_000, Span::from_millis(2));
                spec.timeout = Span::from_millis(260);
                let outcomes = run(&spec, net, 12);
                let numbers: Vec<u64> = outcomes.messages.iter().map(|m| m.seq.0).collect();
                assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
                assert_eq!(outcomes.tally, injected(&outcomes, 1_000));
                assert_true(&outcomes);
                let tally = outcomes.tally;
                table += &format!(
                    "{loss:9} {delay:9} {jitter:10} {:9} {:5} {:4} {:6} {:5}\n",
                    tally.replies, tally.lost, tally.duplicates, tally.reordered, tally.late
                );
            }
        }
    }
    assert_eq!(table, TABLE, "{table}");
}

/// Seed 12. Where delay and jitter exceed the timeout of 260 ms, replies are late, not lost.
const TABLE: &str = "\
loss/1000  delay ms  jitter ms   replies  lost  dup  reord  late
        0         0          0      1000     0   49      0     0
        0         0         40      1000     0   41    794     0
        0        20          0      1000     0   48      0     0
        0        20         40      1000     0   44    790     0
        0       120          0      1000     0   41      0     0
        0       120         40       125   875    8     15   902
      100         0          0       830   170   29      0     0
      100         0         40       824   176   28    649     0
      100        20          0       812   188   30      0     0
      100        20         40       814   186   29    630     0
      100       120          0       832   168   32      0     0
      100       120         40       110   890   12     15   727
      500         0          0       250   750    8      0     0
      500         0         40       231   769    5    123     0
      500        20          0       265   735    8      0     0
      500        20         40       275   725    8    145     0
      500       120          0       242   758    7      0     0
      500       120         40        40   960    4      1   209
";
