//! A carrier that does what the test says, in virtual time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use neph_model::{
    BitRate, ExperimentId, Flow, FlowIndex, FlowRole, HostFacts, Instant, Load, Marks, Message,
    Outcome, PingBetween, ProbeKind, Seq, Span, Throughput, Traceroute, Wall,
};
use neph_store::{Recorder, StoreError};

use crate::carrier::{
    Carried, Carrier, CarryError, Clock, Ending, ExperimentOrder, KeepPings, Part, PingOrder,
    Prepared, Progress, ThroughputOrder, TracerouteOrder,
};

/// What becomes of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    Complete,
    /// Complete; replies to messages from this number on and before that one take 100 times as long.
    Slow(u64, u64),
    /// Refused before it began.
    Refused,
    /// It breaks off after half of its messages.
    Broken,
    /// Nothing can be sent.
    Mute,
    /// ctrl-C after half of its messages.
    CtrlC,
    /// The process is gone after half of its messages.
    Killed,
}

/// Virtual time, nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Virtual(Rc<Cell<i64>>);

impl Virtual {
    pub(super) fn pass(&self, span: Span) {
        self.0.set(self.0.get() + span.nanos());
    }
}

impl Clock for Virtual {
    fn now(&self) -> Wall {
        Wall::from_unix_nanos(self.0.get())
    }
    fn wait_until(&self, until: Wall, stop: &neph_probe::Stop) {
        if !stop.is_set() {
            self.0.set(self.0.get().max(until.unix_nanos()));
        }
    }
}

/// Does what fate says; [`Fate::Complete`] when nothing is said.
#[derive(Debug, Default)]
pub(super) struct Fake {
    pub(super) fates: VecDeque<Fate>,
    pub(super) time: Virtual,
    /// What becomes of those that were prepared.
    pub(super) prepared: VecDeque<(ExperimentId, Fate)>,
    /// How many ran at the same time, each time.
    pub(super) together: Vec<usize>,
    pub(super) checks: u32,
    pub(super) routes: u32,
    /// Whether a reflector answers.
    pub(super) reflector: bool,
    /// Whether each experiment was ordered to find one.
    pub(super) expected: Vec<bool>,
}

fn message(seq: u64, outcome: Outcome, slow: bool) -> Message {
    let due = i64::try_from(seq).expect("few") * 1_000_000_000;
    let mut marks = Marks::intended_at(Instant::from_nanos(due));
    if outcome != Outcome::Failed {
        marks.app_send = Some(Instant::from_nanos(due + 10_000));
    }
    if outcome == Outcome::Reply {
        let took = if slow { 400_000_000 } else { 4_000_000 };
        marks.app_recv = Some(Instant::from_nanos(due + took));
    }
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = outcome;
    message
}

impl Fake {
    fn prepare_one(&mut self, order: &ExperimentOrder) -> Result<Prepared, CarryError> {
        let fate = self.fates.pop_front().unwrap_or(Fate::Complete);
        self.prepared.push_back((order.experiment.id, fate));
        self.expected.push(order.reflector);
        if fate == Fate::Refused {
            return Err(CarryError::Failed {
                operation: format!("connecting to {}", order.scenario.target),
                reason: "connection refused".to_owned(),
            });
        }
        Ok(Prepared {
            started: self.time.now(),
            fleet: None,
            flows: vec![Flow {
                index: FlowIndex(0),
                role: FlowRole::Main,
                probe: ProbeKind::Ws,
                name: order.scenario.endpoint.clone(),
                source: None,
                target: SocketAddr::from(([10, 0, 0, 1], 80)),
                reflector: self.reflector,
                same_clock: false,
            }],
        })
    }

    fn carry_out_one(
        &mut self,
        order: &ExperimentOrder,
        recorder: &mut dyn Recorder,
        progress: &dyn Fn(Progress),
    ) -> Result<Carried, CarryError> {
        let mut prepared = self.prepared.iter();
        let fate = prepared.find(|(id, _)| *id == order.experiment.id);
        let fate = fate.expect("it was prepared").1;
        let whole = matches!(fate, Fate::Complete | Fate::Slow(..) | Fate::Mute);
        let is_slow = |seq| matches!(fate, Fate::Slow(from, until) if (from..until).contains(&seq));
        let count = if whole {
            order.scenario.messages
        } else {
            order.scenario.messages / 2
        };
        let outcome = if fate == Fate::Mute {
            Outcome::Failed
        } else {
            Outcome::Reply
        };
        for seq in 0..count {
            recorder.messages(&[message(seq, outcome, is_slow(seq))])?;
            self.time.pass(order.scenario.interval);
        }
        progress(Progress {
            elapsed: Span::from_secs(5),
            due: count,
        });
        let ending = match fate {
            Fate::Complete | Fate::Slow(..) | Fate::Mute => Ending::Complete,
            Fate::Broken => Ending::Failed("the connection was lost for good".to_owned()),
            Fate::CtrlC => {
                order.stop.set();
                Ending::Interrupted
            }
            Fate::Refused => unreachable!("it was not prepared"),
            // A store that fails ends the campaign without finishing anything: to the store that
            // is what a kill looks like.
            Fate::Killed => {
                return Err(neph_store::StoreError::WrongFinish {
                    experiment: order.experiment.id,
                    why: "killed".to_owned(),
                }
                .into());
            }
        };
        Ok(Carried {
            ending,
            ended: self.time.now(),
            flows: order.experiment.flows.clone(),
            late: None,
            trace: None,
            anchors: vec![(0, order.experiment.started.unix_nanos())],
            host: HostFacts {
                host: "here".to_owned(),
                ..HostFacts::default()
            },
            load: Load {
                busy_percent: 3.0,
                ..Load::default()
            },
            warnings: Vec::new(),
        })
    }
}

impl Carrier for Fake {
    fn prepare(&mut self, orders: &[&ExperimentOrder]) -> Vec<Result<Prepared, CarryError>> {
        self.prepared.clear();
        orders.iter().map(|order| self.prepare_one(order)).collect()
    }

    fn carry_out(
        &mut self,
        parts: &mut [Part<'_>],
        progress: &dyn Fn(Progress),
    ) -> Vec<Result<Carried, CarryError>> {
        self.together.push(parts.len());
        let began = self.time.now();
        let mut ended = began;
        let mut all = Vec::new();
        for part in parts {
            self.time.0.set(began.unix_nanos());
            let (order, recorder) = (part.order, &mut *part.recorder);
            all.push(self.carry_out_one(order, recorder, progress));
            ended = ended.max(self.time.now());
        }
        self.time.0.set(ended.unix_nanos());
        all
    }

    fn ping_between(
        &mut self,
        order: &PingOrder,
        keep: &mut KeepPings<'_>,
    ) -> Result<(), StoreError> {
        let destination = &order.pings[0];
        keep(&[PingBetween {
            block: order.block,
            name: destination.name.clone(),
            address: std::net::IpAddr::from([127, 0, 0, 1]),
            sent: self.time.now(),
            outcome: Outcome::Reply,
            round_trip: Some(Span::from_millis(1)),
        }])
    }

    fn check_throughput(&mut self, order: &ThroughputOrder) -> Throughput {
        self.checks += 1;
        let started = self.time.now();
        self.time.pass(order.duration);
        Throughput {
            block: order.block,
            endpoint: order.server.name.clone(),
            site: None,
            tool: order.tool.name().to_owned(),
            started,
            seconds: Vec::new(),
            goodput: BitRate(1_000_000),
            failure: None,
        }
    }

    fn trace_route(&mut self, order: &TracerouteOrder) -> Traceroute {
        self.routes += 1;
        Traceroute {
            block: order.block,
            endpoint: order.endpoint.clone(),
            site: None,
            destination: [10, 0, 0, 1].into(),
            started: self.time.now(),
            hops: Vec::new(),
            reached: true,
            failure: None,
        }
    }
}
