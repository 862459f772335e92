//! An executor that follows the script of a test, in virtual time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use neph_model::{
    BitRate, Ending, Executor, ExecutorLost, ExperimentOrder, ExperimentResult, Flow, FlowIndex,
    FlowRole, HostFacts, Instant, Load, Marks, Message, Order, OrderFailed, OrderResult, Outcome,
    PingBetween, PingOrder, Prepared, ProbeKind, Progress, Records, Seq, Span, Stop, Throughput,
    ThroughputOrder, Ticket, Traceroute, TracerouteOrder, Update, Wall,
};

use crate::clock::Clock;

/// The outcome of a simulated experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FakeOutcome {
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
    /// ctrl-C before it began.
    CtrlCBeforeStart,
    /// The process is killed after half of its messages.
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
    fn wait_until(&self, until: Wall, stop: &Stop) {
        if !stop.is_set() {
            self.0.set(self.0.get().max(until.unix_nanos()));
        }
    }
}

/// Ends each experiment as scripted; [`FakeOutcome::Complete`] by default.
#[derive(Debug, Default)]
pub(super) struct FakeExecutor {
    pub(super) outcomes: VecDeque<FakeOutcome>,
    pub(super) time: Virtual,
    /// Of the user, set at [`FakeOutcome::CtrlC`].
    pub(super) stop: Stop,
    /// What was ordered last, and what becomes of each of its experiments that was prepared.
    pub(super) last_order: Option<Order>,
    pub(super) prepared: Vec<Option<FakeOutcome>>,
    /// It has been killed.
    pub(super) is_killed: bool,
    /// How often it was polled without an order.
    pub(super) idle_polls: u32,
    /// How many ran at the same time, each time.
    pub(super) concurrent_counts: Vec<usize>,
    pub(super) checks: u32,
    pub(super) routes: u32,
    /// Whether a reflector answers.
    pub(super) reflector: bool,
    /// Whether each experiment was ordered to find one.
    pub(super) expected_reflectors: Vec<bool>,
}

fn message(seq: u64, outcome: Outcome, is_slow: bool) -> Message {
    let due_nanos = i64::try_from(seq).expect("few") * 1_000_000_000;
    let mut marks = Marks::intended_at(Instant::from_nanos(due_nanos));
    if outcome != Outcome::Failed {
        marks.app_send = Some(Instant::from_nanos(due_nanos + 10_000));
    }
    if outcome == Outcome::Reply {
        let round_trip_nanos = if is_slow { 400_000_000 } else { 4_000_000 };
        marks.app_recv = Some(Instant::from_nanos(due_nanos + round_trip_nanos));
    }
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = outcome;
    message
}

fn connection_refused(order: &ExperimentOrder) -> OrderFailed {
    let operation = format!("connecting to {}", order.scenario.target);
    OrderFailed::new(operation, "connection refused")
}

fn flow(order: &ExperimentOrder, reflector: bool) -> Flow {
    Flow {
        index: FlowIndex(0),
        role: FlowRole::Main,
        probe: ProbeKind::Ws,
        name: order.scenario.endpoint.clone(),
        source: None,
        target: SocketAddr::from(([10, 0, 0, 1], 80)),
        reflector,
        same_clock: false,
    }
}

impl FakeExecutor {
    fn prepare_one(&mut self, order: &ExperimentOrder) -> Result<Prepared, OrderFailed> {
        let outcome = self.outcomes.pop_front().unwrap_or(FakeOutcome::Complete);
        self.prepared
            .push((outcome != FakeOutcome::Refused).then_some(outcome));
        self.expected_reflectors.push(order.reflector);
        if outcome == FakeOutcome::Refused {
            return Err(connection_refused(order));
        }
        Ok(Prepared {
            started: self.time.now(),
            fleet: None,
            flows: vec![flow(order, self.reflector)],
        })
    }

    fn carry_out_one(
        &mut self,
        order: &ExperimentOrder,
        outcome: FakeOutcome,
        updates: &mut Vec<Update>,
    ) -> ExperimentResult {
        let is_complete = matches!(
            outcome,
            FakeOutcome::Complete | FakeOutcome::Slow(..) | FakeOutcome::Mute
        );
        let is_slow =
            |seq| matches!(outcome, FakeOutcome::Slow(from, until) if (from..until).contains(&seq));
        let count = if is_complete {
            order.scenario.messages
        } else {
            order.scenario.messages / 2
        };
        let message_outcome = if outcome == FakeOutcome::Mute {
            Outcome::Failed
        } else {
            Outcome::Reply
        };
        for seq in 0..count {
            let records = Records {
                messages: vec![message(seq, message_outcome, is_slow(seq))],
                ..Records::default()
            };
            updates.push(Update::Recorded(order.experiment.id, records));
            self.time.pass(order.scenario.interval);
        }
        updates.push(Update::Progress(Progress {
            elapsed: Span::from_secs(5),
            due: count,
        }));
        let ending = match outcome {
            FakeOutcome::Complete | FakeOutcome::Slow(..) | FakeOutcome::Mute => Ending::Complete,
            FakeOutcome::Broken => Ending::Failed("the connection was lost for good".to_owned()),
            FakeOutcome::CtrlC => {
                self.stop.set();
                Ending::Interrupted
            }
            FakeOutcome::Killed => {
                self.is_killed = true;
                Ending::Interrupted
            }
            _ => unreachable!("it did not start"),
        };
        ExperimentResult {
            flows: vec![flow(order, self.reflector)],
            ending,
            ended: self.time.now(),
            quantities: None,
            late: None,
            trace: None,
            anchors: vec![(0, order.experiment.started.unix_nanos())],
            host: HostFacts {
                host: "here".to_owned(),
                ..HostFacts::default()
            },
            load: Some(Load {
                busy_percent: 3.0,
                ..Load::default()
            }),
            warnings: Vec::new(),
        }
    }

    /// All of them at the same time: each begins when the first does.
    fn carry_out(&mut self, orders: &[ExperimentOrder]) -> Vec<Update> {
        let prepared = std::mem::take(&mut self.prepared);
        let running = prepared.iter().flatten().count();
        if running > 0 {
            self.concurrent_counts.push(running);
        }
        let start = self.time.now();
        let mut latest_end = start;
        let (mut updates, mut results) = (Vec::new(), Vec::new());
        for (order, outcome) in orders.iter().zip(prepared) {
            self.time.0.set(start.unix_nanos());
            results.push(match outcome {
                Some(outcome) => Ok(self.carry_out_one(order, outcome, &mut updates)),
                None => Err(connection_refused(order)),
            });
            latest_end = latest_end.max(self.time.now());
        }
        self.time.0.set(latest_end.unix_nanos());
        if !self.is_killed {
            updates.push(Update::Done(Ok(OrderResult::Experiments(results))));
        }
        updates
    }

    fn ping_between(&self, order: &PingOrder) -> PingBetween {
        PingBetween {
            block: order.block,
            name: order.pings[0].name.clone(),
            address: std::net::IpAddr::from([127, 0, 0, 1]),
            sent: self.time.now(),
            outcome: Outcome::Reply,
            round_trip: Some(Span::from_millis(1)),
        }
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

impl Executor for FakeExecutor {
    fn submit(&mut self, order: Order) -> Ticket {
        self.prepared.clear();
        self.last_order = Some(order);
        Ticket(0)
    }

    /// First what is prepared, then all the rest.
    fn poll(&mut self, _: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        if self.is_killed {
            return Err(ExecutorLost::new("killed"));
        }
        let Some(order) = self.last_order.take() else {
            self.idle_polls += 1;
            return Ok(Vec::new());
        };
        let updates = match &order {
            Order::Experiments(_)
                if self.prepared.is_empty()
                    && self.outcomes.front() == Some(&FakeOutcome::CtrlCBeforeStart) =>
            {
                self.outcomes.pop_front();
                self.stop.set();
                let failure = OrderFailed::new("start an experiment", "it was cancelled");
                vec![Update::Done(Err(failure))]
            }
            Order::Experiments(orders) if self.prepared.is_empty() => {
                let prepared = orders.iter().map(|order| self.prepare_one(order));
                let update = Update::Prepared(prepared.collect());
                self.last_order = Some(order.clone());
                vec![update]
            }
            Order::Experiments(orders) => self.carry_out(orders),
            Order::Throughput(order) => {
                let result = OrderResult::Throughput(self.check_throughput(order));
                vec![Update::Done(Ok(result))]
            }
            Order::Traceroute(order) => {
                let result = OrderResult::Traceroute(self.trace_route(order));
                vec![Update::Done(Ok(result))]
            }
            Order::Pings(order) => {
                let ping_update = Update::Pinged(vec![self.ping_between(order)]);
                vec![ping_update, Update::Done(Ok(OrderResult::Pings))]
            }
            Order::Load(_) | Order::Capture(_) | Order::Reflector(_) => {
                unreachable!("campaigns order none")
            }
        };
        Ok(updates
            .into_iter()
            .map(|update| (Ticket(0), update))
            .collect())
    }

    fn cancel(&mut self, _: Ticket) {}
}
