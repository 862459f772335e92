//! A trace with arbitrary answers of routers and other hosts, for fuzzing.
//!
//! Owns driving one tracer in virtual time. Invariants: it ends, and it sends no faster than allowed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use neph_model::{FlowRoute, Instant, Local, MplsLabel, ReadBy, Span, TraceKind};

use super::steps::Steps;
use crate::trace::flow::{Answer, AnswerKind};
use crate::trace::spec::{FlowSet, TraceSpec};
use crate::trace::tracer::Tracer;
use crate::trace::tracer_io::{Action, ProbeMatching, ProbeToSend, ReceivedAnswer};

/// Most probes of a flow to one hop.
const MAX_ASKED: usize = 12;
/// Most available flows.
const PORTS: u16 = 24;

/// Traces with settings and answers taken from `bytes`; after their end there are no answers.
///
/// # Panics
/// When the trace does not end, sends faster or farther than allowed, or reports more than was requested.
pub fn trace(bytes: &[u8]) -> Vec<FlowRoute> {
    let mut steps = Steps(bytes);
    let [settings, needed] = [0; 2].map(|_: u8| steps.next().unwrap_or(0));
    let matching = if settings & 1 == 0 {
        ProbeMatching::ByNumber
    } else {
        ProbeMatching::OneAtATime
    };
    let flows = FlowSet::Enough {
        needed: vec![u32::from(needed % 4) + 1, u32::from(needed / 4 % 16) + 1],
        max_flows: u32::from(needed / 64) * 8 + 8,
        first: 1,
    };
    let destination = (Ipv4Addr::new(198, 51, 100, 1), 33_434).into();
    let mut spec = TraceSpec::new(destination, TraceKind::Udp, flows);
    spec.max_hops = settings / 2 % 16 + 1;
    spec.queries = settings / 32 + 1;
    let mut world = World {
        now: Instant::from_nanos(0),
        tracer: Tracer::new(&spec, matching, Instant::from_nanos(0)),
        coming: BTreeMap::new(),
        requests: Vec::new(),
        port: 1,
        matching,
        spec,
    };
    world.carry_out(&mut steps);
    world.check();
    world.tracer.routes()
}

struct World {
    tracer: Tracer,
    spec: TraceSpec,
    matching: ProbeMatching,
    now: Instant<Local>,
    /// By arrival time, then by the number of the probe.
    coming: BTreeMap<(Instant<Local>, usize), ReceivedAnswer>,
    requests: Vec<(Instant<Local>, ProbeToSend)>,
    /// The next flow's port.
    port: u16,
}

impl World {
    fn carry_out(&mut self, steps: &mut Steps<'_>) {
        let max_probes = usize::from(PORTS) * usize::from(self.spec.max_hops) * MAX_ASKED;
        let mut idle = 0;
        loop {
            assert!(
                self.requests.len() <= max_probes,
                "{} probes",
                self.requests.len()
            );
            match self.tracer.poll(self.now) {
                Action::Done => return,
                Action::AddFlows(count) => {
                    let left = usize::from(PORTS.saturating_sub(self.port));
                    let count = u16::try_from(count.min(left)).expect("no more than ports");
                    let ports: Vec<u16> = (self.port..self.port + count).collect();
                    self.port += count;
                    self.tracer.add(&ports);
                }
                Action::Send(probe) => self.send(probe, steps),
                Action::Wait(until) => {
                    // Work that it has just found may be due at once.
                    idle = if until > self.now { 0 } else { idle + 1 };
                    assert!(idle < 3, "it waits for what has been");
                    let first = self
                        .coming
                        .first_entry()
                        .filter(|first| first.key().0 <= until);
                    match first {
                        None => self.now = self.now.max(until),
                        Some(first) => {
                            self.now = self.now.max(first.key().0);
                            self.tracer.on_answer(&first.remove());
                        }
                    }
                }
            }
        }
    }

    fn send(&mut self, probe: ProbeToSend, steps: &mut Steps<'_>) {
        self.requests.push((self.now, probe));
        if steps.next().is_some_and(|byte| byte & 1 == 0) {
            self.tracer.on_tx_timestamp(probe.id, self.now);
        }
        // Most are answered once; some not at all, some by several hosts, some by an unrelated host.
        while let Some(step) = steps.next()
            && step & 7 != 0
        {
            let at = self.now + Span::from_nanos(steps.number().unsigned_abs().cast_signed());
            let kind = match step >> 3 & 7 {
                0 => AnswerKind::Arrived,
                1 => AnswerKind::Unreachable(step >> 6),
                _ => AnswerKind::Exceeded,
            };
            let is_third_party = step & 7 == 7;
            let (mut port, mut number) = (probe.port, probe.number);
            if is_third_party {
                (port, number) = (port ^ 1, u16::from(steps.next().unwrap_or(0)));
            }
            let label = MplsLabel {
                label: u32::from(step),
                traffic_class: 0,
                ttl: 1,
            };
            let received = ReceivedAnswer {
                port,
                number: (self.matching == ProbeMatching::ByNumber).then_some(number),
                answer: Answer {
                    from: self.router(step, probe.ttl, steps),
                    kind,
                    at,
                    read_by: ReadBy::Kernel,
                },
                labels: vec![label; usize::from(step >> 6)],
            };
            self.coming
                .insert((at.max(self.now), self.requests.len()), received);
            if step & 7 < 5 {
                return;
            }
        }
    }

    fn router(&self, step: u8, ttl: u8, steps: &mut Steps<'_>) -> IpAddr {
        if (step >> 3).is_multiple_of(8) {
            return self.spec.destination.ip();
        }
        let [a, b] = [ttl, step >> 6];
        let b = if step & 7 > 3 {
            steps.next().unwrap_or(0)
        } else {
            b
        };
        Ipv4Addr::new(192, 0, a & 3, b).into()
    }

    fn check(&self) {
        let gaps = self.requests.windows(2);
        let min = Span::from_nanos(1_000_000_000 / i64::from(self.spec.rate));
        assert!(gaps.into_iter().all(|pair| pair[1].0 - pair[0].0 >= min));
        let min = Span::from_nanos(1_000_000_000 / i64::from(self.spec.hop_rate));
        for ttl in 1..=self.spec.max_hops {
            let to_it: Vec<_> = self
                .requests
                .iter()
                .filter(|(_, probe)| probe.ttl == ttl)
                .collect();
            let is_spaced = to_it.windows(2).all(|pair| pair[1].0 - pair[0].0 >= min);
            assert!(is_spaced, "{ttl}: faster than a router may be asked");
        }
        let beyond = |(_, probe): &(_, ProbeToSend)| !(1..=self.spec.max_hops).contains(&probe.ttl);
        assert!(!self.requests.iter().any(beyond));
        for route in self.tracer.routes() {
            let of_flow = self
                .requests
                .iter()
                .filter(|(_, probe)| probe.port == route.source_port);
            let probe_count: u32 = route.hops.iter().map(|hop| hop.probes).sum();
            assert!(probe_count as usize <= of_flow.count(), "{route:?}");
            assert!((1..).zip(&route.hops).all(|(ttl, hop)| hop.ttl == ttl));
            assert!(route.hops.len() <= usize::from(self.spec.max_hops));
            for hop in &route.hops {
                assert!(hop.round_trips.len() <= hop.probes as usize, "{hop:?}");
                assert!(hop.round_trips.iter().all(|trip| *trip >= Span::ZERO));
                assert!(
                    hop.address.is_some() || hop.round_trips.is_empty(),
                    "{hop:?}"
                );
            }
        }
    }
}
