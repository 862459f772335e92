//! A capture as a stream of bytes: from a file, a pipe or a decompressor.
//!
//! Owns the window of bytes for the parser, and how a stream ended. Does not own files. Memory is that of the
//! longest record that was really read, not of one that a file announces.

use std::io::{self, Read};
use std::ops::ControlFlow;

use neph_wire::capture::{CaptureError, CaptureReader, Record, Step};

/// Bytes per read: they stay in the processor's cache until they are parsed.
const WINDOW_BYTES: usize = 256 << 10;

/// Result of reading a capture. Packets that were passed on before its end are valid in any case.
#[derive(Debug)]
pub struct ReadSummary {
    /// Packets that were passed on.
    pub packets: u64,
    /// Bytes of the capture that were parsed.
    pub bytes: u64,
    /// Bytes after them that are part of a record.
    pub unparsed_bytes: u64,
    /// Packets that the capturing program reported as dropped.
    pub dropped: Option<u64>,
    /// Why it ended.
    pub ending: Ending,
}

/// How a capture ended.
#[derive(Debug)]
pub enum Ending {
    /// After a whole record.
    Whole,
    /// Within a record.
    CutOff,
    /// Within the compressed data.
    CutOffCompressed,
    /// The compressed data is corrupt, or not supported.
    Undecodable(io::Error),
    /// It is no capture, or not from here on.
    Broken(CaptureError),
    /// A read failed.
    Failed(io::Error),
    /// The receiver of the packets stopped.
    Stopped,
}

/// Passes on each packet of a capture, in its order, until `on_record` stops.
pub fn read_capture(
    source: &mut impl Read,
    mut on_record: impl FnMut(Record<'_>) -> ControlFlow<()>,
) -> ReadSummary {
    let mut records = Records::new(source);
    loop {
        match records.read_next(&mut on_record) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return records.summary(Ending::Stopped),
            Err(ending) => return records.summary(ending),
        }
    }
}

/// A capture whose packets are read one by one.
#[derive(Debug)]
pub(crate) struct Records<R> {
    source: R,
    reader: CaptureReader,
    window: Window,
    packets: u64,
}

impl<R: Read> Records<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            reader: CaptureReader::new(),
            window: Window::default(),
            packets: 0,
        }
    }

    /// The result of `on_record` for the next packet, or why there is none.
    #[inline]
    pub(crate) fn read_next<T>(
        &mut self,
        on_record: impl FnOnce(Record<'_>) -> T,
    ) -> Result<T, Ending> {
        loop {
            match self.reader.step(self.window.bytes()) {
                Ok(Step::Packet(record, used)) => {
                    self.packets += 1;
                    let result = on_record(record);
                    self.window.consume(used);
                    return Ok(result);
                }
                Ok(Step::Skip(used)) => self.window.consume(used),
                Ok(Step::Need(needed)) => self.fill(needed)?,
                Err(error) => return Err(Ending::Broken(error)),
            }
        }
    }

    fn fill(&mut self, needed: usize) -> Result<(), Ending> {
        match self.window.fill(needed, &mut self.source) {
            Ok(FillResult::Enough) => Ok(()),
            Ok(FillResult::Ended) if self.window.bytes().is_empty() => Err(Ending::Whole),
            Ok(FillResult::Ended) => Err(Ending::CutOff),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => Ending::CutOffCompressed,
                io::ErrorKind::InvalidData => Ending::Undecodable(error),
                _ => Ending::Failed(error),
            }),
        }
    }

    /// The summary of what was read, with this ending.
    pub(crate) fn summary(&self, ending: Ending) -> ReadSummary {
        ReadSummary {
            packets: self.packets,
            bytes: self.window.consumed,
            unparsed_bytes: self.window.bytes().len() as u64,
            dropped: self.reader.dropped(),
            ending,
        }
    }
}

/// Bytes that were read and not yet consumed.
#[derive(Debug, Default)]
struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed since the stream began.
    consumed: u64,
}

/// Whether there are as many bytes as needed.
enum FillResult {
    Enough,
    /// The stream has no more.
    Ended,
}

impl Window {
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn consume(&mut self, used: usize) {
        self.start += used;
        self.consumed += used as u64;
    }

    /// Reads until there are `needed` bytes, which are moved to the front.
    fn fill(&mut self, needed: usize, source: &mut impl Read) -> io::Result<FillResult> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < needed {
            if self.end == self.buffer.len() {
                // At most twice the received bytes: a wrong length takes no memory.
                self.buffer.resize((self.end * 2).max(WINDOW_BYTES), 0);
            }
            match source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(FillResult::Ended),
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(FillResult::Enough)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// Packets of these lengths in a pcap file.
    fn pcap(lengths: &[u32]) -> Vec<u8> {
        let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
        for (second, length) in (0_u32..).zip(lengths) {
            for field in [second, 0, *length, *length] {
                file.extend(field.to_le_bytes());
            }
            file.resize(file.len() + *length as usize, 7);
        }
        file
    }

    /// Returns at most this many bytes per read.
    struct ChunkedReader<'a>(&'a [u8], usize);

    impl Read for ChunkedReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let limit = self.1.min(buffer.len());
            self.0.read(&mut buffer[..limit])
        }
    }

    fn read_lengths(source: &mut impl Read) -> (Vec<u32>, ReadSummary) {
        let mut lengths = Vec::new();
        let summary = read_capture(source, |record| {
            lengths.push(record.length);
            ControlFlow::Continue(())
        });
        (lengths, summary)
    }

    #[test]
    fn a_truncated_file_gives_its_complete_packets_and_the_position() {
        let file = pcap(&[60, 100, 1500]);
        let (packet_lengths, summary) = read_lengths(&mut Cursor::new(&file[..file.len() - 1]));
        assert_eq!(packet_lengths, [60, 100]);
        assert!(matches!(summary.ending, Ending::CutOff));
        assert_eq!(summary.bytes, 24 + 16 + 60 + 16 + 100);
    }

    #[test]
    fn files_that_are_not_captures_are_refused_at_their_first_byte() {
        let (packet_lengths, summary) = read_lengths(&mut Cursor::new(b"GIF89a, and more"));
        assert!(packet_lengths.is_empty());
        assert!(matches!(
            summary.ending,
            Ending::Broken(CaptureError::UnknownMagic(_))
        ));
        assert_eq!(summary.bytes, 0);
        let (_, empty) = read_lengths(&mut Cursor::new(b""));
        assert!(matches!(empty.ending, Ending::Whole));
    }

    #[test]
    fn a_wrong_record_length_allocates_no_memory() {
        let mut file = vec![
            0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0xff, 0, 0x4d, 0x3c, 0x2b, 0x1a,
        ];
        file.extend([1, 0, 0, 0]);
        let mut window = Window::default();
        let filled = window.fill(16_711_680, &mut &file[..]);
        assert!(matches!(filled, Ok(FillResult::Ended)));
        assert_eq!(window.buffer.len(), WINDOW_BYTES);
    }

    proptest! {
        #[test]
        fn reads_of_any_size_yield_the_same_packets(
            packets in prop::collection::vec(0_u32..3000, 0..20),
            chunk_size in 1_usize..2000,
        ) {
            let file = pcap(&packets);
            let (packet_lengths, summary) = read_lengths(&mut ChunkedReader(&file, chunk_size));
            prop_assert_eq!(packet_lengths, packets);
            prop_assert!(matches!(summary.ending, Ending::Whole));
            prop_assert_eq!(summary.bytes, file.len() as u64);
        }
    }
}
