//! What is known of a fleet after its messages were looked at: plain values for figures, tables,
//! findings and scripts.
//!
//! Everything here is a result. How it is found stands in the files beside this one.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_model::{ChangeId, Fleet, Instant, Lane, Own, Span};
use serde::Serialize;

use crate::advice::Advice;
use crate::direction::Direction;
use crate::dissected::Dissected;
use crate::flow_tally::FlowTally;
use crate::lately::LastMessages;
use crate::latency::Latency;
use crate::pair::PairView;
use crate::settings::Settings;
use crate::share::{Share, share};

/// A fleet as its messages show it.
#[derive(Clone, Debug, Serialize)]
pub struct FleetView {
    /// What was asked for.
    pub fleet: Fleet,
    /// When its first message was sent.
    pub from: Instant<Own>,
    /// When its last was.
    pub until: Instant<Own>,
    /// Its flows, by lane, then by time.
    pub flows: Vec<FlowHistory>,
    /// All path changes, by time.
    pub changes: Vec<PathChange>,
    /// The latency classes of each endpoint, in the fleet's order of endpoints; each lowest first.
    pub classes: Vec<Vec<Class>>,
    /// Latency over flows, bin by bin, of each endpoint.
    pub fairness: Vec<Vec<Fairness>>,
    /// How many flows had which base latency when, of each endpoint.
    pub spectra: Vec<Spectrum>,
    /// What all this was found with.
    pub settings: Settings,
    /// How all messages fared.
    pub tally: FlowTally,
    /// What holds for the flows of each endpoint together, in the fleet's order of endpoints.
    pub pairs: Vec<PairView>,
    /// A few flows message by message (see [`Dissector`](crate::Dissector)); empty until a second
    /// pass over the messages has picked them.
    pub dissected: Vec<Dissected>,
    /// Advice on source ports, of each endpoint; empty where nobody asked for it.
    pub advice: Vec<Advice>,
}

impl FleetView {
    /// The flows that ask the endpoint of this index.
    pub fn flows_of(&self, endpoint: usize) -> impl Iterator<Item = &FlowHistory> {
        let fleet = &self.fleet;
        let asks = move |flow: &&FlowHistory| fleet.endpoint_of(flow.lane) == endpoint;
        self.flows.iter().filter(asks)
    }

    /// So many replies came after their message was counted lost, which proves that it was lost on
    /// neither way: the peer counted it, and it seemed to be lost on the way back. Which flows' they
    /// were is not known, so what a flow or an endpoint lost on the way back is told as far as it is
    /// more than all of them.
    pub fn came_late(&mut self, late: u64) {
        let of_flows = self.flows.iter_mut().map(|flow| &mut flow.tally);
        let of_pairs = self.pairs.iter_mut().map(|pair| &mut pair.tally);
        for tally in of_flows.chain(of_pairs).chain([&mut self.tally]) {
            tally.lost_reverse = tally.lost_reverse.saturating_sub(late);
        }
        if let [pair] = &mut self.pairs[..] {
            pair.late = Some(late);
        }
    }

    /// The latest base latency of each flow that asks this address, by its port, where it is known.
    pub fn latest_bases(&self, asked: IpAddr) -> BTreeMap<u16, Span> {
        let asks = |flow: &&FlowHistory| {
            let endpoint = self.fleet.endpoint_of(flow.lane);
            let endpoint = self.fleet.endpoints.get(endpoint);
            endpoint.is_some_and(|one| one.address.ip() == asked)
        };
        let own = self.flows.iter().filter(asks);
        own.filter_map(|flow| Some((flow.source_port, flow.segments.last()?.base)))
            .collect()
    }

    /// What lasted no longer than this has ended within [`Settings::soon`](crate::Settings): half an
    /// interval more. A flow is seen by its messages alone, so that how long it stayed is known to
    /// the nearest interval, and what ends at the very moment is measured just before or just after.
    pub fn soon(&self) -> Span {
        self.settings.soon + Span::from_nanos(self.fleet.interval.nanos() / 2)
    }

    /// How long its bins of time are: [`Settings::bin`](crate::Settings), or, where it lasted less, as long
    /// as it, in whole seconds.
    pub fn bin(&self) -> Span {
        const SECOND: i64 = 1_000_000_000;
        let lasted = (self.until - self.from).nanos().max(1);
        let whole = (lasted + SECOND - 1) / SECOND * SECOND;
        self.settings.bin.min(Span::from_nanos(whole))
    }

    /// From a flow's beginning until a path change of it can be told, where no message is lost.
    pub fn learning(&self) -> Span {
        self.fleet
            .interval
            .times(self.settings.detection.learning())
    }

    /// Whether flows end because they are renewed, and not with the measurement.
    pub fn renewal_ends_flows(&self) -> bool {
        let renewal = self.fleet.renewal;
        renewal.is_some_and(|renewal| renewal < self.until - self.from)
    }

    /// A flow of which nothing was known for so long stands for nothing any more.
    pub(crate) fn silence(&self) -> Span {
        self.settings.bin + self.fleet.interval
    }
}

/// One flow from its first message to its last.
#[derive(Clone, Debug, Serialize)]
pub struct FlowHistory {
    /// Its place in the fleet.
    pub lane: Lane,
    /// Our port.
    pub source_port: u16,
    /// Its base propagation latency over time: segments without gaps, from the moment it was first
    /// stable. Empty if it never was.
    pub segments: Vec<Segment>,
    /// How its messages fared.
    pub tally: FlowTally,
    /// How the last of them fared.
    pub last: LastMessages,
}

impl FlowHistory {
    /// Where it was at a moment.
    pub(crate) fn at(&self, moment: Instant<Own>) -> Option<&Segment> {
        let next = self
            .segments
            .partition_point(|segment| segment.from <= moment);
        let segment = self.segments.get(next.checked_sub(1)?)?;
        (moment <= segment.until).then_some(segment)
    }
}

/// A time during which a flow had one base latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// When the first of its messages was sent.
    pub from: Instant<Own>,
    /// When the next segment begins, or the flow's last message was sent that was replied to.
    pub until: Instant<Own>,
    /// The base propagation latency: a round trip.
    pub base: Span,
    /// Index of its class among the endpoint's; `None` if it belongs to none.
    pub class: Option<u16>,
}

/// What else than the latency speaks for a change of path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// A message overtook another as the latency fell.
    pub reordered: bool,
    /// The TTL of requests or replies became another.
    pub ttl: bool,
    /// A trace of the same 5-tuple, started at once, met other routers than the one before it.
    pub trace: Option<bool>,
    /// Which direction's one-way time moved, where the peer's stamps tell it.
    pub direction: Option<Direction>,
}

/// A flow's base latency became another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathChange {
    /// The flow's place in the fleet.
    pub lane: Lane,
    /// Our port.
    pub source_port: u16,
    /// When the first message of the new latency was sent.
    pub at: Instant<Own>,
    /// When it was certain: the reply that made it stable.
    pub told: Instant<Own>,
    /// The base latency before.
    pub before: Span,
    /// The base latency since.
    pub after: Span,
    /// What else speaks for it.
    pub evidence: Evidence,
}

impl PathChange {
    /// What tells it from the others of its fleet.
    pub const fn id(&self) -> ChangeId {
        ChangeId {
            at: self.at,
            lane: self.lane,
            source_port: self.source_port,
        }
    }
}

/// What traces said of path changes, of those whose routes before and after are both known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Changes after which a flow met other routers.
    pub others: u64,
    /// Changes after which it met the same ones, as far as they answered.
    pub same: u64,
}

impl Compared {
    /// Counts what was said of each change; nothing of those that were not compared.
    pub fn of(said: impl IntoIterator<Item = Option<bool>>) -> Self {
        let mut counted = Self::default();
        for others in said.into_iter().flatten() {
            counted.others += u64::from(others);
            counted.same += u64::from(!others);
        }
        counted
    }

    /// All of them.
    pub const fn all(&self) -> u64 {
        self.others + self.same
    }
}

/// A latency class: flows whose base latency is the same, so probably a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its base latency: the median over time of its flows.
    pub base: Span,
    /// The lowest and highest base latency in it.
    pub range: (Span, Span),
    /// Its share of all flows' time, 0 to 1.
    pub share: f64,
    /// Path changes away from it.
    pub left: u64,
    /// Path changes to it.
    pub joined: u64,
    /// How many flows were in it at the end.
    pub flows: u32,
    /// Messages of flows that were known to be in it, up to each flow's last reply, and without
    /// silences of a bin of time or more.
    pub sent: u64,
    /// Of these, the lost.
    pub lost: u64,
}

impl Class {
    /// The share of its messages that were lost; `None` of none.
    pub fn loss(&self) -> Option<Share> {
        share(self.lost, self.sent)
    }
}

/// How latency differs between flows within one bin of time (the source takes 20 s).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// When the bin begins.
    pub from: Instant<Own>,
    /// Flows with a message in it.
    pub flows: u32,
    /// Of these, flows at least half of whose messages were lost: they are slower than all others.
    pub lost: u32,
    /// Over flows, quantiles of each flow's median round trip in the bin: lowest, p50, p95, p99,
    /// highest. One that falls on a lost flow has no number.
    pub latency: [Latency; 5],
    /// Path changes in it; `None` where they are not known any more (`PairView::forgotten`), which
    /// is not none.
    pub changes: Option<u32>,
    /// The same quantiles of the flows' base latencies in the middle of the bin; `None` where no
    /// flow had one, or where that is not known any more.
    pub base: Option<[Span; 5]>,
}

/// How many flows had which base latency when: a grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// When the first column begins.
    pub from: Instant<Own>,
    /// The width of a column.
    pub step: Span,
    /// Where the lowest row begins.
    pub lowest: Span,
    /// The height of a row.
    pub row: Span,
    /// What is not empty, by column, then row.
    pub bins: Vec<SpectrumBin>,
}

/// A cell of a spectrum that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpectrumBin {
    /// Column: time.
    pub column: u32,
    /// Row: base latency.
    pub row: u32,
    /// How many flows were there in the middle of the column.
    pub flows: u32,
}
