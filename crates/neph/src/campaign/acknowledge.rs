//! Records each stored message in a file, for other programs.
//!
//! Each line of the file is `experiment flow seq`, written after the store has the message. For a
//! fleet, flow is `slot/port`: the next flow of a slot counts from 0.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use neph_campaign::{CampaignEvent, Observer};
use neph_model::{ExperimentId, Records};
use neph_text::NotWritten;
use neph_text::PrintableText;

use crate::exit::Failure;

/// An observer that also records stored messages.
#[derive(Debug)]
pub(super) struct Acknowledging<'a, O> {
    inner: &'a mut O,
    file: File,
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
        Ok(Self { inner, file })
    }
}

impl<O: Observer> Observer for Acknowledging<'_, O> {
    fn report(&mut self, events: &CampaignEvent<'_>) {
        if let CampaignEvent::Kept {
            experiment,
            records,
        } = events
        {
            // A failed write only loses a line of this file: the store has the message.
            let _ = self.file.write_all(lines(*experiment, records).as_bytes());
        }
        self.inner.report(events);
    }
}

fn lines(experiment: ExperimentId, records: &Records) -> String {
    let of_flows = records.messages.iter();
    let of_flows =
        of_flows.map(|message| format!("{experiment} {} {}\n", message.flow.0, message.seq));
    let of_fleet = records.fleet.iter().map(|message| {
        let (slot, port, seq) = (message.slot.0, message.source_port, message.seq);
        format!("{experiment} {slot}/{port} {seq}\n")
    });
    of_flows.chain(of_fleet).collect()
}
