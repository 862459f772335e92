//! Writes captured packets to a capture (`--write`), as they were on the wire.

use std::io;
use std::path::Path;

use neph_sys::ring::Packet;
use neph_wire::capture::{COOKED, CookedHeader, pcap_header, pcap_record};

use crate::capture_file::CaptureFile;
use crate::error::ListenError;
use neph_text::Existing;
use neph_text::counted::counted;

/// Offset of the VLAN tag in an Ethernet frame.
const TAG_AT: usize = 12;
/// Length of a VLAN tag.
const TAG: u32 = 4;

#[derive(Debug)]
pub struct Writing {
    file: CaptureFile,
    /// The link type of the pcap registry.
    link: u32,
}

impl Writing {
    /// Creates the file.
    pub fn begin(path: &Path, existing: Existing, (link, snaplen): (u32, u32)) -> io::Result<Self> {
        CaptureFile::begin(path, existing).map(|file| Self::with_header(file, link, snaplen))
    }

    /// Writes the header of the empty `file` at once.
    pub fn with_header(mut file: CaptureFile, link: u32, snaplen: u32) -> Self {
        // With room for a tag in addition to the captured bytes.
        file.add(&[&pcap_header(link, snaplen + TAG)]);
        file.flush();
        Self { file, link }
    }

    pub fn packet(&mut self, packet: &Packet<'_>) {
        match self.link {
            COOKED => self.add_cooked(packet),
            _ => self.add(packet),
        }
    }

    fn add(&mut self, packet: &Packet<'_>) {
        let bytes = packet.bytes();
        let captured_length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let (at, length) = (packet.stamp(), packet.wire_length());
        let tag = packet.tag().zip(bytes.split_at_checked(TAG_AT));
        match tag {
            None => self
                .file
                .packet(&[&pcap_record(at, captured_length, length), bytes]),
            // The kernel removed the tag; it was on the wire.
            Some((tag, (addresses, rest))) => self.file.packet(&[
                &pcap_record(at, captured_length + TAG, length + TAG),
                addresses,
                &tag.protocol.to_be_bytes(),
                &tag.control.to_be_bytes(),
                rest,
            ]),
        };
    }

    /// Adds a packet after a cooked header; inserts a tag that the kernel removed.
    fn add_cooked(&mut self, packet: &Packet<'_>) {
        let (tag, protocol) = (packet.tag(), packet.protocol());
        let cooked = CookedHeader {
            protocol: tag.map_or(protocol, |tag| tag.protocol),
            interface: packet.interface(),
            hardware: packet.hardware(),
            passage: packet.passage(),
        };
        let bytes = packet.bytes();
        let captured_length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let more = CookedHeader::LENGTH + tag.map_or(0, |_| TAG);
        let record = pcap_record(
            packet.stamp(),
            captured_length.saturating_add(more),
            packet.wire_length().saturating_add(more),
        );
        let cooked = cooked.bytes();
        match tag {
            None => self.file.packet(&[&record, &cooked, bytes]),
            Some(tag) => self.file.packet(&[
                &record,
                &cooked,
                &tag.control.to_be_bytes(),
                &protocol.to_be_bytes(),
                bytes,
            ]),
        };
    }

    /// Writes the buffer, for readers and in case of a crash.
    pub fn flush(&mut self) {
        self.file.flush();
    }

    /// Size of the file, bytes.
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Whether a write failed.
    pub const fn is_refused(&self) -> bool {
        self.file.is_refused()
    }

    /// Packets of the file.
    pub const fn packets(&self) -> u64 {
        self.file.packets()
    }

    /// Writes the buffer and closes the file; returns the first write error.
    pub fn close(self) -> io::Result<()> {
        self.file.close()
    }

    /// Writes the buffer and closes the file; returns a summary.
    pub fn finish(self) -> Result<String, ListenError> {
        let packets = counted(self.packets(), "packet");
        let name = self.file.finish()?;
        Ok(format!("{packets} in {name}"))
    }
}
