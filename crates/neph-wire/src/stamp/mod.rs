//! STAMP: RFC 8762 (base packets, both modes) with the TLVs of RFC 8972 that neph uses.
//!
//! Owns the bytes, the timestamp formats, the tags, and the rule that a reply has the length of its
//! request. Does not own clocks, sockets, sequence counters or rate limits.

mod exchange;
mod key;
mod packet;
mod timestamp;
pub mod tlv;

pub use exchange::{
    Reply, ReplyFields, Request, TIMESTAMPS_TLV_LEN, decode_reply, decode_request, encode_request,
    reflect, request_size,
};
pub use key::{Auth, Key};
pub use packet::{KEYED_LEN, OPEN_LEN, ReflectorPacket, SenderPacket};
pub use timestamp::{ErrorEstimate, Format, Timestamp};
pub use tlv::FollowUp;

use thiserror::Error;

/// Why a packet is refused, or cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StampError {
    /// Fewer bytes than the base packet.
    #[error("read STAMP packet: {0} bytes is shorter than the base packet")]
    Short(usize),
    /// The tag does not match the packet and the key.
    #[error("read STAMP packet: authentication failed")]
    Tag,
    /// The tag of the TLVs is missing or wrong.
    #[error("read STAMP packet: authentication of its TLVs failed")]
    TlvTag,
    /// The multiplier of the error estimate is zero (RFC 8762 section 4.2.1).
    #[error("read STAMP packet: error estimate's multiplier is zero")]
    Multiplier,
    /// A reflector's packet in the place of a sender's.
    #[error("read STAMP request: it has the fields of an answer")]
    Answer,
    /// A PTP timestamp with 10^9 or more nanoseconds.
    #[error("read STAMP timestamp: {0} is no count of nanoseconds within a second")]
    Nanoseconds(i64),
    /// The format cannot represent this time.
    #[error("write STAMP timestamp: {0} ns since 1970 is outside of the format's range")]
    TimeRange(i64),
    /// The value of a TLV, or the packet, is too long.
    #[error("write STAMP packet: {0} bytes do not fit")]
    TlvLength(usize),
    /// An empty key.
    #[error("set STAMP key: the key is empty")]
    EmptyKey,
}

#[cfg(test)]
mod tests;
