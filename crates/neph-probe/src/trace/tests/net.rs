//! A network that answers probes in virtual time: 10 ms farther away with each hop.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use neph_model::{FlowRoute, Instant, Local, ReadBy, Span, TraceKind, Wall};

use crate::trace::Route;
use crate::trace::flow::{Answer, AnswerKind};
use crate::trace::spec::{FlowSet, TraceSpec};
use crate::trace::tracer::Tracer;
use crate::trace::tracer_io::{Action, ProbeMatching, ProbeToSend, ReceivedAnswer};

pub(super) const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));

pub(super) const fn addr(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

/// One distance.
pub(super) enum Stage {
    /// Who is there depends on the flow.
    Flows(Box<dyn Fn(u16) -> u8>),
    /// Who is there depends on the packet.
    Packets(Vec<u8>),
    /// Nobody answers; packets pass.
    Silent,
    /// Answers at most once in this time.
    Limited(u8, Span),
    /// Passes nothing, and answers with this code.
    Refuses(u8, u8),
}

pub(super) struct Net {
    stages: Vec<Stage>,
    /// The destination never answers.
    pub(super) mute: bool,
    /// The destination answers at most once in this time.
    pub(super) reluctant: Option<Span>,
    pub(super) loss_percent: u64,
    /// Stops the trace.
    pub(super) until: Option<Span>,
    /// The largest TTL that was asked.
    pub(super) farthest: u8,
    /// When which TTL was asked, nanoseconds.
    pub(super) sends: Vec<(i64, u8)>,
    packets: u64,
    limits: BTreeMap<usize, Instant<Local>>,
}

/// What came of a trace.
pub(super) struct Run {
    pub(super) routes: Vec<FlowRoute>,
    pub(super) enough: Option<bool>,
    pub(super) duration: Span,
    pub(super) all_hops: Route,
}

/// Spreads well (the finaliser of `SplitMix64`).
pub(super) fn hash(salt: u64, value: u64) -> u64 {
    let mut x = (salt << 32 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

pub(super) fn spec(flows: FlowSet) -> TraceSpec {
    TraceSpec::new((DESTINATION, 33_434).into(), TraceKind::Udp, flows)
}

impl Net {
    pub(super) fn new(stages: Vec<Stage>) -> Self {
        Self {
            stages,
            mute: false,
            reluctant: None,
            loss_percent: 0,
            until: None,
            farthest: 0,
            sends: Vec::new(),
            packets: 0,
            limits: BTreeMap::new(),
        }
    }

    /// The truth about a flow, where everybody answers and balances by flow.
    pub(super) fn path(&self, port: u16) -> Vec<IpAddr> {
        let routers = self.stages.iter().map(|stage| match stage {
            Stage::Flows(choose) => addr(choose(port)),
            _ => panic!("not by flow"),
        });
        routers.chain([DESTINATION]).collect()
    }

    fn answer(&mut self, probe: &ProbeToSend, now: Instant<Local>) -> Option<(IpAddr, AnswerKind)> {
        self.farthest = self.farthest.max(probe.ttl);
        self.sends
            .push(((now - Instant::from_nanos(0)).nanos(), probe.ttl));
        self.packets += 1;
        if hash(77, self.packets) % 100 < self.loss_percent {
            return None;
        }
        let last = usize::from(probe.ttl - 1);
        for stage in self.stages.iter().take(last) {
            if let Stage::Refuses(router, code) = stage {
                return Some((addr(*router), AnswerKind::Unreachable(*code)));
            }
        }
        match self.stages.get(last) {
            None => {
                let limited = self
                    .reluctant
                    .is_some_and(|pause| self.is_early(99, pause, now));
                (!self.mute && !limited).then_some((DESTINATION, AnswerKind::Arrived))
            }
            Some(Stage::Silent) => None,
            Some(Stage::Flows(choose)) => Some((addr(choose(probe.port)), AnswerKind::Exceeded)),
            Some(Stage::Packets(among)) => {
                let at = hash(5, self.packets) % among.len() as u64;
                let router = among[usize::try_from(at).expect("small")];
                Some((addr(router), AnswerKind::Exceeded))
            }
            Some(Stage::Limited(router, pause)) => {
                let (router, pause) = (*router, *pause);
                (!self.is_early(last, pause, now)).then_some((addr(router), AnswerKind::Exceeded))
            }
            Some(Stage::Refuses(router, code)) => {
                Some((addr(*router), AnswerKind::Unreachable(*code)))
            }
        }
    }
}

impl Net {
    /// Whether the last answer was too short a time ago; otherwise this is the next one.
    fn is_early(&mut self, hop: usize, pause: Span, now: Instant<Local>) -> bool {
        let next = self.limits.entry(hop).or_insert(now);
        if now < *next {
            return true;
        }
        *next = now + pause;
        false
    }
}

/// Traces until it is over.
pub(super) fn run(spec: &TraceSpec, matching: ProbeMatching, net: &mut Net) -> Run {
    let started = Instant::from_nanos(0);
    let mut now = started;
    let mut tracer = Tracer::new(spec, matching, now);
    let mut coming: BTreeMap<(Instant<Local>, usize), ReceivedAnswer> = BTreeMap::new();
    let mut port = 1000;
    for action_number in 0..1_000_000 {
        if net.until.is_some_and(|until| now - started >= until) {
            break;
        }
        match tracer.poll(now) {
            Action::Done => break,
            Action::AddFlows(count) => {
                let last = port + u16::try_from(count).expect("few");
                tracer.add(&(port..last).collect::<Vec<u16>>());
                port = last;
            }
            Action::Send(probe) => {
                if let Some((from, kind)) = net.answer(&probe, now) {
                    let at = now + Span::from_millis(10).times(i64::from(probe.ttl));
                    let answer = Answer {
                        from,
                        kind,
                        at,
                        read_by: ReadBy::Kernel,
                    };
                    let number = (matching == ProbeMatching::ByNumber).then_some(probe.number);
                    let received = ReceivedAnswer {
                        port: probe.port,
                        number,
                        answer,
                        labels: Vec::new(),
                    };
                    coming.insert((at, action_number), received);
                }
                tracer.on_tx_timestamp(probe.id, now);
            }
            Action::Wait(until) => {
                let first = coming.keys().next().copied().filter(|(at, _)| *at <= until);
                now = first.map_or(until, |(at, _)| at).max(now);
                if let Some(received) = first.and_then(|first| coming.remove(&first)) {
                    tracer.on_answer(&received);
                }
            }
        }
    }
    Run {
        routes: tracer.routes(),
        enough: tracer.has_enough_flows(),
        duration: now - started,
        all_hops: tracer.all_hops(Wall::from_unix_nanos(0)),
    }
}
