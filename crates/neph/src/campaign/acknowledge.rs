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
pub(super) struct Acknowledging<'a, O> {
    inner: &'a mut O,
    file: File,
    /// Lines of messages that have come and are not stored yet.
    received: BTreeMap<ExperimentId, String>,
}

impl<'a, O> Acknowledging<'a, O> {
    pub(super) fn new(inner: &'a mut O, path: &Path) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::Usage(format!(
                "--acknowledge {}: {error}",
                PrintableText::path(path)
            ))
        };
        // Appends, so that an existing file is kept. Symbolic links are not followed.
        if path.is_symlink() && (path.is_file() || !path.exists()) {
            return Err(refused(NotWritten::Link.into()));
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(refused)?;
        Ok(Self {
            inner,
            file,
            received: BTreeMap::new(),
        })
    }

    fn write(&mut self, lines: &str) {
        // A failed write only loses lines of this file: the store has the messages.
        let _ = self.file.write_all(lines.as_bytes());
    }
}

impl<O: Observer> Observer for Acknowledging<'_, O> {
    fn report(&mut self, events: &CampaignEvent<'_>) {
        match events {
            CampaignEvent::Kept {
                experiment,
                records,
            } => self.write(&lines(*experiment, &records.messages, &records.fleet)),
            CampaignEvent::Received {
                experiment,
                messages,
                fleet,
            } => {
                let received = self.received.entry(*experiment).or_default();
                received.push_str(&lines(*experiment, messages, fleet));
            }
            CampaignEvent::ExperimentEnded { experiment, .. } => {
                if let Some(received) = self.received.remove(&experiment.id) {
                    self.write(&received);
                }
            }
            _ => {}
        }
        self.inner.report(events);
    }
}

fn lines(experiment: ExperimentId, messages: &[Message], fleet: &[FleetMessage]) -> String {
    let of_flows = messages.iter();
    let of_flows =
        of_flows.map(|message| format!("{experiment} {} {}\n", message.flow.0, message.seq));
    let of_fleet = fleet.iter().map(|message| {
        let (slot, port, seq) = (message.slot.0, message.source_port, message.seq);
        format!("{experiment} {slot}/{port} {seq}\n")
    });
    of_flows.chain(of_fleet).collect()
}
