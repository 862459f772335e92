//! What a link really did to each packet, as a file.
//!
//! Owns the record and its bytes. [`mod@write`] keeps the disk away from the engine, [`mod@read`] gives
//! the records back. All times are `CLOCK_REALTIME` nanoseconds, as the kernel stamps packets.
//!
//! The file: a header of 64 bytes (`NEPHTRU1`, record size as u32, one in how many packets as
//! u32, the link's name padded with zeros), then records of 56 bytes, all little-endian.

mod identity;
mod read;
mod write;

pub use identity::Identity;
pub use read::{TruthError, TruthFile};
pub(crate) use write::{Recorder, TruthWriter, start};

/// Bytes of the file's header.
pub(crate) const HEADER_BYTES: usize = 64;
/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 56;
/// The first bytes of the file; the digit is the version of the format.
pub(crate) const MAGIC: &[u8; 8] = b"NEPHTRU1";

const KIND_PACKET: u8 = 1;
const KIND_ANCHOR: u8 = 2;

/// What became of a packet on a link, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It left at the other end.
    Delivered,
    /// Lost at random, as the link was asked to.
    Lost,
    /// It found the queue full.
    QueueFull,
    /// Longer than a frame of 1514 bytes.
    TooLong,
    /// The engine had no room for it.
    Overflow,
    /// The kernel refused to send it.
    Refused,
}

impl Verdict {
    /// How many verdicts there are.
    pub(crate) const COUNT: usize = 6;
    const ALL: [Self; Self::COUNT] = [
        Self::Delivered,
        Self::Lost,
        Self::QueueFull,
        Self::TooLong,
        Self::Overflow,
        Self::Refused,
    ];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A packet on its way over a link: when it came, and what it can be recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// 0 for `a` to `b`, 1 for the way back.
    pub direction: u8,
    /// Bytes, Ethernet header included.
    pub length: u32,
    /// The kernel's stamp when it came; wall nanoseconds.
    pub arrival: i64,
    /// What it can be recognised by elsewhere.
    pub identity: Identity,
}

/// One line of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// What happened to a packet.
    Packet {
        /// Which one.
        passing: Passing,
        /// What became of it.
        verdict: Verdict,
        /// When it should have left; wall nanoseconds, 0 if never.
        due: i64,
        /// When it left: read right before it was handed to the kernel; 0 if never.
        left: i64,
    },
    /// One moment on both clocks, once a second.
    Anchor {
        /// `CLOCK_REALTIME` nanoseconds.
        wall: i64,
        /// `CLOCK_MONOTONIC_RAW` nanoseconds.
        raw: i64,
    },
}

impl Record {
    pub(crate) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        match self {
            Self::Anchor { wall, raw } => {
                put(0, &[KIND_ANCHOR]);
                put(8, &wall.to_le_bytes());
                put(16, &raw.to_le_bytes());
            }
            Self::Packet {
                passing,
                verdict,
                due,
                left,
            } => {
                let verdict = u8::try_from(verdict.index()).expect("six verdicts");
                put(
                    0,
                    &[
                        KIND_PACKET,
                        passing.direction,
                        verdict,
                        passing.identity.protocol,
                    ],
                );
                put(4, &passing.length.to_le_bytes());
                put(8, &passing.arrival.to_le_bytes());
                put(16, &due.to_le_bytes());
                put(24, &left.to_le_bytes());
                put(32, &passing.identity.hash.to_le_bytes());
                put(40, &passing.identity.tcp_seq.to_le_bytes());
                put(44, &passing.identity.ip_id.to_le_bytes());
                put(46, &passing.identity.source_port.to_le_bytes());
                put(48, &passing.identity.destination_port.to_le_bytes());
            }
        }
        bytes
    }

    /// The record in `bytes`; none when its kind, direction or verdict is not known.
    pub(crate) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        fn take<const N: usize>(bytes: &[u8; RECORD_BYTES], at: usize) -> [u8; N] {
            bytes[at..at + N].try_into().expect("N bytes were sliced")
        }
        let time = |at| i64::from_le_bytes(take(bytes, at));
        match bytes[0] {
            KIND_ANCHOR => Some(Self::Anchor {
                wall: time(8),
                raw: time(16),
            }),
            KIND_PACKET if bytes[1] < 2 => {
                let identity = Identity {
                    protocol: bytes[3],
                    hash: u64::from_le_bytes(take(bytes, 32)),
                    tcp_seq: u32::from_le_bytes(take(bytes, 40)),
                    ip_id: u16::from_le_bytes(take(bytes, 44)),
                    source_port: u16::from_le_bytes(take(bytes, 46)),
                    destination_port: u16::from_le_bytes(take(bytes, 48)),
                };
                let length = u32::from_le_bytes(take(bytes, 4));
                let passing = Passing {
                    direction: bytes[1],
                    length,
                    arrival: time(8),
                    identity,
                };
                let verdict = *Verdict::ALL.get(usize::from(bytes[2]))?;
                Some(Self::Packet {
                    passing,
                    verdict,
                    due: time(16),
                    left: time(24),
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "truth/tests.rs"]
mod tests;
