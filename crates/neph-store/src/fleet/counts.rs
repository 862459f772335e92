//! Outcome counts of a segment, known without reading its messages.

use neph_model::{FleetMessage, FleetOutcome};
use parquet::file::metadata::KeyValue;

/// Outcome counts of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) replies: u64,
    pub(crate) lost: u64,
    pub(crate) failed: u64,
    pub(crate) copies: u64,
    /// Time of the last known event, nanoseconds since the start.
    pub(crate) last_event_ns: i64,
}

impl Counts {
    pub(super) fn count(&mut self, message: &FleetMessage) {
        self.messages += 1;
        let mut end = message.sent.nanos();
        match &message.outcome {
            FleetOutcome::Reply(reply) => {
                self.replies += 1;
                self.copies += u64::from(reply.copies);
                end = end.saturating_add(reply.round_trip.nanos());
            }
            FleetOutcome::Lost => self.lost += 1,
            FleetOutcome::Failed => self.failed += 1,
        }
        self.last_event_ns = self.last_event_ns.max(end);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.replies += other.replies;
        self.lost += other.lost;
        self.failed += other.failed;
        self.copies += other.copies;
        self.last_event_ns = self.last_event_ns.max(other.last_event_ns);
    }

    /// The metadata of a segment's file.
    pub(super) fn properties(&self) -> [(&'static str, String); 6] {
        [
            ("messages", self.messages.to_string()),
            ("replies", self.replies.to_string()),
            ("lost", self.lost.to_string()),
            ("failed", self.failed.to_string()),
            ("copies", self.copies.to_string()),
            ("last_ns", self.last_event_ns.to_string()),
        ]
    }

    /// From the metadata of a file; `None` if a value is missing.
    pub(super) fn from_properties(metadata: &[KeyValue]) -> Option<Self> {
        let property = |name: &str| {
            let key = format!("nephoscope.{name}");
            let entry = metadata.iter().find(|entry| entry.key == key)?;
            entry.value.as_deref()
        };
        let count = |name: &str| property(name)?.parse().ok();
        Some(Self {
            messages: count("messages")?,
            replies: count("replies")?,
            lost: count("lost")?,
            failed: count("failed")?,
            copies: count("copies")?,
            last_event_ns: property("last_ns")?.parse().ok()?,
        })
    }
}
