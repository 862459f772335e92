//! pcap (draft-ietf-opsawg-pcap): one header, then the packets of one interface.

use super::{CaptureError, MAX_FRAME_BYTES, Order, Record, Source, Step, Ticks};
use crate::dissect::Link;

/// Length of the file header in bytes.
pub(super) const HEADER_LEN: usize = 24;
/// Length of a record header in bytes.
const RECORD_HEADER_LEN: usize = 16;

const MICROS: u32 = 0xa1b2_c3d4;
pub(super) const NANOS: u32 = 0xa1b2_3c4d;

/// Whether a file with these first four bytes, read as big-endian, is pcap.
pub(super) const fn begins_with(magic: u32) -> bool {
    matches!(magic, MICROS | NANOS) || matches!(magic.swap_bytes(), MICROS | NANOS)
}

/// A file after its header.
#[derive(Debug)]
pub(super) struct Pcap {
    order: Order,
    source: Source,
}

impl Pcap {
    pub(super) fn read(header: &[u8; HEADER_LEN]) -> Result<Self, CaptureError> {
        let magic = [header[0], header[1], header[2], header[3]];
        let big_endian = u32::from_be_bytes(magic);
        let (order, per_second) = match (big_endian, u32::from_le_bytes(magic)) {
            (MICROS, _) => (Order::Big, 1_000_000),
            (NANOS, _) => (Order::Big, 1_000_000_000),
            (_, MICROS) => (Order::Little, 1_000_000),
            (_, NANOS) => (Order::Little, 1_000_000_000),
            _ => return Err(CaptureError::UnknownMagic(big_endian)),
        };
        let field = |at| order.u32(header, at).unwrap_or(0);
        let (major, minor) = (
            order.u16(header, 4).unwrap_or(0),
            order.u16(header, 6).unwrap_or(0),
        );
        if major != 2 {
            let format = "pcap";
            return Err(CaptureError::UnsupportedVersion {
                format,
                major,
                minor,
            });
        }
        // The correction to UTC, in seconds. No program has written it for decades.
        let offset = i64::from(field(8).cast_signed());
        Ok(Self {
            order,
            source: Source {
                // The upper bits describe a frame check sequence, which dissection never reaches.
                link: Link::numbered(field(20) & 0xffff),
                clock: Ticks { per_second, offset },
            },
        })
    }

    #[inline]
    pub(super) fn step<'a>(&self, bytes: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        let Some(before) = bytes.first_chunk::<RECORD_HEADER_LEN>() else {
            return Ok(Step::Need(RECORD_HEADER_LEN));
        };
        let [seconds, ticks, captured_length, length] = self.order.read_u32s(before);
        if captured_length > MAX_FRAME_BYTES {
            return Err(CaptureError::InvalidLength {
                object: "packet",
                length: captured_length,
                limit: MAX_FRAME_BYTES,
            });
        }
        let end = RECORD_HEADER_LEN + captured_length as usize;
        let Some(packet) = bytes.get(RECORD_HEADER_LEN..end) else {
            return Ok(Step::Need(end));
        };
        let clock = self.source.clock;
        let record = Record {
            at: clock.nanos(u64::from(seconds) * clock.per_second + u64::from(ticks)),
            link: self.source.link,
            interface: 0,
            bytes: packet,
            length: length.max(captured_length),
        };
        Ok(Step::Packet(record, end))
    }
}
