//! The state machine of a trace: which hop is asked when, and what the answers show.
//!
//! Owns pacing, retries and the ends of flows. Reads no clock and no socket: time and answers are arguments.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{Instant, Local, MplsLabel, Span};

use super::flow::{Answer, AnswerKind, FlowState, Probe, ProbeId, Spot};
use super::hop::HopState;
use super::spec::{FlowSet, TraceSpec};
use super::trace_settings::{Retry, TraceSettings, Window};

/// A flow's probes are numbered from 1; neither 0 nor 0xffff is a checksum.
const NUMBERS: usize = 0xfffe;

/// Whether an answer identifies the probe of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeMatching {
    /// It does, by a number.
    ByNumber,
    /// It may not: a flow asks one hop at a time.
    OneAtATime,
}

/// A probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) probe: ProbeId,
    pub(crate) port: u16,
    pub(crate) ttl: u8,
    /// Within its flow, from 1.
    pub(crate) number: u16,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Send this.
    Ask(Ask),
    /// Nothing before this moment, unless an answer comes.
    Wait(Instant<Local>),
    /// Add this many flows with [`Tracer::add`], or none, which ends the trace.
    MoreFlows(usize),
    /// Everything possible is known.
    Over,
}

/// An answer and its flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedAnswer {
    pub(crate) port: u16,
    /// The probe's number, if known.
    pub(crate) number: Option<u16>,
    pub(crate) answer: Answer,
    pub(crate) labels: Vec<MplsLabel>,
}

/// A trace in progress.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(super) spec: TraceSpec,
    pub(super) settings: TraceSettings,
    at_once: u8,
    pub(super) flows: Vec<FlowState>,
    by_port: BTreeMap<u16, usize>,
    /// By distance, from 1.
    hops: Vec<HopState>,
    pub(super) probes: Vec<Probe>,
    /// In the order of their timeouts.
    open: VecDeque<ProbeId>,
    /// When the next probe of all may leave.
    ready: Instant<Local>,
    /// Which distance sends next, where several may.
    turn: usize,
    /// The distance of the destination, if any flow reached it.
    pub(super) distance: Option<u8>,
    /// The farthest distance with an answer.
    farthest: u8,
    /// Distances that were asked again because they are uncertain, in order.
    pub(super) repeated: Vec<u8>,
    /// No more flows are available.
    exhausted: bool,
    /// This many of the first flows have no port any more.
    retired: usize,
}

impl Tracer {
    /// Without flows yet: the first turn requests them.
    pub(crate) fn new(spec: &TraceSpec, apart: ProbeMatching, now: Instant<Local>) -> Self {
        let min = interval(spec.hop_rate);
        let hops = (0..spec.max_hops).map(|_| HopState::new(min, now));
        let settings = spec.settings();
        Self {
            settings,
            at_once: match apart {
                ProbeMatching::ByNumber => settings.at_once,
                ProbeMatching::OneAtATime => 1,
            },
            flows: Vec::new(),
            by_port: BTreeMap::new(),
            hops: hops.collect(),
            probes: Vec::new(),
            open: VecDeque::new(),
            ready: now,
            turn: 0,
            distance: None,
            farthest: 0,
            repeated: Vec::new(),
            exhausted: false,
            retired: 0,
            spec: spec.clone(),
        }
    }

    /// Adds flows that the last turn requested; none: there are no more.
    pub(crate) fn add(&mut self, ports: &[u16]) {
        self.exhausted |= ports.is_empty();
        for port in ports {
            let flow = self.flows.len();
            let state = FlowState::new(*port, self.spec.max_hops, self.settings);
            self.flows.push(state);
            self.by_port.insert(*port, flow);
            self.advance(flow);
        }
    }

    /// Ends the probes of the current flows, whatever is found about their hops. Call it where the last turn
    /// requested flows.
    pub(crate) const fn retire(&mut self) {
        self.retired = self.flows.len();
    }

    /// Whether nothing is traced.
    pub(crate) const fn is_without_flows(&self) -> bool {
        self.flows.is_empty()
    }

    /// Whether multipath detection got the flows that it needed.
    pub(crate) fn enough(&self) -> Option<bool> {
        match self.spec.flows {
            FlowSet::Enough { .. } => Some(self.lacking() == 0),
            _ => None,
        }
    }

    /// The next action.
    pub(crate) fn poll(&mut self, now: Instant<Local>) -> Turn {
        self.expire(now);
        if let Some(ask) = self.next_ask(now) {
            return Turn::Ask(ask);
        }
        if let Some(until) = self.next_moment() {
            return Turn::Wait(until);
        }
        // New knowledge about a hop may make a flow ask again that had ended.
        for flow in 0..self.flows.len() {
            self.advance(flow);
        }
        if let Some(until) = self.next_moment() {
            return Turn::Wait(until);
        }
        if let Some(turn) = self.ask_in_doubt(now) {
            return turn;
        }
        match self.lacking() {
            0 => Turn::Over,
            _ if self.exhausted || self.is_full() => Turn::Over,
            more => Turn::MoreFlows(more),
        }
    }

    /// The kernel reports when a probe left.
    pub(crate) fn on_tx_timestamp(&mut self, probe: ProbeId, at: Instant<Local>) {
        if let Some(probe) = self.probes.get_mut(probe.0) {
            probe.tx_timestamp = Some(at);
        }
    }

    /// An answer arrived. One without a probe, or a second one, is ignored.
    pub(crate) fn on_answer(&mut self, received: &ReceivedAnswer) {
        let Some((id, flow, ttl)) = self.probe_of(received) else {
            return;
        };
        let Some(probe) = self.probes.get_mut(id.0) else {
            return;
        };
        if probe.answer.is_some() {
            return;
        }
        probe.answer = Some(received.answer);
        let was_open = std::mem::replace(&mut probe.open, false);
        if let Some(hop) = self.hops.get_mut(usize::from(ttl) - 1) {
            hop.answered();
        }
        let state = &mut self.flows[flow];
        state.learn(ttl, &received.answer);
        if let Some(spot) = state.spot_mut(ttl) {
            spot.open -= u32::from(was_open);
            if spot.labels.is_empty() {
                spot.labels.clone_from(&received.labels);
            }
        }
        if received.answer.kind == AnswerKind::Arrived {
            self.distance = Some(self.distance.map_or(ttl, |known| known.min(ttl)));
        }
        self.advance(flow);
        self.record_answer_at(ttl);
    }

    fn probe_of(&self, received: &ReceivedAnswer) -> Option<(ProbeId, usize, u8)> {
        let flow = *self.by_port.get(&received.port)?;
        let probes = &self.flows.get(flow)?.probes;
        let id = match received.number {
            Some(number) => *probes.get(usize::from(number).checked_sub(1)?)?,
            // Only the latest can be in flight, as flows without numbers ask one at a time.
            None => *probes.last()?,
        };
        Some((id, flow, self.probes.get(id.0)?.ttl))
    }

    fn expire(&mut self, now: Instant<Local>) {
        while let Some(id) = self.open.front().copied() {
            let Some(probe) = self.probes.get_mut(id.0) else {
                return;
            };
            if probe.open && now < probe.sent + self.spec.patience {
                return;
            }
            self.open.pop_front();
            if !std::mem::replace(&mut probe.open, false) {
                continue;
            }
            let (flow, ttl) = (probe.flow, probe.ttl);
            let spot = self.flows[flow].spot_mut(ttl);
            let hop = self.hops.get_mut(usize::from(ttl) - 1);
            if let Some((spot, hop)) = spot.zip(hop) {
                spot.open -= 1;
                hop.silent(now, self.spec.patience, spot.answers);
            }
            self.advance(flow);
        }
    }

    fn next_ask(&mut self, now: Instant<Local>) -> Option<Ask> {
        if now < self.ready {
            return None;
        }
        for step in 0..self.hops.len() {
            let at = (self.turn + step) % self.hops.len();
            while self.hops[at].ready <= now
                && let Some(flow) = self.hops[at].waiting.pop_front()
            {
                let ttl = u8::try_from(at + 1).unwrap_or(u8::MAX);
                if let Some(spot) = self.flows[flow].spot_mut(ttl) {
                    spot.queued -= 1;
                }
                if let Some(ask) = self.ask(flow, ttl, now) {
                    // Probes that go together are not interrupted by other distances.
                    self.turn = at + usize::from(self.settings.together == 1);
                    return Some(ask);
                }
            }
        }
        None
    }

    /// `None` where the flow meanwhile ended before that hop.
    pub(super) fn ask(&mut self, flow: usize, ttl: u8, now: Instant<Local>) -> Option<Ask> {
        let probe = ProbeId(self.probes.len());
        let state = &mut self.flows[flow];
        let is_wanted = ttl <= state.limit() && state.probes.len() < NUMBERS;
        let spot = state.spot_mut(ttl)?;
        if !is_wanted {
            return None;
        }
        spot.request_count += 1;
        spot.open += 1;
        state.probes.push(probe);
        let number = u16::try_from(state.probes.len()).unwrap_or(u16::MAX);
        let port = state.port;
        self.probes.push(Probe {
            flow,
            ttl,
            sent: now,
            tx_timestamp: None,
            answer: None,
            open: true,
        });
        self.open.push_back(probe);
        self.hops[usize::from(ttl) - 1].note_request(now);
        self.ready = now + interval(self.spec.rate);
        Some(Ask {
            probe,
            port,
            ttl,
            number,
        })
    }

    /// When something can happen next without an answer.
    fn next_moment(&self) -> Option<Instant<Local>> {
        let asks = self.hops.iter().filter(|hop| !hop.waiting.is_empty());
        let asks = asks.map(|hop| hop.ready.max(self.ready));
        let mut open = self.open.iter().filter_map(|id| self.probes.get(id.0));
        let awaited_probe = open.find(|probe| self.is_awaited(probe));
        asks.chain(awaited_probe.map(|probe| probe.sent + self.spec.patience))
            .min()
    }

    /// An answer from beyond the end of a flow changes nothing.
    fn is_awaited(&self, probe: &Probe) -> bool {
        let flow = self.flows.get(probe.flow);
        probe.open && flow.is_some_and(|flow| probe.ttl <= flow.limit())
    }

    /// Queues the next probes of a flow.
    fn advance(&mut self, flow: usize) {
        if flow < self.retired {
            return;
        }
        let state = &self.flows[flow];
        let limit = self.limit(state);
        let is_busy = |ttl: u8| state.spot(ttl).is_some_and(Spot::is_busy);
        let unsettled = |ttl: &u8| is_busy(*ttl) || self.wanted(state, *ttl) > 0;
        let next = (1..=limit).find(unsettled).unwrap_or(limit + 1);
        if next > limit || state.gave_up(next) {
            self.flows[flow].finished = true;
            return;
        }
        let mut horizon = state.reach().max(next).min(limit);
        // The first flow goes ahead, so that not all of them ask beyond the destination.
        if flow > 0 && self.flows.first().is_some_and(|first| !first.finished) {
            horizon = horizon.min(self.farthest + 1);
        }
        let farthest = match self.settings.window {
            Window::Sliding => next.saturating_add(self.at_once - 1),
            Window::Batches => next.div_ceil(self.at_once).saturating_mul(self.at_once),
        };
        let window = next..=horizon.min(farthest);
        let one_at_a_time = self.at_once == 1 && (1..=limit).any(is_busy);
        let free = window.filter(|ttl| !one_at_a_time && !is_busy(*ttl));
        let asks: Vec<(u8, u32)> = free.map(|ttl| (ttl, self.wanted(state, ttl))).collect();
        let state = &mut self.flows[flow];
        state.finished = false;
        for (ttl, wanted) in asks {
            if let Some(spot) = state.spot_mut(ttl) {
                spot.queued = wanted.min(self.settings.together);
                let queue = &mut self.hops[usize::from(ttl) - 1].waiting;
                queue.extend((0..spot.queued).map(|_| flow));
            }
        }
    }

    /// The farthest distance that this flow should ask. If other flows found the destination, silence there
    /// is a limit or loss, and no reason to ask farther.
    fn limit(&self, flow: &FlowState) -> u8 {
        let limit = flow.limit();
        match self.distance {
            Some(distance) if flow.last_answered() < distance => limit.min(distance),
            _ => limit,
        }
    }

    /// How often a flow should still ask there.
    fn wanted(&self, flow: &FlowState, ttl: u8) -> u32 {
        let hop = self.hops.get(usize::from(ttl) - 1);
        let Some((spot, hop)) = flow.spot(ttl).zip(hop) else {
            return 0;
        };
        let queries = u32::from(self.spec.queries);
        let allowed = match self.settings.retry {
            Retry::InDoubt => queries,
            Retry::EachHop if spot.answers == 0 && flow.end == Some(ttl + 1) && flow.arrived => hop
                .allowance(spot.answers, queries)
                .max(hop.allowance_before_end()),
            Retry::EachHop => hop.allowance(spot.answers, queries),
        };
        allowed.saturating_sub(spot.request_count)
    }

    /// Records an answer at this distance: flows that waited for it may continue.
    fn record_answer_at(&mut self, ttl: u8) {
        if ttl > self.farthest {
            self.farthest = ttl;
            for flow in 1..self.flows.len() {
                self.advance(flow);
            }
        }
    }
}

fn interval(rate: u32) -> Span {
    Span::from_nanos(1_000_000_000 / i64::from(rate.max(1)))
}
