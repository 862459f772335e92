//! What the JSON document holds besides its summary: every message and event, until the end.
//!
//! A message is kept as it was measured, some 500 bytes, and becomes JSON (some 14 kB as a tree) only
//! while the document is written, one at a time.

use neph_model::{Anchor, Message, Own};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::flows::Found;
use super::json;

/// Messages and events in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Kept(Vec<Item>);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "almost all are messages")]
enum Item {
    /// With both clocks as they were then.
    Message(Message, Option<Anchor<Own>>),
    Event(Value),
}

impl Kept {
    pub(super) fn message(&mut self, message: &Message, anchor: Option<Anchor<Own>>) {
        self.0.push(Item::Message(*message, anchor));
    }

    pub(super) fn event(&mut self, event: Value) {
        self.0.push(Item::Event(event));
    }
}

/// The document: a summary, and in `messages` what was kept.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) summary: Map<String, Value>,
    pub(super) found: &'a Found,
    pub(super) kept: &'a Kept,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.summary {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("messages", &Items(self))?;
        map.end()
    }
}

struct Items<'a>(&'a Document<'a>);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { found, kept, .. } = self.0;
        let flow = |message: &Message| {
            let mut flows = found.flows.iter();
            let flow = flows.find(|planned| planned.spec.index == message.flow);
            flow.expect("messages come from the flows that were found")
        };
        serializer.collect_seq(kept.0.iter().map(|item| match item {
            Item::Message(message, anchor) => json::message(flow(message), message, *anchor),
            Item::Event(event) => event.clone(),
        }))
    }
}
