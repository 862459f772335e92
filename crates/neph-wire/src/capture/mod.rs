//! Capture files: pcap and pcapng, read record by record; pcap also written.
//!
//! Owns the two formats, their byte orders and their units of time. Does not own files, gzip or
//! what is inside of a packet (see `ip` and `dissect`). The reader holds no bytes: it is shown what is there and says
//! how much it has used or how much more it needs, so that it reads mapped files, pipes and
//! decompressors alike, in memory that does not grow with the file.

mod pcap;
mod pcapng;
mod write;

#[cfg(test)]
mod tests;

pub use write::{COOKED, CookedHeader, ETHERNET, RAW_IP, pcap_header, pcap_record};

use thiserror::Error;

use crate::dissect::Link;

/// The longest packet that is believed: what libpcap and Wireshark allow.
pub const LONGEST: u32 = 262_144;
/// The longest pcapng block that is believed; all but names and secrets are far shorter.
const LONGEST_BLOCK: u32 = 16 << 20;
/// More interfaces in one section than any machine has.
const INTERFACES_MAX: usize = 65_536;

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970 by the capturing machine's clock; `None` where the format keeps no
    /// time (simple packet blocks).
    pub at: Option<i64>,
    /// How the bytes begin.
    pub link: Link,
    /// The interface's place in its section; 0 in pcap.
    pub interface: u32,
    /// What was kept of the packet.
    pub bytes: &'a [u8],
    /// Bytes that it had on the wire, link header included.
    pub length: u32,
}

/// What the reader made of the bytes it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A packet, and the bytes to leave behind with it.
    Packet(Record<'a>, usize),
    /// So many bytes held no packet: leave them behind.
    Skip(usize),
    /// Show at least so many bytes at once; fewer mean that the file ends here.
    Need(usize),
}

/// Why bytes are not a capture. The place in the file is the caller's to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// Neither format's first bytes.
    #[error("neither pcap nor pcapng: it begins with {0:#010x}")]
    Magic(u32),
    /// A version that nobody has written since 1998, or not yet.
    #[error("{format} version {major}.{minor} is not known")]
    Version {
        /// Which of the two formats.
        format: &'static str,
        /// Of its header.
        major: u16,
        /// Of its header.
        minor: u16,
    },
    /// A length that cannot be.
    #[error("a {what} of {printed} bytes, where {limit} is the most")]
    Length {
        /// What has the length.
        what: &'static str,
        /// What the file says.
        printed: u32,
        /// What is believed.
        limit: u32,
    },
    /// The two lengths of a block differ, or its parts do not fit into it.
    #[error("a block (type {0:#x}) whose lengths contradict each other")]
    Block(u32),
    /// Ticks of a time stamp that are too short to be a time, as pcapng writes it.
    #[error(
        "an interface whose times are told in {base}^-{power} s (if_tsresol {0:#04x}), which is shorter than any that is \
         read",
        base = if .0 & 0x80 == 0 { 10 } else { 2 }, power = .0 & 0x7f
    )]
    Resolution(u8),
    /// A packet of an interface that was not described.
    #[error("a packet of interface {0}, which the file has not described")]
    Interface(u32),
}

/// What an interface of a capture is, as far as the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Source {
    link: Link,
    clock: Ticks,
}

/// How a file's time stamps become nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    /// In a second.
    per_second: u64,
    /// To be added, in seconds.
    offset: i64,
}

impl Ticks {
    const NANOS_IN_SECOND: u64 = 1_000_000_000;
    /// What pcapng means where it does not say.
    const MICROS: Self = Self {
        per_second: 1_000_000,
        offset: 0,
    };

    /// Since 1970; `None` where that is no time that there can be, as of a file whose times were moved
    /// to before 1970.
    #[inline]
    fn nanos(self, ticks: u64) -> Option<i64> {
        // Nearly all files have one of these, and dividing 128 bits takes its time.
        let each = match self.per_second {
            1_000_000_000 => 1,
            1_000_000 => 1_000,
            _ => return self.divided(ticks),
        };
        let nanos = i64::try_from(ticks)
            .ok()
            .and_then(|ticks| ticks.checked_mul(each));
        match nanos {
            Some(nanos) => nanos.checked_add(self.offset.checked_mul(1_000_000_000)?),
            None => self.divided(ticks),
        }
    }

    fn divided(self, ticks: u64) -> Option<i64> {
        let seconds = ticks / self.per_second;
        let rest = u128::from(ticks % self.per_second) * u128::from(Self::NANOS_IN_SECOND)
            / u128::from(self.per_second);
        let seconds = i64::try_from(seconds).ok()?.checked_add(self.offset)?;
        let nanos = seconds.checked_mul(1_000_000_000)?;
        nanos.checked_add(i64::try_from(rest).ok()?)
    }
}

/// The order of a file's bytes.
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

    /// Numbers that follow each other.
    #[inline]
    fn four(self, bytes: &[u8; 16]) -> [u32; 4] {
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
    /// Before the file's first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets that the capturing program said it had lost; `None` where it said nothing.
    pub const fn dropped(&self) -> Option<u64> {
        self.dropped
    }

    /// What stands at the start of `bytes`, which begin where the last step ended.
    ///
    /// # Errors
    /// When it is no capture, or contradicts itself. What was read before stays true.
    #[inline]
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.step(bytes),
            Format::Pcapng(section) => section.step(bytes, &mut self.dropped),
            Format::Unknown => self.begin(bytes),
        }
    }

    /// Tells the two formats apart.
    fn begin<'a>(&mut self, bytes: &[u8]) -> Result<Step<'a>, CaptureError> {
        let Some(magic) = Order::Big.u32(bytes, 0) else {
            return Ok(Step::Need(4));
        };
        if magic == pcapng::SECTION {
            self.format = Format::Pcapng(pcapng::Section::default());
            return Ok(Step::Skip(0));
        }
        // Before its whole header is asked for: a short file is told what it is not.
        if !pcap::begins_with(magic) {
            return Err(CaptureError::Magic(magic));
        }
        let Some(header) = bytes.first_chunk() else {
            return Ok(Step::Need(pcap::HEADER));
        };
        self.format = Format::Pcap(pcap::Pcap::read(header)?);
        Ok(Step::Skip(pcap::HEADER))
    }
}
