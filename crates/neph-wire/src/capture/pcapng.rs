//! pcapng (draft-ietf-opsawg-pcapng): sections of blocks, with several interfaces.
//!
//! Owns blocks with packets, interface descriptions and drop counts. Other blocks are skipped, as
//! the format requires.

use super::{
    CaptureError, MAX_BLOCK_BYTES, MAX_FRAME_BYTES, MAX_INTERFACES, Order, Record, Source, Step,
    Ticks,
};
use crate::dissect::Link;

/// A section's header, in either byte order.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Type and length before the body, length after it.
const FRAME: u32 = 12;

/// State of the section that is being read.
#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Source>,
}

impl Default for Section {
    fn default() -> Self {
        Self {
            order: Order::Little,
            interfaces: Vec::new(),
        }
    }
}

impl Section {
    pub(super) fn step<'a>(
        &mut self,
        bytes: &'a [u8],
        dropped: &mut Option<u64>,
    ) -> Result<Step<'a>, CaptureError> {
        let Some(mut kind) = self.order.u32(bytes, 0) else {
            return Ok(Step::Need(4));
        };
        if kind == SECTION {
            let Some(magic) = Order::Little.u32(bytes, 8) else {
                return Ok(Step::Need(12));
            };
            *self = Self::default();
            self.order = match magic {
                BYTE_ORDER => Order::Little,
                _ if magic.swap_bytes() == BYTE_ORDER => Order::Big,
                _ => return Err(CaptureError::UnknownMagic(magic)),
            };
            kind = SECTION;
        }
        let Some(length) = self.order.u32(bytes, 4) else {
            return Ok(Step::Need(8));
        };
        if !(FRAME..=MAX_BLOCK_BYTES).contains(&length) {
            return Err(CaptureError::InvalidLength {
                object: "block",
                length,
                limit: MAX_BLOCK_BYTES,
            });
        }
        // Some writers omit the padding; the length is that of the block in either case.
        let padded = length.next_multiple_of(4) as usize;
        let Some(block) = bytes.get(..padded) else {
            return Ok(Step::Need(padded));
        };
        if self.order.u32(block, padded - 4) != Some(length) {
            return Err(CaptureError::InvalidBlock(kind));
        }
        let body = &block[8..padded - 4];
        let broken = CaptureError::InvalidBlock(kind);
        let record = match kind {
            SECTION => {
                self.check_version(body)?;
                None
            }
            INTERFACE => {
                self.describe(body).ok_or(broken)??;
                None
            }
            STATISTICS => {
                self.count(body, dropped);
                None
            }
            ENHANCED_PACKET => Some(self.enhanced(body).ok_or(broken)??),
            OLD_PACKET => Some(self.obsolete_packet(body).ok_or(broken)??),
            SIMPLE_PACKET => Some(self.simple(body).ok_or(broken)??),
            _ => None,
        };
        Ok(record.map_or(Step::Skip(padded), |record| Step::Packet(record, padded)))
    }

    fn check_version(&self, body: &[u8]) -> Result<(), CaptureError> {
        let field = |at| self.order.u16(body, at).unwrap_or(0);
        match (field(4), field(6)) {
            (1, 0 | 2) => Ok(()),
            (major, minor) => Err(CaptureError::UnsupportedVersion {
                format: "pcapng",
                major,
                minor,
            }),
        }
    }

    fn describe(&mut self, body: &[u8]) -> Option<Result<(), CaptureError>> {
        let link = Link::numbered(u32::from(self.order.u16(body, 0)?));
        let mut clock = Ticks::MICROS;
        for (code, value) in self.options(body.get(8..)?) {
            match code {
                9 => {
                    let resolution = *value.first()?;
                    let Some(ticks) = ticks_per_second(resolution) else {
                        return Some(Err(CaptureError::UnsupportedResolution(resolution)));
                    };
                    clock.per_second = ticks;
                }
                14 => clock.offset = self.order.u64(value, 0)?.cast_signed(),
                _ => {}
            }
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return None;
        }
        self.interfaces.push(Source { link, clock });
        Some(Ok(()))
    }

    /// Adds up the packets that interfaces dropped. A second count of the same interface would be
    /// cumulative, but programs write one at the end.
    fn count(&self, body: &[u8], dropped: &mut Option<u64>) {
        for (code, value) in self.options(body.get(12..).unwrap_or_default()) {
            if code == 5
                && let Some(lost) = self.order.u64(value, 0)
            {
                *dropped = Some(dropped.unwrap_or(0).saturating_add(lost));
            }
        }
    }

    fn enhanced<'a>(&self, body: &'a [u8]) -> Option<Result<Record<'a>, CaptureError>> {
        let interface = self.order.u32(body, 0)?;
        self.stamped(interface, body)
    }

    fn obsolete_packet<'a>(&self, body: &'a [u8]) -> Option<Result<Record<'a>, CaptureError>> {
        let interface = u32::from(self.order.u16(body, 0)?);
        self.stamped(interface, body)
    }

    /// The two packet blocks with a time differ only in their first four bytes.
    fn stamped<'a>(
        &self,
        interface: u32,
        body: &'a [u8],
    ) -> Option<Result<Record<'a>, CaptureError>> {
        let field = |at| self.order.u32(body, at);
        let ticks = u64::from(field(4)?) << 32 | u64::from(field(8)?);
        let (captured_length, length) = (field(12)?, field(16)?);
        let source = match self.source(interface) {
            Ok(source) => source,
            Err(error) => return Some(Err(error)),
        };
        if captured_length > MAX_FRAME_BYTES {
            return Some(Err(too_long(captured_length)));
        }
        Some(Ok(Record {
            at: source.clock.nanos(ticks),
            link: source.link,
            interface,
            bytes: body.get(20..20 + captured_length as usize)?,
            length: length.max(captured_length),
        }))
    }

    fn simple<'a>(&self, body: &'a [u8]) -> Option<Result<Record<'a>, CaptureError>> {
        let length = self.order.u32(body, 0)?;
        let source = match self.source(0) {
            Ok(source) => source,
            Err(error) => return Some(Err(error)),
        };
        // Only the block's length gives the captured length, padding included.
        let bytes = body.get(4..)?;
        let captured_length = bytes.len().min(length as usize);
        if captured_length > MAX_FRAME_BYTES as usize {
            return Some(Err(too_long(length)));
        }
        Some(Ok(Record {
            at: None,
            link: source.link,
            interface: 0,
            bytes: bytes.get(..captured_length)?,
            length,
        }))
    }

    fn source(&self, interface: u32) -> Result<Source, CaptureError> {
        usize::try_from(interface)
            .ok()
            .and_then(|index| self.interfaces.get(index))
            .copied()
            .ok_or(CaptureError::UnknownInterface(interface))
    }

    /// Code and value of each option, up to the end or to the first broken option.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (code, length) = (order.u16(bytes, 0)?, order.u16(bytes, 2)?);
            if code == 0 {
                return None;
            }
            let value = bytes.get(4..4 + usize::from(length))?;
            let next = 4 + usize::from(length).next_multiple_of(4);
            bytes = bytes.get(next..).unwrap_or_default();
            Some((code, value))
        })
    }
}

fn too_long(length: u32) -> CaptureError {
    CaptureError::InvalidLength {
        object: "packet",
        length,
        limit: MAX_FRAME_BYTES,
    }
}

/// A power of ten, or of two if the highest bit is set; `None` beyond 64 bits.
fn ticks_per_second(resolution: u8) -> Option<u64> {
    let power = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 {
        10_u64.checked_pow(power)
    } else {
        1_u64.checked_shl(power)
    }
}
