//! Records what a link did to each packet, as a file.
//!
//! Owns the record and its bytes. [`mod@write`] decouples the engine from the disk, [`mod@read`] reads
//! records. All times are `CLOCK_REALTIME` nanoseconds, like the kernel timestamps of packets.
//!
//! The file has a header of 64 bytes and records of 56 bytes, all little-endian. The header: `NEPHTRU2`,
//! record size as u32, one in how many packets as u32, the link's name padded with zeros.

mod flows;
mod identity;
mod read;
mod record;
mod verdict;
mod write;

pub use flows::{FlowAccumulator, FlowKey, FlowTruth, PathSegment, evaluate_flows};
pub use identity::Identity;
pub use read::{TruthError, TruthFile};
pub use record::{PacketHandling, PacketPassage, Record};
pub use verdict::Verdict;
pub use write::TruthThread;
pub(crate) use write::{Recorder, TruthWriter};

/// Bytes of the file's header.
pub(crate) const HEADER_BYTES: usize = 64;
/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 56;
/// The first bytes of the file; the digit is the version of the format.
pub(crate) const MAGIC: &[u8; 8] = b"NEPHTRU2";

#[cfg(test)]
#[path = "truth/tests.rs"]
mod tests;
