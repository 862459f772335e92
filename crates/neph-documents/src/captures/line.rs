//! The NDJSON lines, and the JSON document.

use neph_capture::HostPair;
use neph_model::Wall;
use schemars::JsonSchema;
use serde::Serialize;

use super::exchanges::{ExchangeDocument, ExchangeSample};
use super::flow::FlowDocument;
use super::sample::{EventDocument, SampleDocument};
use super::summary_document::SummaryDocument;

/// The JSON document. It is written while captures are read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CapturesDocument {
    /// TCP flows.
    pub flows: Vec<CaptureLine>,
    /// Exchanges outside TCP, by pair of hosts.
    pub exchanges: Vec<CaptureLine>,
    /// Totals.
    pub summary: CaptureLine,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CaptureLine {
    /// A TCP flow.
    Flow(Box<FlowDocument>),
    /// Exchanges of a pair of hosts, outside TCP.
    Exchange {
        /// The exchanges.
        #[serde(flatten)]
        exchange: Box<ExchangeDocument>,
        /// Timestamp of the first packet.
        began_unix_ns: Wall,
        /// Timestamp of the last packet.
        last_unix_ns: Wall,
    },
    /// A single round trip.
    Sample(SampleOf),
    /// A TCP event: a segment that is not the next expected one.
    Event(EventDocument),
    /// Totals: the last line.
    Summary(Box<SummaryDocument>),
}

/// A single round trip.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SampleOf {
    /// A round trip of TCP.
    Tcp(SampleDocument),
    /// A round trip outside TCP.
    Exchange(ExchangeSample),
}

impl CaptureLine {
    /// The line of a pair that ended.
    pub fn exchange(pair: &HostPair) -> Self {
        Self::Exchange {
            exchange: Box::new(ExchangeDocument::of(pair, &pair.counts())),
            began_unix_ns: pair.first_packet_at(),
            last_unix_ns: pair.last_packet_at(),
        }
    }
}
