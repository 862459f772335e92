//! Connections in the simulated network: bytes in order, at known times.

pub(super) mod foreign;
mod peer;

use std::collections::BTreeMap;
use std::sync::Arc;

use neph_model::{Answer, Instant, Message, ReflectorCaps, ReflectorIdentity, Span, Tally};
use neph_sys::stamp::Ending;

use self::foreign::Serve;
use super::{Net, PEER_AHEAD, Random, at};
use crate::codec::ConnectionEnd;
use crate::exchange::SendPoint;
use crate::reflect::answerer::{Answerer, Shares};
use crate::reflect::budget::Budgets;
use crate::reflect::tx_timestamps::PendingTxTimestamps;
use crate::report::Note;
use crate::spec::FlowSpec;
use crate::stream::session::{Closing, Session, Stamped};
use crate::tls;

/// One exchange as the network saw it, on the local clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Truth {
    pub(super) nic_tx: i64,
    pub(super) acked: i64,
    pub(super) peer_rx: i64,
    pub(super) peer_app_rx: i64,
    pub(super) peer_app_tx: i64,
    pub(super) peer_nic_tx: i64,
    pub(super) nic_rx: i64,
    pub(super) app_recv: i64,
}

/// The result of a run.
pub(super) struct Outcomes {
    pub(super) messages: Vec<Message>,
    pub(super) tally: Tally,
    /// The exchanges of each connection in order.
    pub(super) truth: BTreeMap<u32, Vec<Truth>>,
    pub(super) resets: u64,
    pub(super) texts: Vec<String>,
}

enum Event {
    Connected,
    ToPeer(Packet),
    ToUs(Packet),
    Stamped(SendPoint, u32, i64),
    Reset,
}

struct Packet {
    bytes: Vec<u8>,
    /// When its last byte arrives; the receiver may be busy then.
    arrives: i64,
    /// The exchange that it ends, if any.
    ends: Option<usize>,
}

/// One connection's two directions and its server side.
struct Link {
    answerer: Answerer,
    /// Bytes that a third-party server has received and not processed.
    inbox: Vec<u8>,
    /// Arrival of the latest packet in each direction: TCP keeps their order.
    forward_delay: i64,
    reverse_delay: i64,
    /// When the peer's thread is free again.
    busy: i64,
    sent: u64,
    returned: u64,
    requested: usize,
    answered: usize,
}

pub(super) struct World {
    net: Net,
    random: Random,
    now: i64,
    session: Session,
    /// The server, where it is no reflector.
    serve: Option<Serve>,
    events: BTreeMap<(i64, u64), (u32, Event)>,
    tie: u64,
    links: BTreeMap<u32, Link>,
    tls: Option<Arc<rustls::ServerConfig>>,
    budgets: Budgets,
    tx_timestamps: Arc<PendingTxTimestamps>,
    outcomes: Outcomes,
}

impl World {
    pub(super) fn new(spec: &FlowSpec, net: Net, seed: u64) -> Self {
        let secure = spec.target.is_secure();
        let client = secure.then(|| {
            tls::client_config(spec.tls_version, &spec.trust).expect("a client's settings")
        });
        let identity = ReflectorIdentity::SelfSigned(vec!["localhost".to_owned()]);
        let tls = secure.then(|| {
            let side = tls::server_config(&identity, spec.tls_version);
            side.expect("a server's settings").config
        });
        let caps = ReflectorCaps {
            messages_per_second: 1_000_000,
            ..ReflectorCaps::default()
        };
        Self {
            net,
            random: Random(seed),
            now: 0,
            session: Session::new(spec, client),
            serve: (!spec.reflector)
                .then(|| foreign::server(spec.target.kind()))
                .flatten(),
            events: BTreeMap::new(),
            tie: 0,
            links: BTreeMap::new(),
            tls,
            budgets: Budgets::new(caps),
            tx_timestamps: Arc::default(),
            outcomes: Outcomes {
                messages: Vec::new(),
                tally: Tally::default(),
                truth: BTreeMap::new(),
                resets: 0,
                texts: Vec::new(),
            },
        }
    }

    /// Runs to the end, as the driver does.
    pub(super) fn run(mut self) -> Outcomes {
        self.session.warm_up(at(0));
        self.turn();
        while !self.session.is_warm() && self.next_event(i64::MAX) {}
        self.session.begin(at(self.now + 1_000_000));
        let mut done = None;
        loop {
            if let Some(due) = self.session.next_due() {
                if !self.next_event(due.nanos()) {
                    self.send(due.nanos());
                }
                continue;
            }
            self.session.send_tail(at(self.now));
            self.turn();
            if self.session.is_done() {
                let since = *done.get_or_insert(self.now);
                if !self.session.lacks_peer_send() || self.now > since + 1_000_000_000 {
                    break;
                }
            }
            let deadline = self
                .session
                .next_deadline()
                .map_or(i64::MAX, Instant::nanos);
            let until = deadline.min(self.now + 50_000_000);
            if !self.next_event(until) {
                self.now = self.now.max(until);
            }
        }
        while let Some(message) = self.session.take_rest() {
            self.outcomes.messages.push(message);
        }
        self.outcomes.tally = *self.session.tally();
        self.outcomes
    }

    fn send(&mut self, due: i64) {
        self.now = self.now.max(due - self.net.kernel);
        self.session.prepare(at(self.now));
        self.now = self.now.max(due + self.random.up_to(self.net.kernel));
        let now = at(self.now);
        self.session.send(now, &mut || now);
        self.turn();
    }

    /// Processes the next event until `until`. Returns whether there was one.
    fn next_event(&mut self, until: i64) -> bool {
        let deadline = self
            .session
            .next_deadline()
            .map_or(i64::MAX, Instant::nanos);
        let next = self.events.first_key_value().map(|(key, _)| *key);
        match next {
            Some(key) if key.0 <= until.min(deadline) => {
                self.now = self.now.max(key.0);
                let (link, event) = self.events.remove(&key).expect("just seen");
                self.happen(link, event);
            }
            _ if deadline <= until && deadline < i64::MAX => self.now = self.now.max(deadline),
            _ => return false,
        }
        self.turn();
        true
    }

    fn schedule_event(&mut self, time: i64, link: u32, event: Event) {
        self.tie += 1;
        self.events.insert((time, self.tie), (link, event));
    }

    fn happen(&mut self, number: u32, event: Event) {
        if !self.links.contains_key(&number) {
            return;
        }
        match event {
            Event::Connected => {
                let now = at(self.now);
                self.session.connected(number, now, &mut || now);
            }
            Event::ToPeer(packet) => match self.serve {
                Some(serve) => self.serve(number, &packet, serve),
                None => self.answer(number, &packet),
            },
            Event::ToUs(packet) => self.receive(number, &packet),
            Event::Stamped(point, id, time) => {
                let stamped = Stamped {
                    point,
                    id,
                    at: at(time),
                    tcp: None,
                };
                self.session.stamped(number, &stamped);
            }
            Event::Reset => {
                self.links.remove(&number);
                self.outcomes.resets += 1;
                let end = ConnectionEnd::new("reset", Some(Answer::Reset));
                self.session.connection_failed(number, end, at(self.now));
            }
        }
    }

    fn turn(&mut self) {
        self.session.at_time(at(self.now));
        while let Some(number) = self.session.take_dial() {
            self.dial(number);
        }
        let numbers: Vec<u32> = self.links.keys().copied().collect();
        for number in numbers {
            self.write(number);
        }
        while let Some(Closing { number, .. }) = self.session.take_close() {
            self.links.remove(&number);
            self.session.closed(number);
        }
        for note in self.session.take_notes() {
            if let Note::Event(_, text) = note {
                self.outcomes.texts.push(text);
            }
        }
        while let Some(message) = self.session.take_finished(at(self.now)) {
            self.outcomes.messages.push(message);
        }
    }

    fn dial(&mut self, number: u32) {
        self.session.dial_started(number, at(self.now));
        let peer = std::net::IpAddr::from([192, 0, 2, 9]);
        let budget = self.budgets.of(peer, at(self.now + PEER_AHEAD));
        let caps = ReflectorCaps::default();
        let shares = Shares {
            tx_timestamps: Arc::clone(&self.tx_timestamps),
            ..Shares::separate(&caps, budget.expect("one peer"))
        };
        let answerer = Answerer::new(
            caps,
            Span::from_nanos(self.net.think),
            self.tls.clone(),
            shares,
        );
        let link = Link {
            answerer,
            inbox: Vec::new(),
            forward_delay: 0,
            reverse_delay: 0,
            busy: 0,
            sent: 0,
            returned: 0,
            requested: 0,
            answered: 0,
        };
        self.links.insert(number, link);
        self.outcomes.truth.insert(number, Vec::new());
        let established_at = self.now + self.net.forward_delay + self.net.reverse_delay;
        self.schedule_event(established_at, number, Event::Connected);
    }

    /// Writes the session's bytes, as a socket takes them.
    fn write(&mut self, number: u32) {
        loop {
            let Some((bytes, ending)) = self.session.to_write(number) else {
                return;
            };
            let mut bytes = bytes.to_vec();
            let offered = bytes.len();
            if self.random.chance(self.net.partial) {
                let max = i64::try_from(offered).expect("small") - 1;
                let accepted = usize::try_from(self.random.up_to(max)).expect("not negative") + 1;
                bytes.truncate(accepted);
            }
            let count = bytes.len();
            let ends = ending == Ending::Message && count == offered;
            self.carry(number, bytes, ends);
            self.session.wrote(number, count);
        }
    }

    fn carry(&mut self, number: u32, bytes: Vec<u8>, ends: bool) {
        let queued = self.now + self.random.up_to(self.net.kernel);
        let nic_tx = queued + self.random.up_to(self.net.kernel);
        let delay = self.net.forward_delay + self.random.up_to(self.net.jitter) + self.stall();
        let reset = self.random.chance(self.net.resets);
        let link = self.links.get_mut(&number).expect("it is written to");
        link.forward_delay = (nic_tx + delay).max(link.forward_delay + 1);
        link.sent += bytes.len() as u64;
        let (arrives, id) = (link.forward_delay, last_id(link.sent));
        let acked = arrives + self.net.reverse_delay;
        let ends = ends.then(|| {
            link.requested += 1;
            self.outcomes.truth.entry(number).or_default().push(Truth {
                nic_tx,
                acked,
                peer_rx: arrives,
                ..Truth::default()
            });
            link.requested - 1
        });
        self.schedule_event(
            nic_tx,
            number,
            Event::Stamped(SendPoint::Queued, id, queued),
        );
        self.schedule_event(nic_tx, number, Event::Stamped(SendPoint::NicTx, id, nic_tx));
        self.schedule_event(acked, number, Event::Stamped(SendPoint::Acked, id, acked));
        self.schedule_event(
            arrives,
            number,
            Event::ToPeer(Packet {
                bytes,
                arrives,
                ends,
            }),
        );
        if reset {
            let time = nic_tx
                + self
                    .random
                    .up_to(2 * (self.net.forward_delay + self.net.reverse_delay));
            self.schedule_event(time, number, Event::Reset);
        }
    }

    /// A lost segment delays the bytes after it until it is retransmitted.
    fn stall(&mut self) -> i64 {
        i64::from(self.random.chance(self.net.stalls)) * 200_000_000
    }
}

/// The kernel identifies a write by the offset of its last byte, modulo 2^32.
fn last_id(sent: u64) -> u32 {
    u32::try_from((sent - 1) & 0xffff_ffff).expect("masked")
}
