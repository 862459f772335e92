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
    pub(crate) open: bool,
}

/// A flow at one distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) request_count: u32,
    pub(crate) answers: u32,
    /// Probes in the hop's queue.
    pub(crate) queued: u32,
    /// Probes whose answers are awaited.
    pub(crate) open: u32,
    /// The address that answered first.
    pub(crate) address: Option<IpAddr>,
    pub(crate) labels: Vec<MplsLabel>,
}

impl Spot {
    /// Whether a probe is awaited or in the hop's queue.
    pub(crate) const fn is_busy(&self) -> bool {
        self.queued > 0 || self.open > 0
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    pub(crate) port: u16,
    settings: TraceSettings,
    /// By distance, from 1.
    pub(crate) spots: Vec<Spot>,
    /// Its probes, in the order of their numbers, which count from 1.
    pub(crate) probes: Vec<ProbeId>,
    /// The nearest distance after which there is nothing, or nothing new.
    pub(crate) end: Option<u8>,
    /// The end is a loop through this router.
    pub(crate) looped: Option<IpAddr>,
    /// The end is the destination.
    pub(crate) arrived: bool,
    /// Everything relevant was asked.
    pub(crate) finished: bool,
}

impl FlowState {
    pub(super) fn new(port: u16, max_hops: u8, settings: TraceSettings) -> Self {
        Self {
            port,
            settings,
            spots: vec![Spot::default(); usize::from(max_hops)],
            probes: Vec::new(),
            end: None,
            looped: None,
            arrived: false,
            finished: false,
        }
    }

    /// At a distance, from 1 to the farthest.
    pub(crate) fn spot(&self, ttl: u8) -> Option<&Spot> {
        self.spots.get(usize::from(ttl).checked_sub(1)?)
    }

    pub(crate) fn spot_mut(&mut self, ttl: u8) -> Option<&mut Spot> {
        self.spots.get_mut(usize::from(ttl).checked_sub(1)?)
    }

    /// The farthest distance that is worth asking.
    pub(crate) fn limit(&self) -> u8 {
        let spot_count = u8::try_from(self.spots.len()).unwrap_or(u8::MAX);
        self.end.map_or(spot_count, |end| end.min(spot_count))
    }

    /// Updates the route by an answer.
    pub(crate) fn learn(&mut self, ttl: u8, answer: &Answer) {
        let Some(spot) = self.spot_mut(ttl) else {
            return;
        };
        spot.answers += 1;
        if spot.address.is_none() {
            spot.address = Some(answer.from);
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
            self.looped = None;
            self.arrived = kind == AnswerKind::Arrived;
        }
    }

    fn notice_loop(&mut self, router: IpAddr) {
        let hops_of_router = (1..=self.limit()).filter(|ttl| {
            let address = self.spot(*ttl).and_then(|spot| spot.address);
            address == Some(router)
        });
        if let Some(third) = hops_of_router.skip(self.settings.rounds - 1).min()
            && self.end.is_none_or(|end| third < end)
        {
            self.end = Some(third);
            self.looped = Some(router);
            self.arrived = false;
        }
    }

    /// The farthest distance with an answer; 0: none.
    pub(crate) fn last_answered(&self) -> u8 {
        let known = self.spots.iter().rposition(|spot| spot.address.is_some());
        known.map_or(0, |at| u8::try_from(at + 1).unwrap_or(u8::MAX))
    }

    /// The farthest distance to ask while there is no answer from farther away.
    pub(crate) fn reach(&self) -> u8 {
        let gap = self.settings.gap;
        self.last_answered().saturating_add(gap).min(self.limit())
    }

    /// Whether too many hops are silent between the last answer and `next`.
    pub(crate) fn gave_up(&self, next: u8) -> bool {
        self.end.is_none() && next > self.last_answered().saturating_add(self.settings.gap)
    }
}
