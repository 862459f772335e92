//! A period of `neph watch` as documents: a line for each flow with a packet, for each pair with an
//! exchange, and one with totals.

use std::collections::BTreeMap;

use neph_capture::reading::conversations::PacketCounts;
use neph_capture::{
    Event, ExchangeCounts, ExchangeProtocol, Flow, Half, HostPair, OtherPackets, PeriodCounts,
    RoundTripSketches,
};
use neph_listen::{CaptureCounters, CaptureMethod};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::ExchangeDocument;
use super::exchanges::{CountedDocument, protocol_key};
use super::flow::{EndsDocument, HalvesDocument, ShownDocument};
use super::summary_document::OthersDocument;

/// Start, end and length of a period. The length is measured separately, because the wall clock may
/// be set meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct PeriodTime {
    /// Start.
    pub from: Wall,
    /// End.
    pub until: Wall,
    /// Length.
    pub length: Span,
}

/// The totals of a period.
#[derive(Debug, Clone)]
pub struct RecentPeriod {
    /// Time of the period.
    pub time: PeriodTime,
    /// Capture method.
    pub capture_method: CaptureMethod,
    /// Packets of the interface.
    pub capture_counters: CaptureCounters,
    /// Packets that belong to no flow.
    pub others: OtherPackets,
    /// Numbers of all packets.
    pub counts: PacketCounts,
    /// Retransmissions.
    pub retransmission_counters: RetransmissionCounters,
    /// Round trips of all flows together.
    pub round_trips: [RoundTripSketches; 2],
    /// Exchanges of all pairs, by protocol.
    pub exchanges: [ExchangeCounts; ExchangeProtocol::ALL.len()],
}

/// Counters of retransmissions and of untracked segments.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetransmissionCounters {
    /// Retransmissions, spurious ones included.
    pub retransmissions: u64,
    /// Spurious retransmissions, including those that later packets showed.
    pub spurious: u64,
    /// Segments that were not matched with an acknowledgement.
    pub segments_not_tracked: u64,
}

impl RetransmissionCounters {
    /// The difference to an earlier state.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            retransmissions: self.retransmissions - earlier.retransmissions,
            spurious: self.spurious - earlier.spurious,
            segments_not_tracked: self.segments_not_tracked - earlier.segments_not_tracked,
        }
    }

    /// Counts an event.
    pub fn count_event(&mut self, event: Event) {
        let is_spurious = event == Event::SpuriousRetransmission;
        let is_needed = matches!(event, Event::Retransmission | Event::FastRetransmission);
        self.retransmissions += u64::from(is_spurious || is_needed);
        self.spurious += u64::from(is_spurious);
    }
}

/// An NDJSON line while packets arrive; the lines of `neph read` follow at the end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PeriodLine {
    /// A flow in one period.
    FlowPeriod {
        /// The period.
        #[serde(flatten)]
        stretch: StretchDocument,
        /// Client and server.
        #[serde(flatten)]
        ends: Box<EndsDocument>,
        /// Sent packets and round trips.
        #[serde(flatten)]
        shown: Box<ShownDocument>,
    },
    /// Exchanges of a pair of hosts, outside TCP, in one period.
    ExchangePeriod {
        /// The period.
        #[serde(flatten)]
        stretch: StretchDocument,
        /// The exchanges.
        #[serde(flatten)]
        exchange: Box<ExchangeDocument>,
    },
    /// An interface went down or was removed.
    InterfaceDown {
        /// Time of the event.
        at_unix_ns: Wall,
        /// Name of the interface.
        interface: String,
    },
    /// An interface came up.
    InterfaceUp {
        /// Time of the event.
        at_unix_ns: Wall,
        /// Name of the interface.
        interface: String,
    },
    /// Totals of a period.
    Period(Box<PeriodDocument>),
}

/// The time of a period.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct StretchDocument {
    /// Start of the period.
    pub from_unix_ns: Wall,
    /// End of the period.
    pub until_unix_ns: Wall,
}

/// The totals of a period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PeriodDocument {
    /// The period.
    #[serde(flatten)]
    pub stretch: StretchDocument,
    /// Capture method: `ring` or `bpf`.
    pub capture_method: &'static str,
    /// Number of packets.
    pub packets: u64,
    /// Duplicates in the capture that were removed.
    pub capture_duplicates_removed: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
    /// Packets that were lost because the capture ring was full.
    pub packets_lost: u64,
    /// Retransmitted segments, spurious ones included.
    pub retransmitted_segments: u64,
    /// Retransmissions of data that the peer had received already.
    pub spurious_retransmissions: u64,
    /// Segments that were not matched with an acknowledgement.
    pub segments_not_tracked: u64,
    /// Number of times that the capture ring was full.
    pub ring_overruns: u64,
    /// Packets that are not IP.
    pub packets_not_ip: u64,
    /// Packets that belong to no flow.
    pub other_packets: OthersDocument,
    /// Round trips of all flows.
    pub round_trips: HalvesDocument,
    /// Exchanges outside TCP, by protocol: `ping`, `dns`, `quic_spin`.
    pub exchanges: BTreeMap<String, CountedDocument>,
}

impl From<PeriodTime> for StretchDocument {
    fn from(time: PeriodTime) -> Self {
        Self {
            from_unix_ns: time.from,
            until_unix_ns: time.until,
        }
    }
}

impl PeriodLine {
    /// The line of a flow.
    pub fn flow(time: PeriodTime, flow: &Flow, recent: &PeriodCounts) -> Self {
        Self::FlowPeriod {
            stretch: time.into(),
            ends: Box::new(flow.into()),
            shown: Box::new(recent.into()),
        }
    }

    /// The line of a pair of hosts outside TCP.
    pub fn exchange(time: PeriodTime, pair: &HostPair, recent: &ExchangeCounts) -> Self {
        Self::ExchangePeriod {
            stretch: time.into(),
            exchange: Box::new(ExchangeDocument::of(pair, recent)),
        }
    }

    /// The line with totals.
    pub fn period(period: &RecentPeriod) -> Self {
        let protocol_counts = |protocol: ExchangeProtocol| {
            let counts = &period.exchanges[protocol as usize];
            (protocol_key(protocol), counts.into())
        };
        Self::Period(Box::new(PeriodDocument {
            stretch: period.time.into(),
            capture_method: period.capture_method.name(),
            packets: period.capture_counters.packets,
            capture_duplicates_removed: period.counts.copies,
            bytes: period.counts.bytes,
            packets_lost: period.capture_counters.lost,
            retransmitted_segments: period.retransmission_counters.retransmissions,
            spurious_retransmissions: period.retransmission_counters.spurious,
            segments_not_tracked: period.retransmission_counters.segments_not_tracked,
            ring_overruns: period.capture_counters.frozen,
            packets_not_ip: period.capture_counters.not_ip,
            other_packets: period.others.into(),
            round_trips: HalvesDocument {
                server: (&period.round_trips[Half::Server as usize]).into(),
                client: (&period.round_trips[Half::Client as usize]).into(),
            },
            exchanges: ExchangeProtocol::ALL
                .into_iter()
                .map(protocol_counts)
                .collect(),
        }))
    }
}
