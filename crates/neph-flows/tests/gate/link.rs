//! A lab's link in virtual time: the gates of a shipped topology, a fleet that asks over them, and
//! bursts of other traffic. What the gates decide is the truth.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;

use neph_flows::Digest;
use neph_lab::{
    Arrival, Change, Direction, Flow, Gate, Moment, PacketOutcome, ReservedProtocol, Shape,
    Topology,
};
use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, FleetReply, Instant, PeerReport, ProbeKind,
    ReadBy, Slot, Span,
};
use neph_text::Source;

use crate::truth::Truth;

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const S: i64 = 1_000 * MS;
/// Of a STAMP packet of 64 bytes with its headers.
const LENGTH: u32 = 106;
const FULL: u32 = 1514;
/// The kernel's ports begin here; each slot has one.
const FIRST_PORT: u16 = 10_000;

/// What is asked over the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FleetParameters {
    pub(crate) flows: u32,
    pub(crate) interval: i64,
    pub(crate) length: i64,
    pub(crate) seed: u64,
}

impl FleetParameters {
    pub(crate) fn fleet(&self) -> Fleet {
        Fleet {
            probe: ProbeKind::Udp,
            slots: self.flows,
            endpoints: vec![FleetEndpoint {
                name: "server".to_owned(),
                address: SocketAddr::from(([10, 83, 0, 2], 8080)),
            }],
            interval: Span::from_nanos(self.interval),
            lifetime: None,
            criteria: None,
        }
    }
}

/// Bursts of traffic that fill the queue and keep it full: 80 ms at five quarters of the rate, then
/// at the rate, so that what the fleet adds is lost now and then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    pub(crate) first: i64,
    pub(crate) lasts: i64,
    pub(crate) every: i64,
}

/// As flows-noisy.toml has its TCP bursts, there and back.
pub(crate) const NOISY: [Option<Bursts>; 2] = [
    Some(Bursts {
        first: 10 * S,
        lasts: 3 * S,
        every: 25 * S,
    }),
    Some(Bursts {
        first: 30 * S,
        lasts: 2 * S,
        every: 40 * S,
    }),
];
pub(crate) const NONE: [Option<Bursts>; 2] = [None, None];

impl Bursts {
    const GROWS: i64 = 80 * MS;
    /// What a full frame takes at 100 Mbit/s.
    const GAP: i64 = 121_120;

    /// When the burst sends next after `at`.
    fn after(&self, at: i64) -> i64 {
        let Some(within) = (at - self.first)
            .checked_rem_euclid(self.every)
            .filter(|_| at >= self.first)
        else {
            return self.first;
        };
        let gap = if within < Self::GROWS {
            Self::GAP * 4 / 5
        } else {
            Self::GAP
        };
        if within + gap < self.lasts {
            at + gap
        } else {
            at - within + self.every
        }
    }

    /// When its queue stands, of all bursts that begin before `end`.
    pub(crate) fn queues(&self, end: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let begins = (0..).map(|n| self.first + n * self.every);
        let begins = begins.take_while(move |begin| *begin < end);
        begins.map(|begin| (begin, begin + self.lasts + 50 * MS))
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OnTheWay {
    slot: u32,
    seq: u32,
    sent: i64,
    /// When the request was there.
    there: i64,
}

/// What a gate decided about a message.
struct Decided {
    message: OnTheWay,
    path: Option<u8>,
    due: Option<Moment>,
}

/// A direction: its gate, what stands in its queue, and who else sends.
struct Way {
    gate: Gate,
    standing: VecDeque<Option<OnTheWay>>,
    bursts: Option<(Bursts, i64)>,
    salt: u64,
}

impl Way {
    fn new(
        (shape, schedule): (&Shape, &[Change]),
        direction: Direction,
        parameters: &FleetParameters,
    ) -> Self {
        let about = |change: &&Change| change.direction.is_none_or(|only| only == direction);
        let changes = (0..).zip(schedule.iter().filter(about).cloned()).collect();
        let salt = parameters.seed
            ^ if direction == Direction::AToB {
                0
            } else {
                u64::MAX
            };
        let mut gate = Gate::with_schedule(shape.clone(), changes, salt);
        gate.apply_cue(Moment(0));
        Self {
            gate,
            standing: VecDeque::new(),
            bursts: None,
            salt,
        }
    }

    /// A message comes; what was decided by then is given to `see`.
    fn admit(&mut self, at: i64, message: OnTheWay, see: &mut impl FnMut(Decided)) {
        while let Some((bursts, next)) = self.bursts
            && next <= at
        {
            self.bursts = Some((bursts, bursts.after(next)));
            self.admit_one((next, FULL), None, see);
        }
        self.admit_one((at, LENGTH), Some(message), see);
    }

    fn admit_one(
        &mut self,
        (at, length): (i64, u32),
        message: Option<OnTheWay>,
        see: &mut impl FnMut(Decided),
    ) {
        let flow = message.map(|message| Flow {
            hash: (u64::from(message.slot) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.salt,
            protocol: Some(ReservedProtocol::Udp),
        });
        let fate = self.gate.admit(Arrival {
            at: Moment(at),
            length,
            flow,
        });
        while self.gate.next_step().is_some() {}
        while let Some(fate) = self.gate.next_outcome() {
            let came = self.standing.pop_front().expect("it stood there");
            if let Some(message) = came {
                see(decided(message, fate));
            }
        }
        match fate {
            None => self.standing.push_back(message),
            Some(fate) => {
                if let Some(message) = message {
                    see(decided(message, fate));
                }
            }
        }
    }
}

const fn decided(message: OnTheWay, fate: PacketOutcome) -> Decided {
    match fate {
        PacketOutcome::Forwarded(departure) => Decided {
            message,
            path: Some(departure.path),
            due: Some(departure.due),
        },
        PacketOutcome::Dropped(_, path) => Decided {
            message,
            path,
            due: None,
        },
    }
}

/// What measures, and what is true.
struct LevelDetection<'a> {
    digest: &'a mut Digest,
    truth: &'a mut Truth,
    /// How many requests of each flow the peer has seen.
    counts: Vec<u32>,
}

impl LevelDetection<'_> {
    fn report(&mut self, message: OnTheWay, reply: Option<FleetReply>) {
        self.truth
            .answered(message.slot, message.sent, reply.is_some());
        self.digest.push(&FleetMessage {
            slot: Slot(message.slot),
            source_port: FIRST_PORT + u16::try_from(message.slot).expect("few flows"),
            seq: message.seq,
            sent: Instant::from_nanos(message.sent),
            late: Span::ZERO,
            outcome: reply.map_or(FleetOutcome::Lost, FleetOutcome::Reply),
        });
    }

    fn reply(&mut self, message: OnTheWay, due: Moment) -> FleetReply {
        let count = &mut self.counts[message.slot as usize];
        *count += 1;
        FleetReply {
            round_trip: Span::from_nanos(due.0 - message.sent),
            read_by: ReadBy::Kernel,
            peer_report: Some(PeerReport {
                rx: Instant::from_nanos(message.there),
                residence: Span::ZERO,
                count: Some(*count - 1),
                ttl: None,
            }),
            ttl: None,
            copies: 0,
            answer: None,
        }
    }
}

/// A fleet asks over the one link of a topology for `asked.length`; its messages go into `digest`
/// as they end, and the paths that they took into what is returned.
pub(crate) fn measure(
    topology: &str,
    bursts: [Option<Bursts>; 2],
    parameters: &FleetParameters,
    digest: &mut Digest,
) -> Truth {
    let topology = Topology::parse(&Source::new("a shipped topology", topology.to_owned()));
    let topology = topology.expect("a good topology");
    let link = &topology.links[0];
    let mut there = Way::new((&link.a_to_b, &link.schedule), Direction::AToB, parameters);
    let mut back = Way::new((&link.b_to_a, &link.schedule), Direction::BToA, parameters);
    for (direction, bursts) in [&mut there, &mut back].into_iter().zip(bursts) {
        direction.bursts = bursts.map(|bursts| (bursts, bursts.first));
    }
    let paths = link.a_to_b.paths.iter().zip(&link.b_to_a.paths);
    let levels = paths.map(|(there, back)| (there.wire.delay + back.wire.delay).nanos());
    let mut truth = Truth::new(parameters.flows, levels.collect());
    let mut detection = LevelDetection {
        digest,
        truth: &mut truth,
        counts: vec![0; parameters.flows as usize],
    };
    let mut arriving = BinaryHeap::new();
    for seq in 0..parameters.length / parameters.interval {
        for slot in 0..parameters.flows {
            let offset = parameters.interval * i64::from(slot) / i64::from(parameters.flows);
            let sent = seq * parameters.interval + offset;
            let message = OnTheWay {
                slot,
                seq: u32::try_from(seq).expect("few messages a flow"),
                sent,
                there: 0,
            };
            there.admit(sent, message, &mut |decided| {
                request(&decided, &mut detection, &mut arriving);
            });
            while let Some(Reverse((at, message))) = arriving.peek().copied()
                && at <= sent
            {
                arriving.pop();
                back.admit(at, message, &mut |decided| reply(&decided, &mut detection));
            }
        }
    }
    truth
}

type Arriving = BinaryHeap<Reverse<(i64, OnTheWay)>>;

fn request(decided: &Decided, detection: &mut LevelDetection<'_>, arriving: &mut Arriving) {
    let mut message = decided.message;
    if let Some(path) = decided.path {
        detection.truth.took(message.slot, message.sent, path);
    }
    let Some(due) = decided.due else {
        return detection.report(message, None);
    };
    message.there = due.0;
    arriving.push(Reverse((due.0, message)));
}

fn reply(decided: &Decided, detection: &mut LevelDetection<'_>) {
    let reply = decided.due.map(|due| detection.reply(decided.message, due));
    detection.report(decided.message, reply);
}
