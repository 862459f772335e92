//! Capture files: reads pcap and pcapng record by record, writes pcap.
//!
//! Owns the two formats, their byte orders and their time units. Does not own files, gzip or the
//! contents of packets (see `ip` and `dissect`).
//! The reader has no buffer: the caller passes bytes, and the reader returns how many it used or
//! needs. So it reads mapped files, pipes and decompressors, in memory that does not grow with the
//! file.

mod pcap;
mod pcapng;
mod write;

#[cfg(test)]
mod tests;

pub use write::{COOKED, CookedHeader, ETHERNET, RAW_IP, pcap_header, pcap_record};

use thiserror::Error;

use crate::dissect::Link;

/// The longest packet that is accepted: the limit of libpcap and Wireshark.
pub const MAX_FRAME_BYTES: u32 = 262_144;
/// The longest pcapng block that is accepted; only name and secrets blocks come near it.
const MAX_BLOCK_BYTES: u32 = 16 << 20;
/// Maximum number of interfaces of a section; no host has as many.
const MAX_INTERFACES: usize = 65_536;

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970 by the capturing host's clock; `None` where the format has no time
    /// (simple packet blocks).
    pub at: Option<i64>,
    /// The link layer at the start of the bytes.
    pub link: Link,
    /// The index of the interface in its section; 0 in pcap.
    pub interface: u32,
    /// The captured bytes of the packet.
    pub bytes: &'a [u8],
    /// Length of the packet on the wire in bytes, link header included.
    pub length: u32,
}

/// Result of one reading step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A packet, and the number of bytes that it used.
    Packet(Record<'a>, usize),
    /// This many bytes contain no packet: skip them.
    Skip(usize),
    /// Pass at least this many bytes at once; if fewer are left, the file ends here.
    Need(usize),
}

/// Why bytes are not a capture. The caller adds the position in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The first bytes of neither format.
    #[error("neither pcap nor pcapng: it begins with {0:#010x}")]
    UnknownMagic(u32),
    /// A version that is outdated (since 1998) or not known yet.
    #[error("{format} version {major}.{minor} is not known")]
    UnsupportedVersion {
        /// Which of the two formats.
        format: &'static str,
        /// The major version.
        major: u16,
        /// The minor version.
        minor: u16,
    },
    /// A length above its limit.
    #[error("a {object} of {length} bytes, where {limit} is the most")]
    InvalidLength {
        /// The part of the file with this length.
        object: &'static str,
        /// The length in the file.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// The two lengths of a block differ, or its parts do not fit into it.
    #[error("a block (type {0:#x}) whose lengths contradict each other")]
    InvalidBlock(u32),
    /// A timestamp unit (`if_tsresol`) that is too short to be read.
    #[error(
        "an interface whose times are told in {base}^-{power} s (if_tsresol {0:#04x}), which is shorter than any that is \
         read",
        base = if .0 & 0x80 == 0 { 10 } else { 2 }, power = .0 & 0x7f
    )]
    UnsupportedResolution(u8),
    /// A packet of an interface without a description block.
    #[error("a packet of interface {0}, which the file has not described")]
    UnknownInterface(u32),
}

/// Link type and clock of an interface, as far as the file has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Source {
    link: Link,
    clock: Ticks,
}

/// Conversion of a file's timestamps to nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    /// Ticks per second.
    per_second: u64,
    /// Offset to add, seconds.
    offset: i64,
}

impl Ticks {
    const NANOS_IN_SECOND: u64 = 1_000_000_000;
    /// The default of pcapng.
    const MICROS: Self = Self {
        per_second: 1_000_000,
        offset: 0,
    };

    /// Nanoseconds since 1970. `None` where they do not fit, as in a file whose times were shifted
    /// to before 1970.
    #[inline]
    fn nanos(self, ticks: u64) -> Option<i64> {
        // Nearly all files have one of these units, and a 128-bit division is slow.
        let nanos_per_tick = match self.per_second {
            1_000_000_000 => 1,
            1_000_000 => 1_000,
            _ => return self.divided(ticks),
        };
        let nanos = i64::try_from(ticks)
            .ok()
            .and_then(|ticks| ticks.checked_mul(nanos_per_tick));
        match nanos {
            Some(nanos) => nanos.checked_add(self.offset.checked_mul(1_000_000_000)?),
            None => self.divided(ticks),
        }
    }

    fn divided(self, ticks: u64) -> Option<i64> {
        let seconds = ticks / self.per_second;
        let remainder = u128::from(ticks % self.per_second) * u128::from(Self::NANOS_IN_SECOND)
            / u128::from(self.per_second);
        let seconds = i64::try_from(seconds).ok()?.checked_add(self.offset)?;
        let nanos = seconds.checked_mul(1_000_000_000)?;
        nanos.checked_add(i64::try_from(remainder).ok()?)
    }
}

/// The byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Four consecutive numbers.
    #[inline]
    fn read_u32s(self, bytes: &[u8; 16]) -> [u32; 4] {
        let (fields, _) = bytes.as_chunks::<4>();
        let mut numbers = [0; 4];
        for (number, field) in numbers.iter_mut().zip(fields) {
            *number = match self {
                Self::Little => u32::from_le_bytes(*field),
                Self::Big => u32::from_be_bytes(*field),
            };
        }
        numbers
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk::<8>()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        })
    }
}

/// Reads a capture of either format.
#[derive(Debug, Default)]
pub struct CaptureReader {
    format: Format,
    dropped: Option<u64>,
}

#[derive(Debug, Default)]
enum Format {
    /// Nothing has been read yet.
    #[default]
    Unknown,
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Section),
}

impl CaptureReader {
    /// A reader at the start of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets that the capturing program reports as dropped; `None` where it reports no count.
    pub const fn dropped(&self) -> Option<u64> {
        self.dropped
    }

    /// Reads the record at the start of `bytes`, which begin where the last step ended.
    ///
    /// # Errors
    /// The bytes are no capture, or are inconsistent. Records that were read before remain valid.
    #[inline]
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.step(bytes),
            Format::Pcapng(section) => section.step(bytes, &mut self.dropped),
            Format::Unknown => self.begin(bytes),
        }
    }

    /// Detects the format from the first bytes.
    fn begin<'a>(&mut self, bytes: &[u8]) -> Result<Step<'a>, CaptureError> {
        let Some(magic) = Order::Big.u32(bytes, 0) else {
            return Ok(Step::Need(4));
        };
        if magic == pcapng::SECTION {
            self.format = Format::Pcapng(pcapng::Section::default());
            return Ok(Step::Skip(0));
        }
        // Before the whole header is needed, so that a short file of another kind gets the right
        // error.
        if !pcap::begins_with(magic) {
            return Err(CaptureError::UnknownMagic(magic));
        }
        let Some(header) = bytes.first_chunk() else {
            return Ok(Step::Need(pcap::HEADER_LEN));
        };
        self.format = Format::Pcap(pcap::Pcap::read(header)?);
        Ok(Step::Skip(pcap::HEADER_LEN))
    }
}
