//! Several captures of one point as one, by time: TAPs write a file for each direction.
//!
//! Owns the order of their packets and the numbers of their interfaces. Does not own files. Memory is that
//! of the longest record of each.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;

use foldhash::quality::RandomState;
use neph_wire::capture::Record;
use neph_wire::dissect::Link;

use crate::stream::{Ending, ReadSummary, Records};

/// Hands out each packet of several captures, the earliest first, until `on_record` stops. What has no time
/// comes before what has one; at one time the earlier of the captures comes first. Each interface of each
/// capture has a number of its own.
///
/// `on_end` is called with a capture's index and summary when it has ended, and may stop too.
pub fn read_merged<R: Read>(
    sources: Vec<R>,
    mut on_record: impl FnMut(Record<'_>) -> ControlFlow<()>,
    mut on_end: impl FnMut(usize, ReadSummary) -> ControlFlow<()>,
) -> ReadSummary {
    let mut merged = MergedCaptures::new(sources);
    let ending = match merged.read(&mut on_record, &mut on_end) {
        ControlFlow::Continue(()) => Ending::Whole,
        ControlFlow::Break(()) => Ending::Stopped,
    };
    merged.summary(ending)
}

/// A packet that was read and not yet handed out.
#[derive(Debug)]
struct BufferedPacket {
    at: Option<i64>,
    link: Link,
    interface: u32,
    length: u32,
}

/// A capture whose next packet was read.
#[derive(Debug)]
struct BufferedCapture<R> {
    records: Records<R>,
    next_packet: Option<BufferedPacket>,
    /// Bytes of the next packet.
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct MergedCaptures<R> {
    captures: Vec<BufferedCapture<R>>,
    /// The number of each interface, by capture and by the capture's own number.
    interfaces: HashMap<(usize, u32), u32, RandomState>,
    /// Packets that were handed out.
    packets: u64,
}

impl<R: Read> MergedCaptures<R> {
    fn new(sources: Vec<R>) -> Self {
        let capture = |source| BufferedCapture {
            records: Records::new(source),
            next_packet: None,
            bytes: Vec::new(),
        };
        Self {
            captures: sources.into_iter().map(capture).collect(),
            interfaces: HashMap::default(),
            packets: 0,
        }
    }

    fn read(
        &mut self,
        on_record: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
        on_end: &mut impl FnMut(usize, ReadSummary) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for index in 0..self.captures.len() {
            self.read_next_packet(index, on_end)?;
        }
        while let Some((index, packet)) = self.take_earliest() {
            let interface = self.interface_number(index, packet.interface);
            self.packets += 1;
            on_record(Record {
                at: packet.at,
                link: packet.link,
                interface,
                bytes: &self.captures[index].bytes,
                length: packet.length,
            })?;
            self.read_next_packet(index, on_end)?;
        }
        ControlFlow::Continue(())
    }

    /// Reads the next packet of one of them.
    fn read_next_packet(
        &mut self,
        index: usize,
        on_end: &mut impl FnMut(usize, ReadSummary) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let BufferedCapture {
            records,
            next_packet,
            bytes,
        } = &mut self.captures[index];
        let read = records.read_next(|record| {
            bytes.clear();
            bytes.extend_from_slice(record.bytes);
            BufferedPacket {
                at: record.at,
                link: record.link,
                interface: record.interface,
                length: record.length,
            }
        });
        match read {
            Ok(packet) => *next_packet = Some(packet),
            Err(ending) => return on_end(index, records.summary(ending)),
        }
        ControlFlow::Continue(())
    }

    /// Takes the packet that passed first.
    fn take_earliest(&mut self) -> Option<(usize, BufferedPacket)> {
        let captures = self.captures.iter().enumerate();
        let times =
            captures.filter_map(|(index, capture)| Some((capture.next_packet.as_ref()?.at, index)));
        let (_, index) = times.min()?;
        Some((index, self.captures[index].next_packet.take()?))
    }

    fn interface_number(&mut self, index: usize, interface: u32) -> u32 {
        let next = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        *self.interfaces.entry((index, interface)).or_insert(next)
    }

    /// Summary of all captures together.
    fn summary(&self, ending: Ending) -> ReadSummary {
        let summaries = self
            .captures
            .iter()
            .map(|capture| capture.records.summary(Ending::Stopped));
        summaries.fold(
            ReadSummary {
                packets: self.packets,
                bytes: 0,
                unparsed_bytes: 0,
                dropped: None,
                ending,
            },
            |summary, capture| ReadSummary {
                bytes: summary.bytes + capture.bytes,
                unparsed_bytes: summary.unparsed_bytes + capture.unparsed_bytes,
                dropped: match (summary.dropped, capture.dropped) {
                    (Some(sum), Some(part)) => Some(sum.saturating_add(part)),
                    (sum, part) => sum.or(part),
                },
                ..summary
            },
        )
    }
}

#[cfg(test)]
mod tests;
