//! One flow's trace, as far as it is known.

use std::net::IpAddr;

use neph_model::{Instant, Local, MplsLabel, ReadBy};

use super::trace_settings::TraceSettings;

/// One probe, by its place among all of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProbeId(pub(crate) usize);

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The TTL expired there.
    Exceeded,
    /// The destination was reached.
    Arrived,
    /// Unreachable, with this ICMP code.
    Unreachable(u8),
}

/// An answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) from: IpAddr,
    pub(crate) kind: AnswerKind,
    pub(crate) at: Instant<Local>,
    pub(crate) read_by: ReadBy,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) flow: usize,
    pub(crate) ttl: u8,
    /// By the program, before the send.
    pub(crate) sent: Instant<Local>,
    /// By the kernel.
    pub(crate) tx_timestamp: Option<Instant<Local>>,
    pub(crate) answer: Option<Answer>,
    /// Its answer is still awaited.
    pub(crate) is_pending: bool,
}

/// A flow at one distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowHopState {
    pub(crate) request_count: u32,
    pub(crate) answers: u32,
    /// Probes in the hop's queue.
    pub(crate) queued: u32,
    /// Probes whose answers are awaited.
    pub(crate) pending: u32,
    /// The address that answered first.
    pub(crate) address: Option<IpAddr>,
    pub(crate) labels: Vec<MplsLabel>,
}

impl FlowHopState {
    /// Whether a probe is awaited or in the hop's queue.
    pub(crate) const fn is_busy(&self) -> bool {
        self.queued > 0 || self.pending > 0
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    pub(crate) port: u16,
    settings: TraceSettings,
    /// By distance, from 1.
    pub(crate) hops: Vec<FlowHopState>,
    /// Its probes, in the order of their numbers, which count from 1.
    pub(crate) probes: Vec<ProbeId>,
    /// The nearest distance after which there is nothing, or nothing new.
    pub(crate) end: Option<u8>,
    /// The end is a loop through this router.
    pub(crate) loop_router: Option<IpAddr>,
    /// The end is the destination.
    pub(crate) reached_destination: bool,
    /// Everything relevant was asked.
    pub(crate) finished: bool,
}

impl FlowState {
    pub(super) fn new(port: u16, max_hops: u8, settings: TraceSettings) -> Self {
        Self {
            port,
            settings,
            hops: vec![FlowHopState::default(); usize::from(max_hops)],
            probes: Vec::new(),
            end: None,
            loop_router: None,
            reached_destination: false,
            finished: false,
        }
    }

    /// At a distance, from 1 to the farthest.
    pub(crate) fn hop(&self, ttl: u8) -> Option<&FlowHopState> {
        self.hops.get(usize::from(ttl).checked_sub(1)?)
    }

    pub(crate) fn hop_mut(&mut self, ttl: u8) -> Option<&mut FlowHopState> {
        self.hops.get_mut(usize::from(ttl).checked_sub(1)?)
    }

    /// The farthest distance that is worth asking.
    pub(crate) fn max_ttl(&self) -> u8 {
        let hop_count = u8::try_from(self.hops.len()).unwrap_or(u8::MAX);
        self.end.map_or(hop_count, |end| end.min(hop_count))
    }

    /// Updates the route by an answer.
    pub(crate) fn learn(&mut self, ttl: u8, answer: &Answer) {
        let Some(flow_hop) = self.hop_mut(ttl) else {
            return;
        };
        flow_hop.answers += 1;
        if flow_hop.address.is_none() {
            flow_hop.address = Some(answer.from);
        }
        if answer.kind == AnswerKind::Exceeded {
            self.notice_loop(answer.from);
        } else {
            self.end_at(ttl, answer.kind);
        }
    }

    fn end_at(&mut self, ttl: u8, kind: AnswerKind) {
        if self.end.is_none_or(|end| ttl < end) {
            self.end = Some(ttl);
            self.loop_router = None;
            self.reached_destination = kind == AnswerKind::Arrived;
        }
    }

    fn notice_loop(&mut self, router: IpAddr) {
        let hops_of_router = (1..=self.max_ttl()).filter(|ttl| {
            let address = self.hop(*ttl).and_then(|flow_hop| flow_hop.address);
            address == Some(router)
        });
        if let Some(third) = hops_of_router.skip(self.settings.loop_threshold - 1).min()
            && self.end.is_none_or(|end| third < end)
        {
            self.end = Some(third);
            self.loop_router = Some(router);
            self.reached_destination = false;
        }
    }

    /// The farthest distance with an answer; 0: none.
    pub(crate) fn last_answered(&self) -> u8 {
        let known = self
            .hops
            .iter()
            .rposition(|flow_hop| flow_hop.address.is_some());
        known.map_or(0, |at| u8::try_from(at + 1).unwrap_or(u8::MAX))
    }

    /// The farthest distance to ask while there is no answer from farther away.
    pub(crate) fn reach(&self) -> u8 {
        let gap = self.settings.gap;
        self.last_answered().saturating_add(gap).min(self.max_ttl())
    }

    /// Whether too many hops are silent between the last answer and `next`.
    pub(crate) fn gave_up(&self, next: u8) -> bool {
        self.end.is_none() && next > self.last_answered().saturating_add(self.settings.gap)
    }
}
