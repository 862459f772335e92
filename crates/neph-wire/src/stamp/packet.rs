//! The base packets of a Session-Sender and a Session-Reflector (RFC 8762 sections 4.2 and 4.3,
//! with the session identifier of RFC 8972 section 3).
//!
//! Owns their layout in both modes and the base packet's tag. Does not own the TLVs after it.

use super::StampError;
use super::key::{Auth, TAG_LEN};
use super::timestamp::{ErrorEstimate, Timestamp};
use crate::bytes::Reader;

/// Length of an unauthenticated base packet, of either side, bytes.
pub const OPEN_LEN: usize = 44;

/// Length of an authenticated base packet, of either side, bytes.
pub const KEYED_LEN: usize = 112;

/// Length of the tagged part of an authenticated packet.
const TAG_START: usize = KEYED_LEN - TAG_LEN;

/// A Session-Sender's packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderPacket {
    /// The packet's number in the session, from zero, wraps.
    pub seq: u32,
    /// When the packet was sent.
    pub timestamp: Timestamp,
    /// Error estimate and format of the timestamp.
    pub error: ErrorEstimate,
    /// The session identifier; 0 when not used.
    pub ssid: u16,
}

/// A Session-Reflector's packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReflectorPacket {
    /// The reflector's own counter (stateful), or the sender's number (stateless).
    pub seq: u32,
    /// When the reply was sent.
    pub timestamp: Timestamp,
    /// Error estimate and format of the reflector's timestamps.
    pub error: ErrorEstimate,
    /// The session identifier of the request.
    pub ssid: u16,
    /// When the request arrived.
    pub receive: Timestamp,
    /// The request's number.
    pub sender_seq: u32,
    /// The request's timestamp.
    pub sender_timestamp: Timestamp,
    /// The request's error estimate.
    pub sender_error: ErrorEstimate,
    /// TTL or hop limit with which the request arrived; 255 when it could not be read.
    pub sender_ttl: u8,
}

impl Auth<'_> {
    /// Length of a base packet in this mode, bytes.
    pub fn base_len(self) -> usize {
        match self {
            Self::Open => OPEN_LEN,
            Self::Keyed(_) => KEYED_LEN,
        }
    }
}

impl SenderPacket {
    /// Appends the base packet.
    pub fn encode(&self, auth: Auth<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.seq.to_be_bytes());
        gap(out, start, if keyed(auth) { 16 } else { 4 });
        put_clock(out, self.timestamp, self.error, self.ssid);
        seal(auth, out, start);
    }

    /// Reads the base packet from the start of `bytes`.
    ///
    /// # Errors
    /// When there are too few bytes, the tag is wrong, or the error estimate is not valid.
    pub fn decode(bytes: &[u8], auth: Auth<'_>) -> Result<Self, StampError> {
        let mut reader = open(bytes, auth)?;
        let short = StampError::Short(bytes.len());
        Self::read(&mut reader, auth).ok_or(short)?
    }

    /// Whether fields are set that a sender leaves zero (RFC 8762 section 4.2). In a reflector's
    /// packet they contain the receive time and a copy of the request's fields.
    pub(super) fn is_an_answer(base: &[u8], auth: Auth<'_>) -> bool {
        let (from, until) = if keyed(auth) {
            (32, TAG_START)
        } else {
            (16, OPEN_LEN)
        };
        let unused = base.get(from..until).unwrap_or_default();
        unused.iter().any(|byte| *byte != 0)
    }

    fn read(reader: &mut Reader<'_>, auth: Auth<'_>) -> Option<Result<Self, StampError>> {
        let seq = reader.u32()?;
        reader.skip(if keyed(auth) { 12 } else { 0 })?;
        let (timestamp, error, ssid) = (Timestamp(reader.u64()?), reader.u16()?, reader.u16()?);
        let packet = |error| Self {
            seq,
            timestamp,
            error,
            ssid,
        };
        Some(ErrorEstimate::from_wire(error).map(packet))
    }
}

impl ReflectorPacket {
    /// Appends the base packet.
    pub fn encode(&self, auth: Auth<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let keyed = keyed(auth);
        let to = |out: &mut Vec<u8>, at: usize| gap(out, start, if keyed { at } else { 0 });
        out.extend_from_slice(&self.seq.to_be_bytes());
        to(out, 16);
        put_clock(out, self.timestamp, self.error, self.ssid);
        to(out, 32);
        out.extend_from_slice(&self.receive.0.to_be_bytes());
        to(out, 48);
        out.extend_from_slice(&self.sender_seq.to_be_bytes());
        to(out, 64);
        put_clock(out, self.sender_timestamp, self.sender_error, 0);
        to(out, 80);
        out.push(self.sender_ttl);
        seal(auth, out, start);
    }

    /// Reads the base packet from the start of `bytes`.
    ///
    /// # Errors
    /// When there are too few bytes, the tag is wrong, or an error estimate is not valid.
    pub fn decode(bytes: &[u8], auth: Auth<'_>) -> Result<Self, StampError> {
        let mut reader = open(bytes, auth)?;
        let short = StampError::Short(bytes.len());
        Self::read(&mut reader, auth).ok_or(short)?
    }

    fn read(reader: &mut Reader<'_>, auth: Auth<'_>) -> Option<Result<Self, StampError>> {
        let keyed = keyed(auth);
        let skip = |reader: &mut Reader<'_>, len| reader.skip(if keyed { len } else { 0 });
        let seq = reader.u32()?;
        skip(reader, 12)?;
        let (timestamp, error, ssid) = (Timestamp(reader.u64()?), reader.u16()?, reader.u16()?);
        skip(reader, 4)?;
        let receive = Timestamp(reader.u64()?);
        skip(reader, 8)?;
        let sender_seq = reader.u32()?;
        skip(reader, 12)?;
        let sender_timestamp = Timestamp(reader.u64()?);
        let (sender_error, _must_be_zero) = (reader.u16()?, reader.u16()?);
        skip(reader, 4)?;
        let sender_ttl = reader.u8()?;
        let estimates = ErrorEstimate::from_wire(error)
            .and_then(|error| Ok((error, ErrorEstimate::from_wire(sender_error)?)));
        Some(estimates.map(|(error, sender_error)| Self {
            seq,
            timestamp,
            error,
            ssid,
            receive,
            sender_seq,
            sender_timestamp,
            sender_error,
            sender_ttl,
        }))
    }
}

fn keyed(auth: Auth<'_>) -> bool {
    matches!(auth, Auth::Keyed(_))
}

/// Appends zeroes up to `at` bytes from `start`.
fn gap(out: &mut Vec<u8>, start: usize, at: usize) {
    out.resize(out.len().max(start + at), 0);
}

fn put_clock(out: &mut Vec<u8>, timestamp: Timestamp, error: ErrorEstimate, word: u16) {
    out.extend_from_slice(&timestamp.0.to_be_bytes());
    out.extend_from_slice(&error.to_wire().to_be_bytes());
    out.extend_from_slice(&word.to_be_bytes());
}

/// Appends zeroes up to the packet's size, and the tag.
fn seal(auth: Auth<'_>, out: &mut Vec<u8>, start: usize) {
    match auth {
        Auth::Open => gap(out, start, OPEN_LEN),
        Auth::Keyed(key) => {
            gap(out, start, TAG_START);
            let tag = key.tag(&[&out[start..]]);
            out.extend_from_slice(&tag);
        }
    }
}

/// Checks the length, then the tag, before anything else is read.
fn open<'a>(bytes: &'a [u8], auth: Auth<'_>) -> Result<Reader<'a>, StampError> {
    let base = bytes
        .get(..auth.base_len())
        .ok_or(StampError::Short(bytes.len()))?;
    if let Auth::Keyed(key) = auth {
        let (tagged_bytes, tag) = base.split_at(TAG_START);
        key.verify(&[tagged_bytes], tag)?;
    }
    Ok(Reader::new(base))
}
