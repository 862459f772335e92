//! Records each stored message in a file, for other programs.
//!
//! Each line of the file is `experiment flow seq`, written after the store has the message. For a
//! fleet, flow is `slot/port`: the next flow of a slot counts from 0. Results of an agent are stored
//! when their experiment ends, so their lines come then.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use neph_campaign::{CampaignEvent, Observer};
use neph_model::{ExperimentId, FleetMessage, Message};
use neph_text::NotWritten;
use neph_text::PrintableText;

use crate::exit::Failure;

/// An observer that also records stored messages.
#[derive(Debug)]
pub(super) struct AcknowledgingObserver<'a, O> {
    inner: &'a mut O,
    file: File,
    /// Lines of messages that have come and are not stored yet.
    pending_lines: BTreeMap<ExperimentId, String>,
}

impl<'a, O> AcknowledgingObserver<'a, O> {
    pub(super) fn new(inner: &'a mut O, path: &Path) -> Result<Self, Failure> {
        let to_failure = |error: io::Error| {
            Failure::Usage(format!(
                "--acknowledge {}: {error}",
                PrintableText::path(path)
            ))
        };
        // Appends, so that an existing file is kept. Symbolic links are not followed.
        if path.is_symlink() && (path.is_file() || !path.exists()) {
            return Err(to_failure(NotWritten::Link.into()));
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(to_failure)?;
        Ok(Self {
            inner,
            file,
            pending_lines: BTreeMap::new(),
        })
    }

    fn write(&mut self, lines: &str) {
        // A failed write only loses lines of this file: the store has the messages.
        let _ = self.file.write_all(lines.as_bytes());
    }
}

impl<O: Observer> Observer for AcknowledgingObserver<'_, O> {
    fn report(&mut self, event: &CampaignEvent<'_>) {
        match event {
            CampaignEvent::RecordsStored {
                experiment,
                records,
            } => self.write(&message_lines(
                *experiment,
                &records.messages,
                &records.fleet,
            )),
            CampaignEvent::Received {
                experiment,
                messages,
                fleet,
            } => {
                let pending = self.pending_lines.entry(*experiment).or_default();
                pending.push_str(&message_lines(*experiment, messages, fleet));
            }
            CampaignEvent::ExperimentEnded { experiment, .. } => {
                if let Some(pending) = self.pending_lines.remove(&experiment.id) {
                    self.write(&pending);
                }
            }
            _ => {}
        }
        self.inner.report(event);
    }
}

fn message_lines(experiment: ExperimentId, messages: &[Message], fleet: &[FleetMessage]) -> String {
    let flow_lines = messages.iter();
    let flow_lines =
        flow_lines.map(|message| format!("{experiment} {} {}\n", message.flow.0, message.seq));
    let fleet_lines = fleet.iter().map(|message| {
        let (slot, port, seq) = (message.slot.0, message.source_port, message.seq);
        format!("{experiment} {slot}/{port} {seq}\n")
    });
    flow_lines.chain(fleet_lines).collect()
}
