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

/// Hands out each packet of several captures, the earliest first, until `take` breaks off. What has no time
/// comes before what has one; at one time the earlier of the captures comes first. Each interface of each
/// capture has a number of its own.
///
/// `ended` is called with a capture's place and summary when it has ended, and may break off too.
pub fn read_merged<R: Read>(
    sources: Vec<R>,
    mut take: impl FnMut(Record<'_>) -> ControlFlow<()>,
    mut ended: impl FnMut(usize, ReadSummary) -> ControlFlow<()>,
) -> ReadSummary {
    let mut merged = Merged::of(sources);
    let ending = match merged.read(&mut take, &mut ended) {
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

/// A capture of which one packet is ahead.
#[derive(Debug)]
struct Part<R> {
    records: Records<R>,
    ahead: Option<BufferedPacket>,
    /// Of the packet ahead.
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Merged<R> {
    parts: Vec<Part<R>>,
    /// The number of each: of which capture it is, and which of its own.
    interfaces: HashMap<(usize, u32), u32, RandomState>,
    /// Packets that were handed out.
    packets: u64,
}

impl<R: Read> Merged<R> {
    fn of(sources: Vec<R>) -> Self {
        let part = |source| Part {
            records: Records::of(source),
            ahead: None,
            bytes: Vec::new(),
        };
        Self {
            parts: sources.into_iter().map(part).collect(),
            interfaces: HashMap::default(),
            packets: 0,
        }
    }

    fn read(
        &mut self,
        take: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
        ended: &mut impl FnMut(usize, ReadSummary) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for index in 0..self.parts.len() {
            self.advance(index, ended)?;
        }
        while let Some((index, ahead)) = self.earliest() {
            let interface = self.number(index, ahead.interface);
            self.packets += 1;
            take(Record {
                at: ahead.at,
                link: ahead.link,
                interface,
                bytes: &self.parts[index].bytes,
                length: ahead.length,
            })?;
            self.advance(index, ended)?;
        }
        ControlFlow::Continue(())
    }

    /// Reads the next packet of one of them.
    fn advance(
        &mut self,
        index: usize,
        ended: &mut impl FnMut(usize, ReadSummary) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Part {
            records,
            ahead,
            bytes,
        } = &mut self.parts[index];
        let read = records.next(|record| {
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
            Ok(next) => *ahead = Some(next),
            Err(ending) => return ended(index, records.summary(ending)),
        }
        ControlFlow::Continue(())
    }

    /// Takes the packet that passed first.
    fn earliest(&mut self) -> Option<(usize, BufferedPacket)> {
        let aheads = self.parts.iter().enumerate();
        let times = aheads.filter_map(|(index, part)| Some((part.ahead.as_ref()?.at, index)));
        let (_, index) = times.min()?;
        Some((index, self.parts[index].ahead.take()?))
    }

    fn number(&mut self, index: usize, interface: u32) -> u32 {
        let next = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        *self.interfaces.entry((index, interface)).or_insert(next)
    }

    /// Of all of them together.
    fn summary(&self, ending: Ending) -> ReadSummary {
        let summaries = self
            .parts
            .iter()
            .map(|part| part.records.summary(Ending::Stopped));
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
