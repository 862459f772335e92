//! A fleet's session in a simulated network that loses, duplicates and reorders: its reports must equal what
//! the network did.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{Fleet, FleetOutcome, ProbeKind};
use proptest::prelude::*;

use super::*;

/// The time that all requests carry.
const WALL: Wall = Wall::from_unix_nanos(7);
use crate::sim::{Net, Random, at};

const MS: i64 = 1_000_000;
/// Between the first ports of two slots.
const PORTS: u16 = 1_000;

#[test]
fn a_pending_message_is_small() {
    assert!(size_of::<Pending>() <= 128, "{}", size_of::<Pending>());
}

/// What the network did to a message.
#[derive(Clone, Debug, Default)]
struct Truth {
    slot: u32,
    sent: i64,
    departed: i64,
    failed: bool,
    arrivals: Vec<i64>,
}

struct World {
    net: Net,
    /// Of 1000 sends, so many are refused.
    refusals: u64,
    random: Random,
    session: Session,
    timeout: i64,
    /// The next port of each slot.
    ports: Vec<u16>,
    events: BTreeMap<(i64, u64), Event>,
    tie: u64,
    truth: BTreeMap<(u16, u32), Truth>,
    reported: Vec<FleetMessage>,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    slots: u32,
    count: u64,
    interval: i64,
    lifetime: Option<i64>,
    timeout: i64,
}

fn run(shape: Shape, net: Net, refusals: u64, seed: u64) -> World {
    let fleet = Fleet {
        probe: ProbeKind::Udp,
        slots: shape.slots,
        endpoints: Vec::new(),
        interval: Span::from_nanos(shape.interval),
        lifetime: shape.lifetime.map(Span::from_nanos),
        criteria: None,
    };
    let send_order = SendOrder::new(&fleet, Some(shape.count));
    let mut world = World {
        net,
        refusals,
        random: Random(seed),
        session: Session::new(send_order, shape.slots, Span::from_nanos(shape.timeout)),
        timeout: shape.timeout,
        ports: (0..)
            .step_by(usize::from(PORTS))
            .take(shape.slots as usize)
            .collect(),
        events: BTreeMap::new(),
        tie: 0,
        truth: BTreeMap::new(),
        reported: Vec::new(),
    };
    world.session.begin(at(MS));
    world.carry_out();
    world
}

impl World {
    fn carry_out(&mut self) {
        loop {
            let due = self.session.next_due().map_or(i64::MAX, Instant::nanos);
            let event = self.events.keys().next().map_or(i64::MAX, |key| key.0);
            let deadline = self.session.next_deadline();
            let deadline = deadline.map_or(i64::MAX, Instant::nanos);
            let now = due.min(event).min(deadline);
            if now == i64::MAX {
                break;
            }
            if event == now {
                let (_, event) = self.events.pop_first().expect("just seen");
                self.session.take(&event);
            } else if due == now {
                let late = self.random.up_to(self.net.kernel);
                self.send(due + late);
            } else {
                self.session.at_time(at(now));
            }
            self.reported.extend(self.session.take_finished());
        }
        assert!(self.session.is_done());
    }

    fn send(&mut self, now: i64) {
        let departure = self.session.departure().expect("it is due");
        let port = departure.port.unwrap_or_else(|| {
            let next = &mut self.ports[departure.slot.0 as usize];
            *next += 1;
            self.session.opened(*next);
            *next
        });
        self.session.sending(at(now), WALL);
        let seq = low(departure.seq);
        let request = RequestId { port, seq };
        let mut truth = Truth {
            slot: departure.slot.0,
            sent: now,
            departed: now + self.random.up_to(self.net.kernel),
            ..Truth::default()
        };
        if self.random.chance(self.refusals) {
            truth.failed = true;
            if self.random.chance(500) {
                self.session.not_sent();
            } else {
                self.schedule_event(now + 10, Event::Failed(request));
            }
        } else {
            let at = at(truth.departed);
            self.schedule_event(truth.departed, Event::Departed(Departed { request, at }));
            for _ in 0..=u64::from(self.random.chance(self.net.duplicates)) {
                if !self.random.chance(self.net.loss) {
                    let jitter = self.random.up_to(self.net.jitter);
                    let arrives =
                        truth.departed + self.net.forward_delay + self.net.reverse_delay + jitter;
                    truth.arrivals.push(arrives);
                    self.schedule_event(arrives, reply(request, arrives));
                }
            }
        }
        self.truth.insert((port, seq), truth);
    }

    fn schedule_event(&mut self, time: i64, event: Event) {
        self.tie += 1;
        self.events.insert((time, self.tie), event);
    }

    /// What the network did, counted without any of the code under test.
    fn injected(&self) -> FleetTally {
        let mut tally = FleetTally::default();
        for truth in self.truth.values() {
            let (sent, failed) = (u64::from(!truth.failed), u64::from(truth.failed));
            tally.sent += sent;
            tally.failed += failed;
            let mut arrivals = truth.arrivals.clone();
            arrivals.sort_unstable();
            let first = arrivals.first().copied();
            let replied = first.is_some_and(|first| first < truth.sent + self.timeout);
            tally.replies += u64::from(replied);
            tally.lost += u64::from(!replied && !truth.failed);
            tally.late += u64::from(first.is_some() && !replied);
            tally.copies += arrivals.len().saturating_sub(1) as u64;
        }
        tally
    }

    fn assert_true(&self) {
        assert_eq!(*self.session.tally(), self.injected());
        let mut flows: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
        for message in &self.reported {
            let truth = &self.truth[&(message.source_port, message.seq)];
            assert_eq!(message.slot.0, truth.slot);
            flows
                .entry(message.source_port)
                .or_default()
                .push(message.seq);
            match message.outcome {
                FleetOutcome::Reply(reply) => {
                    let first = truth.arrivals.iter().min().expect("one came");
                    assert_eq!(reply.round_trip.nanos(), first - truth.departed);
                    assert_eq!(reply.read_by, ReadBy::Kernel);
                    assert_eq!(message.sent.nanos(), truth.departed);
                }
                FleetOutcome::Lost => {
                    let end = truth.sent + self.timeout;
                    assert!(!truth.failed && truth.arrivals.iter().all(|arrival| *arrival >= end));
                }
                FleetOutcome::Failed => assert!(truth.failed),
            }
        }
        let reported_seqs: BTreeSet<_> = self
            .reported
            .iter()
            .map(|m| (m.source_port, m.seq))
            .collect();
        assert_eq!(reported_seqs.len(), self.reported.len(), "each once");
        assert_eq!(reported_seqs.len(), self.truth.len(), "and all of them");
        for numbers in flows.values() {
            assert!(
                numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]),
                "{numbers:?}"
            );
        }
    }
}

fn reply(request: RequestId, arrives: i64) -> Event {
    Event::Replied(Replied {
        repeated: None,
        answer: None,
        request,
        stamp: Some(at(arrives)),
        read: at(arrives),
        ttl: Some(60),
        peer_report: None,
    })
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let lifetime = proptest::option::of(1_i64..500);
    (1_u32..40, 1_u64..20, 1_i64..300, lifetime, 1_i64..400).prop_map(
        |(slots, count, interval, lifetime, timeout)| Shape {
            slots,
            count,
            interval: interval * MS,
            lifetime: lifetime.map(|lifetime| lifetime * MS),
            timeout: timeout * MS,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn reports_match_what_the_simulated_network_did(
        shape in any_shape(),
        (loss, duplicates, refusals) in (0_u64..600, 0_u64..300, 0_u64..200),
        (delay, jitter) in (0_i64..200, 0_i64..200),
        seed in any::<u64>(),
    ) {
        let net = Net {
            forward_delay: delay * MS,
            jitter: jitter * MS,
            kernel: 20_000,
            loss,
            duplicates,
            ..Net::default()
        };
        run(shape, net, refusals, seed).assert_true();
    }
}

/// A session of one slot, whose first flow has port 7 and sends a message each 100 ms.
fn one_slot(timeout: i64) -> Session {
    let fleet = Fleet {
        probe: ProbeKind::Udp,
        slots: 1,
        endpoints: Vec::new(),
        interval: Span::from_millis(100),
        lifetime: None,
        criteria: None,
    };
    let mut session = Session::new(SendOrder::new(&fleet, None), 1, Span::from_nanos(timeout));
    session.begin(at(0));
    session.opened_first(Slot(0), 7);
    session
}

#[test]
fn a_decided_message_waits_for_earlier_messages_of_its_flow() {
    let mut session = one_slot(1_000 * MS);
    session.sending(at(0), WALL);
    session.sending(at(100 * MS), WALL);
    session.take(&reply(RequestId { port: 7, seq: 1 }, 150 * MS));
    session.at_time(at(200 * MS));
    assert_eq!(session.finished(), 0);
    session.at_time(at(1_000 * MS));
    let outcomes: Vec<_> = session
        .take_finished()
        .iter()
        .map(|m| (m.seq, m.outcome))
        .collect();
    assert_eq!(outcomes[0], (0, FleetOutcome::Lost));
    assert!(outcomes.len() == 2 && outcomes[1].0 == 1, "{outcomes:?}");
}

#[test]
fn a_reply_without_a_kernel_timestamp_has_the_application_timestamp() {
    let mut session = one_slot(1_000 * MS);
    session.sending(at(0), WALL);
    session.take(&reply(RequestId { port: 7, seq: 0 }, 20 * MS));
    session.at_time(at(25 * MS));
    let message = session.take_finished()[0];
    let reply = message.reply().expect("replied");
    assert_eq!(
        (reply.read_by, reply.round_trip),
        (ReadBy::Program, Span::from_millis(20))
    );
    assert_eq!(session.tally().unstamped, 1);
}

#[test]
fn early_copies_are_reported_per_message_and_later_ones_counted() {
    let mut session = one_slot(1_000 * MS);
    session.sending(at(0), WALL);
    let request = RequestId { port: 7, seq: 0 };
    for time in [20, 21] {
        session.take(&reply(request, time * MS));
    }
    session.at_time(at(30 * MS));
    assert_eq!(
        session.take_finished()[0].reply().map(|reply| reply.copies),
        Some(1)
    );
    session.take(&reply(request, 500 * MS));
    session.at_time(at(2_000 * MS));
    session.take(&reply(request, 2_000 * MS));
    assert_eq!((session.tally().copies, session.tally().late), (3, 0));
}

#[test]
fn unexpected_replies_are_ignored() {
    let mut session = one_slot(1_000 * MS);
    session.sending(at(0), WALL);
    for (port, seq) in [(8, 0), (7, 1), (7, u32::MAX), (0, 0)] {
        session.take(&reply(RequestId { port, seq }, MS));
    }
    session.at_time(at(1_000 * MS));
    let tally = *session.tally();
    assert_eq!(
        (tally.replies, tally.lost, tally.late, tally.copies),
        (0, 1, 0, 0)
    );
}

#[test]
fn a_stopped_session_reports_results_without_cut_messages() {
    let mut session = one_slot(1_000 * MS);
    for n in 0..3 {
        session.sending(at(n * 100 * MS), WALL);
    }
    for seq in [0, 2] {
        session.take(&reply(RequestId { port: 7, seq }, 201 * MS));
    }
    session.end_schedule();
    assert!(!session.is_done());
    session.finish();
    assert!(session.is_done());
    let numbers: Vec<_> = session
        .take_finished()
        .iter()
        .map(|message| message.seq)
        .collect();
    assert_eq!(numbers, [0, 2]);
    let tally = *session.tally();
    assert_eq!((tally.sent, tally.replies, tally.lost), (2, 2, 0));
}

#[test]
fn memory_is_bounded_by_the_timeout_and_not_by_the_duration() {
    let mut session = one_slot(1_000 * MS);
    let room = (session.in_flight.capacity(), session.past.capacity());
    for n in 0..20_000_u32 {
        let now = i64::from(n) * 100 * MS;
        session.sending(at(now), WALL);
        session.take(&reply(RequestId { port: 7, seq: n }, now + 50 * MS));
        session.at_time(at(now + 60 * MS));
        assert!(session.in_flight.len() <= 12);
        session.take_finished();
    }
    assert_eq!(
        room,
        (session.in_flight.capacity(), session.past.capacity())
    );
    assert_eq!(session.tally().replies, 20_000);
}
