//! The lines of NDJSON, and the document at the end.

use neph_model::{RouteLength, Traceroute};
use schemars::JsonSchema;
use serde::Serialize;

use super::message::{EventDocument, MessageDocument};
use super::summary_document::PingSummary;
use crate::lazy::Lazy;

/// The document at the end: the summary, and each message and event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "summary")]
pub struct PingDocument<'a> {
    /// The summary.
    #[serde(flatten)]
    pub summary: PingSummary,
    /// Messages and events in the order in which they came; left out of a brief document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Lazy<'a, PingLine>>,
}

/// A line of NDJSON, or an entry of `messages` in the document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PingLine {
    /// The routers on the way to the target.
    Traceroute {
        /// The route.
        route: Traceroute,
        /// How many hops it has; null where the target did not answer.
        length: Option<RouteLength>,
    },
    /// A message that is finished.
    Message(Box<MessageDocument>),
    /// Something happened.
    Event(EventDocument),
    /// The last line.
    Summary(Box<PingSummary>),
}
