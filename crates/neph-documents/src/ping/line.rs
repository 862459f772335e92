//! The NDJSON lines, and the JSON document.

use neph_model::{RouteLength, Traceroute};
use schemars::JsonSchema;
use serde::Serialize;

use super::message::{EventDocument, MessageDocument};
use super::summary_document::PingSummary;
use crate::lazy_list::LazyList;

/// The JSON document: the summary, and each message and event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "summary")]
pub struct PingDocument<'a> {
    /// The summary.
    #[serde(flatten)]
    pub summary: PingSummary,
    /// Messages and events in the order of their occurrence; absent from a brief document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<LazyList<'a, PingLine>>,
}

/// An NDJSON line, or an entry of `messages` in the document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PingLine {
    /// The routers on the path to the target.
    Traceroute {
        /// The route.
        route: Traceroute,
        /// Number of hops; null if the target did not answer.
        length: Option<RouteLength>,
    },
    /// A message that ended.
    Message(Box<MessageDocument>),
    /// An event of a flow.
    Event(EventDocument),
    /// Summary: the last line.
    Summary(Box<PingSummary>),
}
