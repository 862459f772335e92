//! The TLVs after a base packet (RFC 8972 section 4).
//!
//! Owns their layout and flags, and iteration within the packet's bounds. Does not own a
//! reflector's answers (see `exchange`).
//!
//! ```text
//! 0 flags (U 0x80, M 0x40, I 0x20)   1 type   2 length of the value, u16   4 value
//! ```

use super::StampError;
use crate::bytes::Reader;
use crate::marks;

/// Length of a TLV header, bytes.
pub const HEADER_LEN: usize = 4;

/// Unrecognised: the reflector does not know the type.
pub const FLAG_U: u8 = 0x80;
/// Malformed: the length does not match the type or the packet.
pub const FLAG_M: u8 = 0x40;
/// Integrity: the reflector found the tag of the TLVs missing or wrong.
pub const FLAG_I: u8 = 0x20;

/// Length of a Follow-Up Telemetry value, bytes.
pub(super) const FOLLOW_UP_LEN: usize = 16;

/// The supported types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 1: padding.
    ExtraPadding,
    /// 7: the actual send time of an earlier reply.
    FollowUp,
    /// 8: a tag over the TLVs before it.
    Hmac,
    /// 252, private use: neph's [`marks::PeerMarks`].
    Marks,
}

/// The actual send time of an earlier reply (RFC 8972 section 4.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowUp {
    /// The reflector's number of that reply.
    pub seq: u32,
    /// When it was sent, in the reflector's format.
    pub timestamp: super::Timestamp,
    /// The source of the time: 1 hardware, 2 software local (here: the kernel), 3 control plane.
    pub method: u8,
}

/// A TLV of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// [`FLAG_U`], [`FLAG_M`], [`FLAG_I`].
    pub flags: u8,
    /// The type number.
    pub code: u8,
    /// The value.
    pub value: &'a [u8],
}

/// Iterates over the TLVs of a packet; ends at the first that is cut off.
#[derive(Debug, Clone)]
pub struct Tlvs<'a>(Reader<'a>);

impl Type {
    /// The type number on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::ExtraPadding => 1,
            Self::FollowUp => 7,
            Self::Hmac => 8,
            Self::Marks => 252,
        }
    }

    /// The type with this number, if it is supported.
    pub fn from_code(code: u8) -> Option<Self> {
        let types = [Self::ExtraPadding, Self::FollowUp, Self::Hmac, Self::Marks];
        types.into_iter().find(|tlv_type| tlv_type.code() == code)
    }

    /// Whether this length is valid for this type.
    pub(super) fn is_valid_len(self, len: usize) -> bool {
        match self {
            Self::ExtraPadding => true,
            Self::FollowUp => len == FOLLOW_UP_LEN,
            Self::Hmac => len == super::key::TAG_LEN,
            Self::Marks => len == marks::LEN,
        }
    }
}

impl<'a> Tlvs<'a> {
    /// Iterates over the bytes after the base packet.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    /// The remaining bytes: none at the end, else a TLV that is cut off.
    pub fn remaining(&self) -> &'a [u8] {
        self.0.remaining()
    }

    fn read(reader: &mut Reader<'a>) -> Option<Tlv<'a>> {
        let (flags, code, len) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let value = reader.slice(usize::from(len))?;
        Some(Tlv { flags, code, value })
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Tlv<'a>;

    fn next(&mut self) -> Option<Tlv<'a>> {
        let mut lookahead = self.0;
        let tlv = Self::read(&mut lookahead)?;
        self.0 = lookahead;
        Some(tlv)
    }
}

/// Appends a TLV with the flags of a sender, U and M set (RFC 8972 section 4).
///
/// # Errors
/// [`StampError::TlvLength`] when the value has more than 65535 bytes.
pub fn push(out: &mut Vec<u8>, tlv_type: Type, value: &[u8]) -> Result<(), StampError> {
    let len = u16::try_from(value.len()).map_err(|_| StampError::TlvLength(value.len()))?;
    put_header(out, tlv_type, len);
    out.extend_from_slice(value);
    Ok(())
}

/// Appends a TLV with `len` zeroes: space for a reflector's answer, or padding.
pub(super) fn push_zeroed(out: &mut Vec<u8>, tlv_type: Type, len: u16) {
    put_header(out, tlv_type, len);
    out.resize(out.len() + usize::from(len), 0);
}

fn put_header(out: &mut Vec<u8>, tlv_type: Type, len: u16) {
    let [high, low] = len.to_be_bytes();
    out.extend_from_slice(&[FLAG_U | FLAG_M, tlv_type.code(), high, low]);
}

impl FollowUp {
    pub(super) fn to_bytes(self) -> [u8; FOLLOW_UP_LEN] {
        let mut bytes = [0; FOLLOW_UP_LEN];
        bytes[..4].copy_from_slice(&self.seq.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.timestamp.0.to_be_bytes());
        bytes[12] = self.method;
        bytes
    }

    /// `None` when the reflector sent no time (all zero).
    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let (seq, timestamp) = (reader.u32()?, super::Timestamp(reader.u64()?));
        let method = reader.u8()?;
        (timestamp.0 != 0).then_some(Self {
            seq,
            timestamp,
            method,
        })
    }
}
