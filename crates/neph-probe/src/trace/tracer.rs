//! The state machine of a trace: which hop is asked when, and what the answers show.
//!
//! Owns pacing, retries and the ends of flows. Reads no clock and no socket: time and answers are arguments.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{Instant, Local, Span};

use super::flow::{AnswerKind, FlowHopState, FlowState, Probe, ProbeId};
use super::hop::HopState;
use super::spec::{FlowSet, TraceSpec};
use super::trace_settings::{Retry, TraceSettings, Window};
use super::tracer_io::{Action, ProbeMatching, ProbeToSend, ReceivedAnswer};

/// A flow's probes are numbered from 1; neither 0 nor 0xffff is a checksum.
const MAX_PROBES_PER_FLOW: usize = 0xfffe;

/// A trace in progress.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(super) spec: TraceSpec,
    pub(super) settings: TraceSettings,
    max_hops_in_flight: u8,
    pub(super) flows: Vec<FlowState>,
    by_port: BTreeMap<u16, usize>,
    /// By distance, from 1.
    hops: Vec<HopState>,
    pub(super) probes: Vec<Probe>,
    /// In the order of their timeouts.
    pending_probes: VecDeque<ProbeId>,
    /// When the next probe of all may leave.
    next_send_at: Instant<Local>,
    /// Which distance sends next, where several may.
    next_hop_index: usize,
    /// The distance of the destination, if any flow reached it.
    pub(super) destination_distance: Option<u8>,
    /// The farthest distance with an answer.
    farthest: u8,
    /// Distances that were asked again because they are uncertain, in order.
    pub(super) repeated: Vec<u8>,
    /// No more flows are available.
    exhausted: bool,
    /// This many of the first flows have no port any more.
    retired_flow_count: usize,
}

impl Tracer {
    /// Without flows yet: the first action requests them.
    pub(crate) fn new(spec: &TraceSpec, matching: ProbeMatching, now: Instant<Local>) -> Self {
        let min = interval(spec.hop_rate);
        let hops = (0..spec.max_hops).map(|_| HopState::new(min, now));
        let settings = spec.settings();
        Self {
            settings,
            max_hops_in_flight: match matching {
                ProbeMatching::ByNumber => settings.max_hops_in_flight,
                ProbeMatching::OneAtATime => 1,
            },
            flows: Vec::new(),
            by_port: BTreeMap::new(),
            hops: hops.collect(),
            probes: Vec::new(),
            pending_probes: VecDeque::new(),
            next_send_at: now,
            next_hop_index: 0,
            destination_distance: None,
            farthest: 0,
            repeated: Vec::new(),
            exhausted: false,
            retired_flow_count: 0,
            spec: spec.clone(),
        }
    }

    /// Adds flows that the last action requested; none: there are no more.
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

    /// Ends the probes of the current flows, whatever is found about their hops. Call it where the last
    /// action requested flows.
    pub(crate) const fn retire(&mut self) {
        self.retired_flow_count = self.flows.len();
    }

    /// Whether nothing is traced.
    pub(crate) const fn is_without_flows(&self) -> bool {
        self.flows.is_empty()
    }

    /// Whether multipath detection got the flows that it needed.
    pub(crate) fn has_enough_flows(&self) -> Option<bool> {
        match self.spec.flows {
            FlowSet::Enough { .. } => Some(self.missing_flow_count() == 0),
            _ => None,
        }
    }

    /// The next action.
    pub(crate) fn poll(&mut self, now: Instant<Local>) -> Action {
        self.expire(now);
        if let Some(probe) = self.next_probe(now) {
            return Action::Send(probe);
        }
        if let Some(until) = self.next_deadline() {
            return Action::Wait(until);
        }
        // New knowledge about a hop may make a flow ask again that had ended.
        for flow in 0..self.flows.len() {
            self.advance(flow);
        }
        if let Some(until) = self.next_deadline() {
            return Action::Wait(until);
        }
        if let Some(action) = self.retry_silent_hop(now) {
            return action;
        }
        match self.missing_flow_count() {
            0 => Action::Done,
            _ if self.exhausted || self.is_full() => Action::Done,
            more => Action::AddFlows(more),
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
        let was_pending = std::mem::replace(&mut probe.is_pending, false);
        if let Some(hop) = self.hops.get_mut(usize::from(ttl) - 1) {
            hop.answered();
        }
        let state = &mut self.flows[flow];
        state.learn(ttl, &received.answer);
        if let Some(flow_hop) = state.hop_mut(ttl) {
            flow_hop.pending -= u32::from(was_pending);
            if flow_hop.labels.is_empty() {
                flow_hop.labels.clone_from(&received.labels);
            }
        }
        if received.answer.kind == AnswerKind::Arrived {
            self.destination_distance = Some(
                self.destination_distance
                    .map_or(ttl, |known| known.min(ttl)),
            );
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
        while let Some(id) = self.pending_probes.front().copied() {
            let Some(probe) = self.probes.get_mut(id.0) else {
                return;
            };
            if probe.is_pending && now < probe.sent + self.spec.timeout {
                return;
            }
            self.pending_probes.pop_front();
            if !std::mem::replace(&mut probe.is_pending, false) {
                continue;
            }
            let (flow, ttl) = (probe.flow, probe.ttl);
            let flow_hop = self.flows[flow].hop_mut(ttl);
            let hop = self.hops.get_mut(usize::from(ttl) - 1);
            if let Some((flow_hop, hop)) = flow_hop.zip(hop) {
                flow_hop.pending -= 1;
                hop.silent(now, self.spec.timeout, flow_hop.answers);
            }
            self.advance(flow);
        }
    }

    fn next_probe(&mut self, now: Instant<Local>) -> Option<ProbeToSend> {
        if now < self.next_send_at {
            return None;
        }
        for step in 0..self.hops.len() {
            let hop_index = (self.next_hop_index + step) % self.hops.len();
            while self.hops[hop_index].next_send_at <= now
                && let Some(flow) = self.hops[hop_index].waiting.pop_front()
            {
                let ttl = u8::try_from(hop_index + 1).unwrap_or(u8::MAX);
                if let Some(flow_hop) = self.flows[flow].hop_mut(ttl) {
                    flow_hop.queued -= 1;
                }
                if let Some(probe) = self.create_probe(flow, ttl, now) {
                    // Probes that go together are not interrupted by other distances.
                    self.next_hop_index =
                        hop_index + usize::from(self.settings.max_probes_in_flight == 1);
                    return Some(probe);
                }
            }
        }
        None
    }

    /// `None` where the flow meanwhile ended before that hop.
    pub(super) fn create_probe(
        &mut self,
        flow: usize,
        ttl: u8,
        now: Instant<Local>,
    ) -> Option<ProbeToSend> {
        let id = ProbeId(self.probes.len());
        let state = &mut self.flows[flow];
        let is_wanted = ttl <= state.max_ttl() && state.probes.len() < MAX_PROBES_PER_FLOW;
        let flow_hop = state.hop_mut(ttl)?;
        if !is_wanted {
            return None;
        }
        flow_hop.request_count += 1;
        flow_hop.pending += 1;
        state.probes.push(id);
        let number = u16::try_from(state.probes.len()).unwrap_or(u16::MAX);
        let port = state.port;
        self.probes.push(Probe {
            flow,
            ttl,
            sent: now,
            tx_timestamp: None,
            answer: None,
            is_pending: true,
        });
        self.pending_probes.push_back(id);
        self.hops[usize::from(ttl) - 1].note_request(now);
        self.next_send_at = now + interval(self.spec.rate);
        Some(ProbeToSend {
            id,
            port,
            ttl,
            number,
        })
    }

    /// When something can happen next without an answer.
    fn next_deadline(&self) -> Option<Instant<Local>> {
        let send_times = self.hops.iter().filter(|hop| !hop.waiting.is_empty());
        let send_times = send_times.map(|hop| hop.next_send_at.max(self.next_send_at));
        let mut pending = self
            .pending_probes
            .iter()
            .filter_map(|id| self.probes.get(id.0));
        let awaited_probe = pending.find(|probe| self.is_awaited(probe));
        send_times
            .chain(awaited_probe.map(|probe| probe.sent + self.spec.timeout))
            .min()
    }

    /// An answer from beyond the end of a flow changes nothing.
    fn is_awaited(&self, probe: &Probe) -> bool {
        let flow = self.flows.get(probe.flow);
        probe.is_pending && flow.is_some_and(|flow| probe.ttl <= flow.max_ttl())
    }

    /// Queues the next probes of a flow.
    fn advance(&mut self, flow: usize) {
        if flow < self.retired_flow_count {
            return;
        }
        let state = &self.flows[flow];
        let max_ttl = self.max_ttl(state);
        let is_busy = |ttl: u8| state.hop(ttl).is_some_and(FlowHopState::is_busy);
        let unsettled = |ttl: &u8| is_busy(*ttl) || self.remaining_probes(state, *ttl) > 0;
        let next = (1..=max_ttl).find(unsettled).unwrap_or(max_ttl + 1);
        if next > max_ttl || state.gave_up(next) {
            self.flows[flow].finished = true;
            return;
        }
        let mut horizon = state.reach().max(next).min(max_ttl);
        // The first flow goes ahead, so that not all of them ask beyond the destination.
        if flow > 0 && self.flows.first().is_some_and(|first| !first.finished) {
            horizon = horizon.min(self.farthest + 1);
        }
        let window_end = match self.settings.window {
            Window::Sliding => next.saturating_add(self.max_hops_in_flight - 1),
            Window::Batches => next
                .div_ceil(self.max_hops_in_flight)
                .saturating_mul(self.max_hops_in_flight),
        };
        let window = next..=horizon.min(window_end);
        let one_at_a_time = self.max_hops_in_flight == 1 && (1..=max_ttl).any(is_busy);
        let free = window.filter(|ttl| !one_at_a_time && !is_busy(*ttl));
        let wanted_probes: Vec<(u8, u32)> = free
            .map(|ttl| (ttl, self.remaining_probes(state, ttl)))
            .collect();
        let state = &mut self.flows[flow];
        state.finished = false;
        for (ttl, count) in wanted_probes {
            if let Some(flow_hop) = state.hop_mut(ttl) {
                flow_hop.queued = count.min(self.settings.max_probes_in_flight);
                let queue = &mut self.hops[usize::from(ttl) - 1].waiting;
                queue.extend((0..flow_hop.queued).map(|_| flow));
            }
        }
    }

    /// The farthest distance that this flow should ask. If other flows found the destination, silence there
    /// is a limit or loss, and no reason to ask farther.
    fn max_ttl(&self, flow: &FlowState) -> u8 {
        let max_ttl = flow.max_ttl();
        match self.destination_distance {
            Some(distance) if flow.last_answered() < distance => max_ttl.min(distance),
            _ => max_ttl,
        }
    }

    /// How often a flow should still ask there.
    fn remaining_probes(&self, flow: &FlowState, ttl: u8) -> u32 {
        let hop = self.hops.get(usize::from(ttl) - 1);
        let Some((flow_hop, hop)) = flow.hop(ttl).zip(hop) else {
            return 0;
        };
        let queries = u32::from(self.spec.queries);
        let allowed = match self.settings.retry {
            Retry::InDoubt => queries,
            Retry::EachHop
                if flow_hop.answers == 0
                    && flow.end == Some(ttl + 1)
                    && flow.reached_destination =>
            {
                hop.allowance(flow_hop.answers, queries)
                    .max(hop.allowance_before_end())
            }
            Retry::EachHop => hop.allowance(flow_hop.answers, queries),
        };
        allowed.saturating_sub(flow_hop.request_count)
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
