//! The lines of NDJSON, and the document.

use neph_capture::Pair;
use neph_model::Wall;
use schemars::JsonSchema;
use serde::Serialize;

use super::exchanges::{ExchangeDocument, ExchangeSample};
use super::flow::FlowDocument;
use super::sample::{EventDocument, SampleDocument};
use super::summary_document::SummaryDocument;

/// One document; it is written while captures are read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CapturesDocument {
    /// The flows of TCP.
    pub flows: Vec<CaptureLine>,
    /// Pairs that ask and answer outside of TCP.
    pub exchanges: Vec<CaptureLine>,
    /// All together.
    pub summary: CaptureLine,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CaptureLine {
    /// A flow of TCP.
    Flow(Box<FlowDocument>),
    /// A pair that asks and answers outside of TCP.
    Exchange {
        /// The pair.
        #[serde(flatten)]
        exchange: Box<ExchangeDocument>,
        /// When its first packet passed, Unix time in nanoseconds.
        began_unix_ns: Wall,
        /// When its last packet passed, Unix time in nanoseconds.
        last_unix_ns: Wall,
    },
    /// A single round trip.
    Sample(SampleOf),
    /// Something else than the next segment.
    Event(EventDocument),
    /// The last line.
    Summary(Box<SummaryDocument>),
}

/// A single round trip: of TCP, or outside of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SampleOf {
    /// Of TCP.
    Tcp(SampleDocument),
    /// Outside of TCP.
    Exchange(ExchangeSample),
}

impl CaptureLine {
    /// A pair that is over.
    pub fn exchange(pair: &Pair) -> Self {
        Self::Exchange {
            exchange: Box::new(ExchangeDocument::of(pair, &pair.counted())),
            began_unix_ns: pair.began(),
            last_unix_ns: pair.last(),
        }
    }
}
