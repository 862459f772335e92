//! The capture that is written beside (`--write`): what was looked at, as the wire had it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use neph_sys::ring::Packet;
use neph_wire::capture::{COOKED, CookedHeader, pcap_header, pcap_record};

use crate::counted::counted;
use crate::exit::Failure;

/// Where the tag stands in an Ethernet frame.
const TAG_AT: usize = 12;
/// Its bytes.
const TAG: u32 = 4;

pub(super) struct Writing {
    path: PathBuf,
    file: BufWriter<File>,
    /// What packets begin with in it: a number of the pcap registry.
    link: u32,
    packets: u64,
    /// The first refusal: nothing is written after it.
    refused: Option<io::Error>,
}

impl Writing {
    /// Begins the file; one that is there is written over.
    pub(super) fn begin(path: &Path, link: u32, kept: u32) -> Result<Self, Failure> {
        let begun = File::create(path).and_then(|file| {
            let mut file = BufWriter::with_capacity(1 << 20, file);
            file.write_all(&pcap_header(link, kept + TAG))?;
            Ok(file)
        });
        let path = path.to_owned();
        match begun {
            Ok(file) => Ok(Self {
                path,
                file,
                link,
                packets: 0,
                refused: None,
            }),
            Err(error) => {
                let path = path.display();
                let sentence = format!("write {path}: {error}; --write names another file");
                Err(Failure::usage(sentence))
            }
        }
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        if self.refused.is_some() {
            return;
        }
        match self.write(packet) {
            Ok(()) => self.packets += 1,
            Err(error) => self.refused = Some(error),
        }
    }

    fn write(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        if self.link == COOKED {
            return self.write_cooked(packet);
        }
        let bytes = packet.bytes();
        let kept = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let (at, length) = (packet.stamp(), packet.wire_length());
        let tag = packet.tag().zip(bytes.split_at_checked(TAG_AT));
        let Some((tag, (addresses, rest))) = tag else {
            self.file.write_all(&pcap_record(at, kept, length))?;
            return self.file.write_all(bytes);
        };
        // The kernel took the tag out; on the wire it was there.
        self.file
            .write_all(&pcap_record(at, kept + TAG, length + TAG))?;
        self.file.write_all(addresses)?;
        self.file.write_all(&tag.protocol.to_be_bytes())?;
        self.file.write_all(&tag.control.to_be_bytes())?;
        self.file.write_all(rest)
    }

    /// Behind what tells of the interface; a tag that the kernel took out comes between.
    fn write_cooked(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let (tag, protocol) = (packet.tag(), packet.protocol());
        let cooked = CookedHeader {
            protocol: tag.map_or(protocol, |tag| tag.protocol),
            interface: packet.interface(),
            hardware: packet.hardware(),
            passage: packet.passage(),
        };
        let bytes = packet.bytes();
        let kept = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let more = CookedHeader::LENGTH + if tag.is_some() { 4 } else { 0 };
        let record = pcap_record(
            packet.stamp(),
            kept.saturating_add(more),
            packet.wire_length().saturating_add(more),
        );
        self.file.write_all(&record)?;
        self.file.write_all(&cooked.bytes())?;
        if let Some(tag) = tag {
            self.file.write_all(&tag.control.to_be_bytes())?;
            self.file.write_all(&protocol.to_be_bytes())?;
        }
        self.file.write_all(bytes)
    }

    /// What was written so far is in the file: whoever reads it now, or after a crash, has it.
    pub(super) fn flush(&mut self) {
        if self.refused.is_none() {
            self.refused = self.file.flush().err();
        }
    }

    /// No more packets come; tells how many the file has.
    pub(super) fn finish(mut self) -> Result<Option<String>, Failure> {
        self.flush();
        let path = self.path.display();
        let packets = counted(self.packets, "packet");
        match self.refused {
            None => Ok(Some(format!("{packets} in {path}"))),
            Some(error) => Err(Failure::refused(format!(
                "write {path}: {error}; it has the first {packets} or nearly so"
            ))),
        }
    }
}
