//! A period of `neph watch` for programs: a line for each flow that carried a packet, for each pair
//! that asked or answered, and one for all together.

use std::collections::BTreeMap;

use neph_capture::reading::conversations::Counts;
use neph_capture::{Counted, Event, Flow, Half, Others, Pair, Question, Recent, Trips};
use neph_listen::{CaptureMethod, Seen};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::ExchangeDocument;
use super::exchanges::{CountedDocument, key};
use super::flow::{EndsDocument, HalvesDocument, ShownDocument};
use super::summary_document::OthersDocument;

/// From and until when a period was, and how long: the wall clock may have been set meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// The start.
    pub from: Wall,
    /// The end.
    pub until: Wall,
    /// How long.
    pub length: Span,
}

/// What came in a period, flows aside.
#[derive(Debug, Clone)]
pub struct Lately {
    /// When.
    pub stretch: Stretch,
    /// How packets came.
    pub way: CaptureMethod,
    /// Packets of the interface.
    pub seen: Seen,
    /// Packets of no flow.
    pub others: Others,
    /// What was counted of all.
    pub counts: Counts,
    /// Retransmissions.
    pub repairs: Repairs,
    /// Round trips of all flows together.
    pub trips: [Trips; 2],
    /// Of all pairs together, by question.
    pub exchanges: [Counted; Question::ALL.len()],
}

/// What was retransmitted, and what was not followed; each only grows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Repairs {
    /// Of any kind.
    pub retransmissions: u64,
    /// Those of them that were spurious, as they or what came later showed.
    pub spurious: u64,
    /// Segments whose answers were not waited for.
    pub not_followed: u64,
}

impl Repairs {
    /// What was added since.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            retransmissions: self.retransmissions - before.retransmissions,
            spurious: self.spurious - before.spurious,
            not_followed: self.not_followed - before.not_followed,
        }
    }

    /// Counts an event.
    pub fn event(&mut self, event: Event) {
        let is_spurious = event == Event::SpuriousRetransmission;
        let is_needed = matches!(event, Event::Retransmission | Event::FastRetransmission);
        self.retransmissions += u64::from(is_spurious || is_needed);
        self.spurious += u64::from(is_spurious);
    }
}

/// A line of NDJSON while packets come; those of `neph read` follow at the end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PeriodLine {
    /// What a flow showed in a period.
    FlowPeriod {
        /// When.
        #[serde(flatten)]
        stretch: StretchDocument,
        /// Who is connected.
        #[serde(flatten)]
        ends: Box<EndsDocument>,
        /// What both sides sent and what was measured.
        #[serde(flatten)]
        shown: Box<ShownDocument>,
    },
    /// What a pair outside of TCP showed in a period.
    ExchangePeriod {
        /// When.
        #[serde(flatten)]
        stretch: StretchDocument,
        /// The pair.
        #[serde(flatten)]
        exchange: Box<ExchangeDocument>,
    },
    /// An interface went down or away.
    InterfaceDown {
        /// When, Unix time in nanoseconds.
        at_unix_ns: Wall,
        /// Its name.
        interface: String,
    },
    /// An interface is up.
    InterfaceUp {
        /// When, Unix time in nanoseconds.
        at_unix_ns: Wall,
        /// Its name.
        interface: String,
    },
    /// What came in a period.
    Period(Box<PeriodDocument>),
}

/// When a period was.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct StretchDocument {
    /// The start, Unix time in nanoseconds.
    pub from_unix_ns: Wall,
    /// The end, Unix time in nanoseconds.
    pub until_unix_ns: Wall,
}

/// What came in a period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PeriodDocument {
    /// When.
    #[serde(flatten)]
    pub stretch: StretchDocument,
    /// How packets came.
    pub capture_method: &'static str,
    /// Packets.
    pub packets: u64,
    /// Packets that were captured twice and count once.
    pub capture_duplicates_removed: u64,
    /// Bytes of IP.
    pub bytes: u64,
    /// Packets that were lost because the ring was full.
    pub packets_lost: u64,
    /// Retransmissions, spurious ones included.
    pub retransmitted_segments: u64,
    /// Retransmissions of what the peer had received already.
    pub spurious_retransmissions: u64,
    /// Segments whose acknowledgement was not waited for.
    pub segments_not_tracked: u64,
    /// How often the ring was full.
    pub ring_overruns: u64,
    /// Packets that are not IP.
    pub packets_not_ip: u64,
    /// Packets of no flow.
    pub other_packets: OthersDocument,
    /// Round trips of all flows.
    pub round_trips: HalvesDocument,
    /// Exchanges outside of TCP, by question.
    pub exchanges: BTreeMap<String, CountedDocument>,
}

impl From<Stretch> for StretchDocument {
    fn from(stretch: Stretch) -> Self {
        Self {
            from_unix_ns: stretch.from,
            until_unix_ns: stretch.until,
        }
    }
}

impl PeriodLine {
    /// What a flow showed in a period.
    pub fn flow(stretch: Stretch, flow: &Flow, recent: &Recent) -> Self {
        Self::FlowPeriod {
            stretch: stretch.into(),
            ends: Box::new(flow.into()),
            shown: Box::new(recent.into()),
        }
    }

    /// What a pair outside of TCP showed in a period.
    pub fn exchange(stretch: Stretch, pair: &Pair, recent: &Counted) -> Self {
        Self::ExchangePeriod {
            stretch: stretch.into(),
            exchange: Box::new(ExchangeDocument::of(pair, recent)),
        }
    }

    /// What came in a period.
    pub fn period(lately: &Lately) -> Self {
        let of_all = |question: Question| {
            let counted = &lately.exchanges[question as usize];
            (key(question), counted.into())
        };
        Self::Period(Box::new(PeriodDocument {
            stretch: lately.stretch.into(),
            capture_method: lately.way.name(),
            packets: lately.seen.packets,
            capture_duplicates_removed: lately.counts.copies,
            bytes: lately.counts.bytes,
            packets_lost: lately.seen.lost,
            retransmitted_segments: lately.repairs.retransmissions,
            spurious_retransmissions: lately.repairs.spurious,
            segments_not_tracked: lately.repairs.not_followed,
            ring_overruns: lately.seen.frozen,
            packets_not_ip: lately.seen.not_ip,
            other_packets: lately.others.into(),
            round_trips: HalvesDocument {
                server: (&lately.trips[Half::Server as usize]).into(),
                client: (&lately.trips[Half::Client as usize]).into(),
            },
            exchanges: Question::ALL.into_iter().map(of_all).collect(),
        }))
    }
}
