//! Whole STAMP packets, base and TLVs: a sender's request, a reflector's reply, and reading both.
//!
//! Owns the symmetric size (RFC 8762 section 4.3): a reply has the length of the request, so that a
//! reflector does not amplify. Owns the answer to each TLV (RFC 8972 section 4). Does not own
//! clocks, packet counters or sockets.

use super::StampError;
use super::key::{Auth, Key, TAG_LEN};
use super::packet::{ReflectorPacket, SenderPacket};
use super::timestamp::{ErrorEstimate, Timestamp};
use super::tlv::{self, FLAG_I, FLAG_M, FLAG_U, FollowUp, Tlvs, Type, push_zeroed};
use crate::marks::{self, PeerMarks};

/// A sender's packet at the reflector.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The base packet.
    pub packet: SenderPacket,
    /// The bytes after the base packet, not parsed.
    pub tlvs: &'a [u8],
}

/// The reflector's data for a reply.
#[derive(Debug, Clone, Copy)]
pub struct ReplyFields {
    /// The reflector's own counter (stateful), or the request's number (stateless).
    pub seq: u32,
    /// When the request arrived.
    pub receive: Timestamp,
    /// The send time, read as late as possible.
    pub timestamp: Timestamp,
    /// Error estimate and format of both timestamps.
    pub error: ErrorEstimate,
    /// TTL or hop limit with which the request arrived; 255 when it could not be read.
    pub sender_ttl: u8,
    /// Sent if the request has room for it.
    pub timestamps: PeerMarks,
    /// Sent if the request has room for it.
    pub follow_up: Option<FollowUp>,
}

/// A reflector's packet at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The base packet.
    pub packet: ReflectorPacket,
    /// The marks of a neph reflector; `None` from any other.
    pub timestamps: Option<PeerMarks>,
    /// The actual send time of an earlier reply, if the reflector sends it.
    pub follow_up: Option<FollowUp>,
}

/// Length of the TLV that requests the marks, bytes.
pub const TIMESTAMPS_TLV_LEN: usize = tlv::HEADER_LEN + marks::LEN;

const HMAC_TLV_LEN: usize = tlv::HEADER_LEN + TAG_LEN;

/// The size of a request of [`encode_request`] for a requested `size`, bytes.
///
/// It is at least the base packet. The marks, and their tag in authenticated mode, are requested if
/// they fit. Up to three bytes are added where the header of a padding TLV would not fit.
pub fn request_size(auth: Auth<'_>, size: usize) -> usize {
    let needed = min_request_len(auth, size);
    match size.saturating_sub(needed) {
        0 => needed,
        1..tlv::HEADER_LEN => needed + tlv::HEADER_LEN,
        _ => size,
    }
}

/// Appends a request of [`request_size`] bytes with zeroed space for the marks.
///
/// # Errors
/// [`StampError::TlvLength`] when `size` exceeds one UDP datagram (65507 bytes).
pub fn encode_request(
    packet: &SenderPacket,
    auth: Auth<'_>,
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), StampError> {
    if size > 65_507 {
        return Err(StampError::TlvLength(size));
    }
    let start = out.len();
    packet.encode(auth, out);
    if min_request_len(auth, size) > auth.base_len() {
        tlv::push(out, Type::Marks, &[0; marks::LEN])?;
        if let Auth::Keyed(key) = auth {
            let tag = tlv_tag(key, packet.seq, &out[start + auth.base_len()..]);
            tlv::push(out, Type::Hmac, &tag)?;
        }
    }
    let remaining = request_size(auth, size) - (out.len() - start);
    if let Some(padding) = remaining.checked_sub(tlv::HEADER_LEN) {
        let len = u16::try_from(padding).map_err(|_| StampError::TlvLength(padding))?;
        push_zeroed(out, Type::ExtraPadding, len);
    }
    Ok(())
}

/// Length of the base packet, and of the requesting TLVs if they fit into `size`.
fn min_request_len(auth: Auth<'_>, size: usize) -> usize {
    let tag_tlv_len = if matches!(auth, Auth::Keyed(_)) {
        HMAC_TLV_LEN
    } else {
        0
    };
    let len_with_timestamps = auth.base_len() + TIMESTAMPS_TLV_LEN + tag_tlv_len;
    if size >= len_with_timestamps {
        len_with_timestamps
    } else {
        auth.base_len()
    }
}

/// Reads a request: the base packet, and its tag in authenticated mode.
///
/// # Errors
/// When the base packet is not valid, or is a reflector's: the reflector must not answer then. RFC
/// 8762 requires must-be-zero fields to be ignored; two reflectors that do so would answer each
/// other for ever.
pub fn decode_request<'a>(bytes: &'a [u8], auth: Auth<'_>) -> Result<Request<'a>, StampError> {
    let packet = SenderPacket::decode(bytes, auth)?;
    if SenderPacket::is_an_answer(bytes, auth) {
        return Err(StampError::Answer);
    }
    Ok(Request {
        packet,
        tlvs: &bytes[auth.base_len()..],
    })
}

/// Appends the reply to `request`, with the same length. Known TLVs are answered, others are
/// returned with their flags set.
pub fn reflect(request: &Request<'_>, fields: &ReplyFields, auth: Auth<'_>, out: &mut Vec<u8>) {
    ReflectorPacket {
        seq: fields.seq,
        timestamp: fields.timestamp,
        error: fields.error,
        ssid: request.packet.ssid,
        receive: fields.receive,
        sender_seq: request.packet.seq,
        sender_timestamp: request.packet.timestamp,
        sender_error: request.packet.error,
        sender_ttl: fields.sender_ttl,
    }
    .encode(auth, out);
    let base_end = out.len();
    let is_authentic = are_tlvs_authentic(auth, request.packet.seq, request.tlvs);
    let mut tlv_iter = Tlvs::new(request.tlvs);
    while let Some(tlv) = tlv_iter.next() {
        let tlv_start = out.len();
        let consumed = request.tlvs.len() - tlv_iter.remaining().len();
        out.extend_from_slice(&request.tlvs[tlv_start - base_end..consumed]);
        out[tlv_start] = reflected_flags(tlv, is_authentic);
        if out[tlv_start] == 0 {
            write_tlv_value(tlv.code, fields, &mut out[tlv_start + tlv::HEADER_LEN..]);
        }
        let is_valid_hmac = tlv.code == Type::Hmac.code() && out[tlv_start] == 0;
        if let (true, Auth::Keyed(key)) = (is_valid_hmac, auth) {
            let tag = tlv_tag(key, fields.seq, &out[base_end..tlv_start]);
            out[tlv_start + tlv::HEADER_LEN..].copy_from_slice(&tag);
        }
    }
    let malformed_start = out.len();
    out.extend_from_slice(tlv_iter.remaining());
    if let Some(flags) = out.get_mut(malformed_start) {
        *flags = FLAG_M | if is_authentic { 0 } else { FLAG_I };
    }
}

/// Reads a reply: the base packet, and the known TLVs that were answered.
///
/// # Errors
/// When the base packet is not valid, or in authenticated mode the TLVs are not.
pub fn decode_reply(bytes: &[u8], auth: Auth<'_>) -> Result<Reply, StampError> {
    let packet = ReflectorPacket::decode(bytes, auth)?;
    let mut reply = Reply {
        packet,
        timestamps: None,
        follow_up: None,
    };
    let tlvs = &bytes[auth.base_len()..];
    let accepted_tlvs =
        || Tlvs::new(tlvs).filter(|tlv| tlv.flags & (FLAG_U | FLAG_M | FLAG_I) == 0);
    let find_tlv = |tlv_type: Type| {
        accepted_tlvs()
            .find(|tlv| tlv.code == tlv_type.code() && tlv_type.is_valid_len(tlv.value.len()))
    };
    let (timestamps, follow_up) = (find_tlv(Type::Marks), find_tlv(Type::FollowUp));
    if timestamps.is_none() && follow_up.is_none() {
        return Ok(reply);
    }
    if !are_tlvs_authentic(auth, packet.seq, tlvs) {
        return Err(StampError::TlvTag);
    }
    reply.timestamps = timestamps.and_then(|tlv| PeerMarks::decode(tlv.value).ok());
    reply.follow_up = follow_up.and_then(|tlv| FollowUp::decode(tlv.value));
    Ok(reply)
}

fn reflected_flags(tlv: tlv::Tlv<'_>, is_authentic: bool) -> u8 {
    let integrity = if is_authentic { 0 } else { FLAG_I };
    integrity
        | match Type::from_code(tlv.code) {
            None => FLAG_U,
            Some(tlv_type) if !tlv_type.is_valid_len(tlv.value.len()) => FLAG_M,
            Some(_) => 0,
        }
}

fn write_tlv_value(code: u8, fields: &ReplyFields, value: &mut [u8]) {
    if code == Type::Marks.code() {
        value.copy_from_slice(&fields.timestamps.to_bytes());
    } else if let (true, Some(follow_up)) = (code == Type::FollowUp.code(), fields.follow_up) {
        value.copy_from_slice(&follow_up.to_bytes());
    }
}

/// The tag over the packet's number and the TLVs before the tag (RFC 8972 section 4.8).
fn tlv_tag(key: &Key, seq: u32, tlvs: &[u8]) -> [u8; TAG_LEN] {
    key.tag(&[&seq.to_be_bytes(), tlvs])
}

/// Whether the TLVs are authentic: always in open mode, else by their tag, after which only padding
/// may follow.
fn are_tlvs_authentic(auth: Auth<'_>, seq: u32, tlvs: &[u8]) -> bool {
    let Auth::Keyed(key) = auth else { return true };
    let mut tlv_iter = Tlvs::new(tlvs);
    let mut verified_len = 0;
    let mut is_valid = None;
    while let Some(tlv) = tlv_iter.next() {
        let is_tag = tlv.code == Type::Hmac.code();
        let is_padding = tlv.code == Type::ExtraPadding.code();
        if is_valid.is_some() && !is_padding {
            return false;
        }
        if is_tag {
            let parts = [&seq.to_be_bytes()[..], &tlvs[..verified_len]];
            is_valid = Some(key.verify(&parts, tlv.value).is_ok());
        }
        verified_len = tlvs.len() - tlv_iter.remaining().len();
    }
    // Padding alone needs no tag: it has nothing to forge.
    is_valid.unwrap_or_else(|| Tlvs::new(tlvs).all(|tlv| tlv.code == Type::ExtraPadding.code()))
}
