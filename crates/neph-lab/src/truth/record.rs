//! One record of the truth file, and its 56 bytes.

use super::{Identity, RECORD_BYTES, Verdict};
use crate::gate::ScheduleEvent;

const KIND_PACKET: u8 = 1;
const KIND_ANCHOR: u8 = 2;
const KIND_STEP: u8 = 3;
const KIND_CUE: u8 = 4;

const SCHEDULE_EVENTS: [ScheduleEvent; 4] = [
    ScheduleEvent::Begins,
    ScheduleEvent::Ends,
    ScheduleEvent::Reshuffles,
    ScheduleEvent::Rebalances,
];

/// A packet on a link: its arrival and its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPassage {
    /// 0 for `a` to `b`, 1 for `b` to `a`.
    pub direction: u8,
    /// Bytes, Ethernet header included.
    pub length: u32,
    /// Kernel timestamp of its arrival; wall-clock nanoseconds.
    pub arrival: i64,
    /// Its identity in other captures, from its bytes on arrival, before the link changed any.
    pub identity: Identity,
}

/// What the link did to a packet other than delaying it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHandling {
    /// The index of its path; `None` if it was dropped before it had one.
    pub path: Option<u8>,
    /// The bit that was flipped, counted from the start of the frame (the highest of a byte comes first).
    pub flipped: Option<u16>,
    /// Whether it is the copy of a duplicated packet.
    pub is_copy: bool,
    /// Whether it skipped its delay, and so was reordered.
    pub is_early: bool,
}

/// One record of the truth file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// What happened to a packet.
    Packet {
        /// Its identity and arrival.
        passage: PacketPassage,
        /// What was done to it.
        handling: PacketHandling,
        /// Its outcome.
        verdict: Verdict,
        /// When it should have departed; wall-clock nanoseconds, 0 if never.
        due: i64,
        /// When it departed: read just before it was passed to the kernel; 0 if never.
        left: i64,
    },
    /// An entry of the link's schedule was applied.
    Step {
        /// 0 for `a` to `b`, 1 for `b` to `a`.
        direction: u8,
        /// The entry's index in the link's schedule.
        number: u16,
        /// Whether it begins or ends.
        event: ScheduleEvent,
        /// When; wall-clock nanoseconds.
        at: i64,
    },
    /// The schedule was restarted.
    Cue {
        /// When; wall-clock nanoseconds.
        at: i64,
    },
    /// One moment on both clocks, once a second.
    Anchor {
        /// `CLOCK_REALTIME` nanoseconds.
        wall: i64,
        /// `CLOCK_MONOTONIC_RAW` nanoseconds.
        raw: i64,
    },
}

/// The offset of each field of a packet in its record.
mod at {
    pub(super) const LENGTH: usize = 4;
    pub(super) const ARRIVAL: usize = 8;
    pub(super) const DUE: usize = 16;
    pub(super) const LEFT: usize = 24;
    pub(super) const HASH: usize = 32;
    pub(super) const TCP_SEQ: usize = 40;
    pub(super) const IP_ID: usize = 44;
    pub(super) const SOURCE_PORT: usize = 46;
    pub(super) const DESTINATION_PORT: usize = 48;
    pub(super) const PATH: usize = 50;
    pub(super) const FLAGS: usize = 51;
    pub(super) const FLIPPED: usize = 52;
}

const COPY: u8 = 1;
const EARLY: u8 = 2;
const FLIPPED: u8 = 4;
const ON_A_PATH: u8 = 8;

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
            Self::Step {
                direction,
                number,
                event,
                at,
            } => {
                put(0, &[KIND_STEP, *direction, *event as u8]);
                put(4, &number.to_le_bytes());
                put(8, &at.to_le_bytes());
            }
            Self::Cue { at } => {
                put(0, &[KIND_CUE]);
                put(8, &at.to_le_bytes());
            }
            Self::Packet {
                passage,
                handling,
                verdict,
                due,
                left,
            } => {
                let PacketPassage {
                    direction,
                    length,
                    arrival,
                    identity,
                } = passage;
                let verdict = u8::try_from(verdict.index()).expect("fewer than 256 verdicts");
                put(0, &[KIND_PACKET, *direction, verdict, identity.protocol]);
                put(at::LENGTH, &length.to_le_bytes());
                put(at::ARRIVAL, &arrival.to_le_bytes());
                put(at::DUE, &due.to_le_bytes());
                put(at::LEFT, &left.to_le_bytes());
                put(at::HASH, &identity.hash.to_le_bytes());
                put(at::TCP_SEQ, &identity.tcp_seq.to_le_bytes());
                put(at::IP_ID, &identity.ip_id.to_le_bytes());
                put(at::SOURCE_PORT, &identity.source_port.to_le_bytes());
                put(
                    at::DESTINATION_PORT,
                    &identity.destination_port.to_le_bytes(),
                );
                put(at::PATH, &[handling.path.unwrap_or_default()]);
                put(at::FLAGS, &[handling.flags()]);
                let flipped = handling.flipped.unwrap_or_default();
                put(at::FLIPPED, &flipped.to_le_bytes());
            }
        }
        bytes
    }

    /// The record in `bytes`; `None` if its kind, direction or verdict is unknown.
    pub(crate) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let time = |at| i64::from_le_bytes(take(bytes, at));
        match bytes[0] {
            KIND_ANCHOR => Some(Self::Anchor {
                wall: time(8),
                raw: time(16),
            }),
            KIND_STEP if bytes[1] < 2 => Some(Self::Step {
                direction: bytes[1],
                event: *SCHEDULE_EVENTS.get(usize::from(bytes[2]))?,
                number: u16::from_le_bytes(take(bytes, 4)),
                at: time(8),
            }),
            KIND_CUE => Some(Self::Cue { at: time(8) }),
            KIND_PACKET if bytes[1] < 2 => Some(Self::Packet {
                passage: PacketPassage {
                    direction: bytes[1],
                    length: u32::from_le_bytes(take(bytes, at::LENGTH)),
                    arrival: time(at::ARRIVAL),
                    identity: identity(bytes),
                },
                handling: PacketHandling::decode(bytes[at::FLAGS], bytes),
                verdict: *Verdict::ALL.get(usize::from(bytes[2]))?,
                due: time(at::DUE),
                left: time(at::LEFT),
            }),
            _ => None,
        }
    }
}

fn identity(bytes: &[u8; RECORD_BYTES]) -> Identity {
    let short = |at| u16::from_le_bytes(take(bytes, at));
    Identity {
        protocol: bytes[3],
        hash: u64::from_le_bytes(take(bytes, at::HASH)),
        tcp_seq: u32::from_le_bytes(take(bytes, at::TCP_SEQ)),
        ip_id: short(at::IP_ID),
        source_port: short(at::SOURCE_PORT),
        destination_port: short(at::DESTINATION_PORT),
    }
}

fn take<const N: usize>(bytes: &[u8; RECORD_BYTES], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("N bytes were sliced")
}

impl PacketHandling {
    fn flags(self) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(self.path.is_some(), ON_A_PATH)
            | flag(self.is_copy, COPY)
            | flag(self.is_early, EARLY)
            | flag(self.flipped.is_some(), FLIPPED)
    }

    fn decode(flags: u8, bytes: &[u8; RECORD_BYTES]) -> Self {
        let bit = u16::from_le_bytes(take(bytes, at::FLIPPED));
        Self {
            path: (flags & ON_A_PATH != 0).then_some(bytes[at::PATH]),
            flipped: (flags & FLIPPED != 0).then_some(bit),
            is_copy: flags & COPY != 0,
            is_early: flags & EARLY != 0,
        }
    }
}
