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
mod offset {
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

const FLAG_COPY: u8 = 1;
const FLAG_EARLY: u8 = 2;
const FLAG_FLIPPED: u8 = 4;
const FLAG_PATH: u8 = 8;

impl Record {
    pub(crate) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let mut write_at = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        match self {
            Self::Anchor { wall, raw } => {
                write_at(0, &[KIND_ANCHOR]);
                write_at(8, &wall.to_le_bytes());
                write_at(16, &raw.to_le_bytes());
            }
            Self::Step {
                direction,
                number,
                event,
                at,
            } => {
                write_at(0, &[KIND_STEP, *direction, *event as u8]);
                write_at(4, &number.to_le_bytes());
                write_at(8, &at.to_le_bytes());
            }
            Self::Cue { at } => {
                write_at(0, &[KIND_CUE]);
                write_at(8, &at.to_le_bytes());
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
                write_at(0, &[KIND_PACKET, *direction, verdict, identity.protocol]);
                write_at(offset::LENGTH, &length.to_le_bytes());
                write_at(offset::ARRIVAL, &arrival.to_le_bytes());
                write_at(offset::DUE, &due.to_le_bytes());
                write_at(offset::LEFT, &left.to_le_bytes());
                write_at(offset::HASH, &identity.hash.to_le_bytes());
                write_at(offset::TCP_SEQ, &identity.tcp_seq.to_le_bytes());
                write_at(offset::IP_ID, &identity.ip_id.to_le_bytes());
                write_at(offset::SOURCE_PORT, &identity.source_port.to_le_bytes());
                write_at(
                    offset::DESTINATION_PORT,
                    &identity.destination_port.to_le_bytes(),
                );
                write_at(offset::PATH, &[handling.path.unwrap_or_default()]);
                write_at(offset::FLAGS, &[handling.flags()]);
                let flipped = handling.flipped.unwrap_or_default();
                write_at(offset::FLIPPED, &flipped.to_le_bytes());
            }
        }
        bytes
    }

    /// The record in `bytes`; `None` if its kind, direction or verdict is unknown.
    pub(crate) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let time = |offset| i64::from_le_bytes(read_array(bytes, offset));
        match bytes[0] {
            KIND_ANCHOR => Some(Self::Anchor {
                wall: time(8),
                raw: time(16),
            }),
            KIND_STEP if bytes[1] < 2 => Some(Self::Step {
                direction: bytes[1],
                event: *SCHEDULE_EVENTS.get(usize::from(bytes[2]))?,
                number: u16::from_le_bytes(read_array(bytes, 4)),
                at: time(8),
            }),
            KIND_CUE => Some(Self::Cue { at: time(8) }),
            KIND_PACKET if bytes[1] < 2 => Some(Self::Packet {
                passage: PacketPassage {
                    direction: bytes[1],
                    length: u32::from_le_bytes(read_array(bytes, offset::LENGTH)),
                    arrival: time(offset::ARRIVAL),
                    identity: identity(bytes),
                },
                handling: PacketHandling::decode(bytes[offset::FLAGS], bytes),
                verdict: *Verdict::ALL.get(usize::from(bytes[2]))?,
                due: time(offset::DUE),
                left: time(offset::LEFT),
            }),
            _ => None,
        }
    }
}

fn identity(bytes: &[u8; RECORD_BYTES]) -> Identity {
    let read_u16 = |offset| u16::from_le_bytes(read_array(bytes, offset));
    Identity {
        protocol: bytes[3],
        hash: u64::from_le_bytes(read_array(bytes, offset::HASH)),
        tcp_seq: u32::from_le_bytes(read_array(bytes, offset::TCP_SEQ)),
        ip_id: read_u16(offset::IP_ID),
        source_port: read_u16(offset::SOURCE_PORT),
        destination_port: read_u16(offset::DESTINATION_PORT),
    }
}

fn read_array<const N: usize>(bytes: &[u8; RECORD_BYTES], offset: usize) -> [u8; N] {
    bytes[offset..offset + N]
        .try_into()
        .expect("N bytes were sliced")
}

impl PacketHandling {
    fn flags(self) -> u8 {
        let flag_if = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag_if(self.path.is_some(), FLAG_PATH)
            | flag_if(self.is_copy, FLAG_COPY)
            | flag_if(self.is_early, FLAG_EARLY)
            | flag_if(self.flipped.is_some(), FLAG_FLIPPED)
    }

    fn decode(flags: u8, bytes: &[u8; RECORD_BYTES]) -> Self {
        let bit = u16::from_le_bytes(read_array(bytes, offset::FLIPPED));
        Self {
            path: (flags & FLAG_PATH != 0).then_some(bytes[offset::PATH]),
            flipped: (flags & FLAG_FLIPPED != 0).then_some(bit),
            is_copy: flags & FLAG_COPY != 0,
            is_early: flags & FLAG_EARLY != 0,
        }
    }
}
