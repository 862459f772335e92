//! The header fields of a segment that round trips need.

use std::num::NonZeroU16;

use neph_wire::dissect::Plain;
use neph_wire::ip::TcpHeader;
use neph_wire::ip::tcp_options;

use crate::sequence::Serial;

/// A segment's header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    pub(super) seq: Serial,
    /// The next byte that its sender expects; `None` without the ACK flag.
    pub(super) ack: Option<Serial>,
    /// Bytes of payload on the wire.
    pub(super) length: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    /// Value and echo of the timestamp option.
    pub(super) timestamps: Option<(Serial, Serial)>,
    /// The largest segment that its sender accepts; on SYNs.
    pub(super) max_segment_size: Option<NonZeroU16>,
    /// The first of the bytes that its sender received twice (D-SACK, RFC 2883), and their number, mostly 0.
    /// Small fields, because each packet's segment is moved.
    pub(super) duplicate_start: Serial,
    pub(super) duplicate_bytes: u16,
}

impl Segment {
    /// Whether it reports that some of the bytes `from` up to `to` arrived twice.
    pub(super) fn reports(&self, from: Serial, to: Serial) -> bool {
        let last = self.duplicate_start.plus(self.duplicate_bytes.into());
        self.duplicate_bytes > 0 && last.is_after(from) && to.is_after(self.duplicate_start)
    }

    /// The same segment, with a report of this many duplicate bytes.
    #[cfg(test)]
    pub(super) const fn reporting(self, from: u32, length: u16) -> Self {
        Self {
            duplicate_start: Serial(from),
            duplicate_bytes: length,
            ..self
        }
    }

    /// A segment with only sequence number, length and acknowledgement.
    #[cfg(test)]
    pub(super) const fn of_numbers(seq: u32, length: u32, ack: u32) -> Self {
        Self {
            seq: Serial(seq),
            ack: Some(Serial(ack)),
            length,
            flags: TcpHeader::ACK,
            window: 500,
            timestamps: None,
            max_segment_size: None,
            duplicate_start: Serial(0),
            duplicate_bytes: 0,
        }
    }

    /// From a header, with `payload_len` bytes on the wire.
    #[inline]
    pub fn of(header: &TcpHeader<'_>, payload_len: u32) -> Self {
        let options = tcp_options(header.options);
        let serials = |(a, b)| (Serial(a), Serial(b));
        let (from, to) = options.duplicate(header.ack).unwrap_or_default();
        Self {
            seq: Serial(header.seq),
            ack: (header.flags & TcpHeader::ACK != 0).then_some(Serial(header.ack)),
            length: payload_len,
            flags: header.flags,
            window: header.window,
            timestamps: options.timestamps.map(serials),
            max_segment_size: options.largest_segment.and_then(NonZeroU16::new),
            duplicate_start: Serial(from),
            duplicate_bytes: u16::try_from(to.wrapping_sub(from)).unwrap_or(u16::MAX),
        }
    }

    /// From the fast parser.
    #[inline]
    pub(crate) fn from_plain(plain: &Plain) -> Self {
        Self {
            seq: Serial(plain.seq),
            ack: (plain.flags & TcpHeader::ACK != 0).then_some(Serial(plain.ack)),
            length: plain.payload_len,
            flags: plain.flags,
            window: plain.window,
            timestamps: plain
                .stamps
                .map(|(value, echo)| (Serial(value), Serial(echo))),
            max_segment_size: None,
            duplicate_start: Serial(0),
            duplicate_bytes: 0,
        }
    }

    pub(super) const fn is_syn(&self) -> bool {
        self.flags & TcpHeader::SYN != 0
    }

    /// A SYN without ACK.
    pub(crate) const fn is_syn_without_ack(&self) -> bool {
        self.is_syn() && self.ack.is_none()
    }

    /// A SYN with ACK.
    pub(crate) const fn is_syn_ack(&self) -> bool {
        self.is_syn() && self.ack.is_some()
    }

    /// Bytes of payload on the wire.
    pub(crate) const fn length(&self) -> u32 {
        self.length
    }

    pub(super) const fn is_fin(&self) -> bool {
        self.flags & TcpHeader::FIN != 0
    }

    pub(super) const fn is_reset(&self) -> bool {
        self.flags & TcpHeader::RST != 0
    }

    /// Neither opens nor ends a connection.
    pub(super) const fn is_ordinary(&self) -> bool {
        self.flags & (TcpHeader::SYN | TcpHeader::FIN | TcpHeader::RST) == 0
    }

    /// Sequence numbers that it takes: its bytes, and one each for SYN and FIN.
    pub(super) fn sequence_length(&self) -> u32 {
        self.length
            .saturating_add(u32::from(self.is_syn()))
            .saturating_add(u32::from(self.is_fin()))
    }

    /// The number after its last.
    pub(super) fn end(&self) -> Serial {
        self.seq.plus(self.sequence_length())
    }
}
