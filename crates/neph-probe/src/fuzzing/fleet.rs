//! A fleet with arbitrary events from its transport and its peers, for fuzzing.
//!
//! Owns driving one session, and the invariants for any events.

use std::collections::BTreeMap;

use neph_model::{
    Fleet, FleetMessage, FleetOutcome, Instant, Local, PeerReport, ProbeKind, Slot, Span, Wall,
};
use neph_wire::stamp::{Auth, decode_reply};

use super::steps::Steps;
use crate::fleet::send_order::SendOrder;
use crate::fleet::session::{Departed, Event, Replied, RequestId, Session, low};
use crate::fleet::stamp::peer_report;

/// Between two messages of a flow.
const INTERVAL: Span = Span::from_millis(10);

/// Data of the peer from the base packet and the timestamps of a STAMP reply, if it is one.
pub fn reported_by_peer(datagram: &[u8]) -> Option<PeerReport> {
    peer_report(&decode_reply(datagram, Auth::Open).ok()?)
}

/// Runs a small fleet whose sends, timestamps, replies and failures are taken from `bytes`. Returns its
/// messages.
///
/// # Panics
/// When a message is reported twice or out of order in its flow, or when the tally does not match.
pub fn fleet(bytes: &[u8]) -> Vec<FleetMessage> {
    let mut world = World::new(&mut Steps(bytes));
    let mut steps = Steps(bytes.get(3..).unwrap_or_default());
    while let Some(step) = steps.next() {
        world.step(step, &mut steps);
        assert!(world.session.finished() <= world.tries);
    }
    world.session.finish();
    world.reported.extend(world.session.take_finished());
    world.check();
    world.reported
}

struct World {
    session: Session,
    now: Instant<Local>,
    /// The next flow's port.
    port: u16,
    /// How many messages were to be sent.
    tries: usize,
    reported: Vec<FleetMessage>,
}

impl World {
    fn new(steps: &mut Steps<'_>) -> Self {
        let [slots, life, timeout] = [0; 3].map(|_: u8| steps.next().unwrap_or(0));
        let slots = u32::from(slots % 5) + 1;
        let fleet = Fleet {
            probe: ProbeKind::Udp,
            slots,
            endpoints: Vec::new(),
            interval: INTERVAL,
            lifetime: (life > 0).then(|| INTERVAL.times(i64::from(life % 8))),
            criteria: None,
        };
        let timeout = Span::from_millis(i64::from(timeout) + 1);
        let now = Instant::from_nanos(0);
        let mut session = Session::new(SendOrder::new(&fleet, None), slots, timeout);
        session.begin(now);
        let mut port = 1;
        for slot in 0..slots {
            session.opened_first(Slot(slot), port);
            port += 1;
        }
        Self {
            session,
            now,
            port,
            tries: 0,
            reported: Vec::new(),
        }
    }

    fn step(&mut self, step: u8, steps: &mut Steps<'_>) {
        match step % 8 {
            0 | 1 => self.send(),
            2 => self.session.not_sent(),
            3 => self.session.at_time(self.now),
            4 => {
                self.now = self.now + Span::from_millis(i64::from(steps.next().unwrap_or(0)));
                self.session.at_time(self.now);
            }
            5 => self.reported.extend(self.session.take_finished()),
            6 => self.report(Event::Failed, steps),
            _ => {
                let at = self.now + Span::from_micros(i64::from(steps.next().unwrap_or(0)));
                let from_peer = steps.next().unwrap_or(0);
                let peer = PeerReport {
                    rx: Instant::from_nanos(i64::from(from_peer)),
                    residence: Span::from_nanos(steps.number()),
                    count: Some(u32::from(from_peer)),
                    ttl: None,
                };
                let known = from_peer & 1 == 0;
                let sent = Wall::from_unix_nanos(i64::from(from_peer) * 1_000_000);
                let replied = |request| {
                    Event::Replied(Replied {
                        repeated: (from_peer & 4 == 0).then_some(sent),
                        answer: None,
                        request,
                        stamp: known.then_some(at),
                        read: at,
                        ttl: Some(64),
                        peer_report: (from_peer & 2 == 0).then_some(peer),
                    })
                };
                match step >> 6 {
                    0 => self.report(|request| Event::Departed(Departed { request, at }), steps),
                    _ => self.report(replied, steps),
                }
            }
        }
    }

    fn send(&mut self) {
        let departure = self.session.departure().expect("it has no end");
        self.now = self.now.max(departure.due);
        if departure.port.is_none() {
            self.session.opened(self.port);
            self.port = self.port.wrapping_add(1);
        }
        self.session
            .sending(self.now, Wall::from_unix_nanos(self.now.nanos()));
        self.tries += 1;
    }

    /// Reports an event for one of the first ports or for an unknown one, with a small number or any number.
    fn report(&mut self, event: impl Fn(RequestId) -> Event, steps: &mut Steps<'_>) {
        let [port, seq] = [0; 2].map(|_: u8| steps.next().unwrap_or(0));
        let seq = match seq {
            u8::MAX => low(steps.number().unsigned_abs()),
            seq => u32::from(seq),
        };
        let request = RequestId {
            port: u16::from(port),
            seq,
        };
        self.session.take(&event(request));
    }

    fn check(&self) {
        let tally = self.session.tally();
        let count = |is: fn(&FleetOutcome) -> bool| {
            self.reported
                .iter()
                .filter(|message| is(&message.outcome))
                .count() as u64
        };
        for reply in self.reported.iter().filter_map(FleetMessage::reply) {
            let stays = reply.peer_report.map(|peer| peer.residence);
            let is_possible = |stay: Span| stay >= Span::ZERO && stay <= reply.round_trip;
            assert!(stays.is_none_or(is_possible), "{reply:?}");
        }
        let counted = [
            count(|outcome| matches!(outcome, FleetOutcome::Reply(_))),
            count(|outcome| *outcome == FleetOutcome::Lost),
            count(|outcome| *outcome == FleetOutcome::Failed),
        ];
        assert_eq!(counted, [tally.replies, tally.lost, tally.failed]);
        assert_eq!(tally.sent, tally.replies + tally.lost);
        assert!(self.reported.len() <= self.tries);
        let mut latest: BTreeMap<(Slot, u16), u32> = BTreeMap::new();
        for message in &self.reported {
            let flow = (message.slot, message.source_port);
            let before = latest.insert(flow, message.seq);
            assert!(before.is_none_or(|before| before < message.seq), "{flow:?}");
            if let Some(reply) = message.reply()
                && let Some(peer) = reply.peer_report
            {
                assert!(peer.residence <= reply.round_trip, "{reply:?}");
            }
        }
    }
}
