//! What the records of an experiment contain: used to end one without a writer, and to detect
//! missing messages.

use neph_journal::Contents;
use neph_model::{EventKind, Experiment, FlowIndex, Message, Span, Tally};

use crate::StoreError;
use crate::columns::ColumnsReader;
use crate::fleet::Counts;

/// Summary of an experiment's records.
#[derive(Debug, Default)]
pub(super) struct RecordSummary {
    tally: Tally,
    messages: u64,
    /// Time of the last known event, nanoseconds since the start.
    last_event_ns: i64,
}

impl RecordSummary {
    pub(super) fn in_journal(contents: &Contents) -> Result<Self, StoreError> {
        let mut summary = Self::default();
        contents.each_message(|message| {
            summary.count(&message);
            Ok::<(), StoreError>(())
        })?;
        for event in &contents.events {
            summary.last_event_ns = summary.last_event_ns.max(event.at);
            if event.flow == FlowIndex(0) && event.kind == EventKind::LateReply {
                summary.tally.late += 1;
            }
        }
        Ok(summary)
    }

    pub(super) fn in_columns(columns: &ColumnsReader) -> Result<Self, StoreError> {
        let mut summary = Self::default();
        for group in 0..columns.row_groups() {
            columns
                .row_group(group)?
                .iter()
                .for_each(|message| summary.count(message));
        }
        Ok(summary)
    }

    /// Adds the counts of a fleet, which replaces a main flow.
    pub(super) fn with_fleet(mut self, fleet: Counts) -> Self {
        self.messages += fleet.messages;
        self.last_event_ns = self.last_event_ns.max(fleet.last_event_ns);
        self.tally.messages += fleet.messages;
        self.tally.replies += fleet.replies;
        self.tally.lost += fleet.lost;
        self.tally.failed += fleet.failed;
        self.tally.duplicates += fleet.copies;
        self
    }

    fn count(&mut self, message: &Message) {
        self.messages += 1;
        let end_time = message.marks.app_recv.unwrap_or(message.marks.intended);
        self.last_event_ns = self.last_event_ns.max(end_time.nanos());
        if message.flow != FlowIndex(0) {
            return;
        }
        let tally = &mut self.tally;
        tally.count(message.outcome);
        tally.duplicates += u64::from(message.duplicates);
        tally.reordered += u64::from(message.reordered);
    }

    /// Messages that a tally counts: those of the main flow, or of the fleet.
    pub(super) const fn main_messages(&self) -> u64 {
        self.tally.messages
    }

    /// Sets tally, end and reason of an experiment whose writer ended too early.
    pub(super) fn complete(&self, experiment: &mut Experiment) {
        experiment.tally = self.tally;
        experiment.ended = Some(experiment.started + Span::from_nanos(self.last_event_ns));
        experiment.reason = Some(format!(
            "the program ended before the experiment did; {} messages were kept",
            self.messages
        ));
    }
}
