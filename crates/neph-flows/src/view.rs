//! The evaluation of a fleet, as plain values for figures, tables, findings and scripts.
//!
//! Everything here is a result; other modules calculate it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_model::{ChangeId, Fleet, Instant, Local, Slot, Span};
use serde::Serialize;

use crate::advice::Advice;
use crate::direction::Direction;
use crate::dissected::Dissected;
use crate::flow_tally::FlowTally;
use crate::latency::Latency;
use crate::pair::PairView;
use crate::recent_outcomes::LastMessages;
use crate::settings::Settings;
use crate::share::{Share, share};

/// A fleet as its messages show it.
#[derive(Clone, Debug, Serialize)]
pub struct FleetView {
    /// The fleet as planned.
    pub fleet: Fleet,
    /// When its first message was sent.
    pub from: Instant<Local>,
    /// When its last was.
    pub until: Instant<Local>,
    /// Its flows, by slot, then by time.
    pub flows: Vec<FlowHistory>,
    /// All path changes, by time.
    pub changes: Vec<PathChange>,
    /// The latency classes of each endpoint, in the fleet's order of endpoints; each lowest first.
    pub classes: Vec<Vec<Class>>,
    /// Latency over flows, bin by bin, of each endpoint.
    pub latency_bins: Vec<Vec<FlowLatencyBin>>,
    /// Number of flows by base latency and time, of each endpoint.
    pub spectra: Vec<Spectrum>,
    /// The settings of the evaluation.
    pub settings: Settings,
    /// Outcomes of all messages.
    pub tally: FlowTally,
    /// Results for the flows of each endpoint together, in the fleet's order of endpoints.
    pub pairs: Vec<PairView>,
    /// A few flows message by message (see [`Dissector`](crate::Dissector)); empty until a second pass over
    /// the messages has collected them.
    pub dissected: Vec<Dissected>,
    /// Advice on source ports, of each endpoint; empty if it was not requested.
    pub advice: Vec<Advice>,
}

impl FleetView {
    /// The flows to the endpoint with this index.
    pub fn flows_of(&self, endpoint: usize) -> impl Iterator<Item = &FlowHistory> {
        let fleet = &self.fleet;
        let is_at_endpoint = move |flow: &&FlowHistory| fleet.endpoint_of(flow.slot) == endpoint;
        self.flows.iter().filter(is_at_endpoint)
    }

    /// Records late replies, whose messages were counted as lost on the reverse path although no direction
    /// lost them. Their flows are unknown. So the loss of a flow or endpoint on the reverse path is reported
    /// only as far as it exceeds this number.
    pub fn record_late_replies(&mut self, late: u64) {
        let flow_tallies = self.flows.iter_mut().map(|flow| &mut flow.tally);
        let pair_tallies = self.pairs.iter_mut().map(|pair| &mut pair.tally);
        for tally in flow_tallies.chain(pair_tallies).chain([&mut self.tally]) {
            tally.lost_reverse = tally.lost_reverse.saturating_sub(late);
        }
        if let [pair] = &mut self.pairs[..] {
            pair.late = Some(late);
        }
    }

    /// The latest known base latency of each flow to this address, by port.
    pub fn latest_bases(&self, address: IpAddr) -> BTreeMap<u16, Span> {
        let is_at_address = |flow: &&FlowHistory| {
            let endpoint = self.fleet.endpoint_of(flow.slot);
            let endpoint = self.fleet.endpoints.get(endpoint);
            endpoint.is_some_and(|known_endpoint| known_endpoint.address.ip() == address)
        };
        let flows = self.flows.iter().filter(is_at_address);
        flows
            .filter_map(|flow| Some((flow.source_port, flow.segments.last()?.base)))
            .collect()
    }

    /// The limit for stays that ended within [`Settings::soon`](crate::Settings): half an interval longer.
    /// Stays are known to the nearest interval, because only messages show them.
    pub fn soon(&self) -> Span {
        self.settings.soon + Span::from_nanos(self.fleet.interval.nanos() / 2)
    }

    /// Length of the bins of time: [`Settings::bin`](crate::Settings), or the duration in whole seconds if
    /// that is shorter.
    pub fn bin(&self) -> Span {
        const SECOND: i64 = 1_000_000_000;
        let duration = (self.until - self.from).nanos().max(1);
        let whole_seconds = (duration + SECOND - 1) / SECOND * SECOND;
        self.settings.bin.min(Span::from_nanos(whole_seconds))
    }

    /// Time from a flow's beginning until a path change is detectable, without loss.
    pub fn learning(&self) -> Span {
        self.fleet
            .interval
            .times(self.settings.detection.learning())
    }

    /// Whether flows end because they are replaced by new ones, before the end of the measurement.
    pub fn lifetime_ends_flows(&self) -> bool {
        let lifetime = self.fleet.lifetime;
        lifetime.is_some_and(|lifetime| lifetime < self.until - self.from)
    }

    /// After this time without messages a flow no longer counts.
    pub(crate) fn silence(&self) -> Span {
        self.settings.bin + self.fleet.interval
    }
}

/// One flow from its first message to its last.
#[derive(Clone, Debug, Serialize)]
pub struct FlowHistory {
    /// Its slot in the fleet.
    pub slot: Slot,
    /// Local source port.
    pub source_port: u16,
    /// Its base propagation latency over time: segments without gaps, from the moment it was first stable.
    /// Empty if it never was.
    pub segments: Vec<Segment>,
    /// Outcomes of its messages.
    pub tally: FlowTally,
    /// Outcomes of its last messages.
    pub last: LastMessages,
}

impl FlowHistory {
    /// Its segment at a moment.
    pub(crate) fn at(&self, moment: Instant<Local>) -> Option<&Segment> {
        let next_index = self
            .segments
            .partition_point(|segment| segment.from <= moment);
        let segment = self.segments.get(next_index.checked_sub(1)?)?;
        (moment <= segment.until).then_some(segment)
    }
}

/// A time during which a flow had one base latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// When the first of its messages was sent.
    pub from: Instant<Local>,
    /// When the next segment begins, or the flow's last replied message was sent.
    pub until: Instant<Local>,
    /// The base propagation latency, as a round trip.
    pub base: Span,
    /// Index of its class among those of the endpoint; `None` if it belongs to none.
    pub class: Option<u16>,
}

/// Evidence for a path change in addition to the latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// A message overtook another as the latency fell.
    pub reordered: bool,
    /// The TTL of requests or replies changed.
    pub ttl: bool,
    /// An immediate trace of the same 5-tuple found other routers than the one before.
    pub trace: Option<bool>,
    /// The direction whose one-way time changed, if the peer's timestamps show it.
    pub direction: Option<Direction>,
}

/// A change of a flow's base latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathChange {
    /// The flow's slot in the fleet.
    pub slot: Slot,
    /// Local source port.
    pub source_port: u16,
    /// When the first message with the new latency was sent.
    pub at: Instant<Local>,
    /// When it was confirmed: the reply that made it stable.
    pub reported: Instant<Local>,
    /// The base latency before.
    pub before: Span,
    /// The base latency after it.
    pub after: Span,
    /// Additional evidence.
    pub evidence: Evidence,
}

impl PathChange {
    /// The identity of the change in its fleet.
    pub const fn id(&self) -> ChangeId {
        ChangeId {
            at: self.at,
            slot: self.slot,
            source_port: self.source_port,
        }
    }
}

/// Verdicts of traces on path changes with known routes before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedRoutes {
    /// Changes after which a flow used other routers.
    pub others: u64,
    /// Changes after which it used the same ones, as far as they answered.
    pub same: u64,
}

impl ComparedRoutes {
    /// Counts the verdicts; changes without a comparison do not count.
    pub fn of(verdicts: impl IntoIterator<Item = Option<bool>>) -> Self {
        let mut counts = Self::default();
        for others in verdicts.into_iter().flatten() {
            counts.others += u64::from(others);
            counts.same += u64::from(!others);
        }
        counts
    }

    /// The total.
    pub const fn total(&self) -> u64 {
        self.others + self.same
    }
}

/// A latency class: flows with the same base latency, so probably the same path.
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
    /// Number of flows in it at the end.
    pub flows: u32,
    /// Messages of flows that were known to be in it, up to each flow's last reply; without silences of a bin
    /// of time or more.
    pub sent: u64,
    /// The lost ones of these.
    pub lost: u64,
}

impl Class {
    /// The share of its messages that were lost; `None` without messages.
    pub fn loss(&self) -> Option<Share> {
        share(self.lost, self.sent)
    }
}

/// Differences in latency between flows within one bin of time (20 s in the source).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowLatencyBin {
    /// When the bin begins.
    pub from: Instant<Local>,
    /// Flows with a message in it.
    pub flows: u32,
    /// Of these, flows that lost at least half of their messages: they count as slower than all others.
    pub lost: u32,
    /// Quantiles over flows of each flow's median round trip in the bin: lowest, p50, p95, p99, highest. One
    /// that falls on a lost flow has no number.
    pub latency: [Latency; 5],
    /// Path changes in it; `None` if they are no longer known (`PairView::forgotten`), which differs from 0.
    pub changes: Option<u32>,
    /// The same quantiles of the flows' base latencies in the middle of the bin; `None` if no flow had one,
    /// or if it is no longer known.
    pub base: Option<[Span; 5]>,
}

/// Number of flows by base latency and time: a grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// When the first column begins.
    pub from: Instant<Local>,
    /// The width of a column.
    pub step: Span,
    /// Where the lowest row begins.
    pub lowest: Span,
    /// The height of a row.
    pub row: Span,
    /// The cells that are not empty, by column, then row.
    pub bins: Vec<SpectrumBin>,
}

/// A cell of a spectrum that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpectrumBin {
    /// Column: time.
    pub column: u32,
    /// Row: base latency.
    pub row: u32,
    /// Number of flows in it in the middle of the column.
    pub flows: u32,
}
