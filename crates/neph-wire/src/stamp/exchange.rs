//! Whole STAMP packets, base and TLVs: a sender's request, a reflector's reply, and reading both.
//!
//! Owns the symmetric size (RFC 8762 section 4.3): a reply has the length of the request, so that a
//! reflector does not amplify. Owns the answer to each TLV (RFC 8972 section 4). Does not own
//! clocks, packet counters or sockets.

use super::StampError;
use super::key::{Auth, Key, TAG};
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
pub struct Answer {
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
    pub marks: PeerMarks,
    /// Sent if the request has room for it.
    pub follow_up: Option<FollowUp>,
}

/// A reflector's packet at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The base packet.
    pub packet: ReflectorPacket,
    /// The marks of a neph reflector; `None` from any other.
    pub marks: Option<PeerMarks>,
    /// The actual send time of an earlier reply, if the reflector sends it.
    pub follow_up: Option<FollowUp>,
}

/// Length of the TLV that requests the marks, bytes.
pub const MARKS_TLV: usize = tlv::HEADER + marks::LEN;

const TAG_TLV: usize = tlv::HEADER + TAG;

/// The size of a request of [`encode_request`] for a requested `size`, bytes.
///
/// It is at least the base packet. The marks, and their tag in authenticated mode, are requested if
/// they fit. Up to three bytes are added where the header of a padding TLV would not fit.
pub fn request_size(auth: Auth<'_>, size: usize) -> usize {
    let needed = asked_len(auth, size);
    match size.saturating_sub(needed) {
        0 => needed,
        1..tlv::HEADER => needed + tlv::HEADER,
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
    if asked_len(auth, size) > auth.base_len() {
        tlv::push(out, Type::Marks, &[0; marks::LEN])?;
        if let Auth::Keyed(key) = auth {
            let tag = tlv_tag(key, packet.seq, &out[start + auth.base_len()..]);
            tlv::push(out, Type::Hmac, &tag)?;
        }
    }
    let left = request_size(auth, size) - (out.len() - start);
    if let Some(padding) = left.checked_sub(tlv::HEADER) {
        let len = u16::try_from(padding).map_err(|_| StampError::TlvLength(padding))?;
        push_zeroed(out, Type::ExtraPadding, len);
    }
    Ok(())
}

/// Length of the base packet, and of the requesting TLVs if they fit into `size`.
fn asked_len(auth: Auth<'_>, size: usize) -> usize {
    let tag = if matches!(auth, Auth::Keyed(_)) {
        TAG_TLV
    } else {
        0
    };
    let with_marks = auth.base_len() + MARKS_TLV + tag;
    if size >= with_marks {
        with_marks
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
pub fn reflect(request: &Request<'_>, answer: &Answer, auth: Auth<'_>, out: &mut Vec<u8>) {
    ReflectorPacket {
        seq: answer.seq,
        timestamp: answer.timestamp,
        error: answer.error,
        ssid: request.packet.ssid,
        receive: answer.receive,
        sender_seq: request.packet.seq,
        sender_timestamp: request.packet.timestamp,
        sender_error: request.packet.error,
        sender_ttl: answer.sender_ttl,
    }
    .encode(auth, out);
    let first = out.len();
    let trusted = tlvs_hold(auth, request.packet.seq, request.tlvs);
    let mut walk = Tlvs::new(request.tlvs);
    while let Some(tlv) = walk.next() {
        let at = out.len();
        let consumed = request.tlvs.len() - walk.rest().len();
        out.extend_from_slice(&request.tlvs[at - first..consumed]);
        out[at] = reflected_flags(tlv, trusted);
        if out[at] == 0 {
            answer_tlv(tlv.code, answer, &mut out[at + tlv::HEADER..]);
        }
        if let (true, Auth::Keyed(key)) = (tlv.code == Type::Hmac.code() && out[at] == 0, auth) {
            let tag = tlv_tag(key, answer.seq, &out[first..at]);
            out[at + tlv::HEADER..].copy_from_slice(&tag);
        }
    }
    let cut_off = out.len();
    out.extend_from_slice(walk.rest());
    if let Some(flags) = out.get_mut(cut_off) {
        *flags = FLAG_M | if trusted { 0 } else { FLAG_I };
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
        marks: None,
        follow_up: None,
    };
    let tlvs = &bytes[auth.base_len()..];
    let answered = || Tlvs::new(tlvs).filter(|tlv| tlv.flags & (FLAG_U | FLAG_M | FLAG_I) == 0);
    let tlv_of =
        |of: Type| answered().find(|tlv| tlv.code == of.code() && of.fits(tlv.value.len()));
    let (marks, follow_up) = (tlv_of(Type::Marks), tlv_of(Type::FollowUp));
    if marks.is_none() && follow_up.is_none() {
        return Ok(reply);
    }
    if !tlvs_hold(auth, packet.seq, tlvs) {
        return Err(StampError::TlvTag);
    }
    reply.marks = marks.and_then(|tlv| PeerMarks::decode(tlv.value).ok());
    reply.follow_up = follow_up.and_then(|tlv| FollowUp::decode(tlv.value));
    Ok(reply)
}

fn reflected_flags(tlv: tlv::Tlv<'_>, trusted: bool) -> u8 {
    let integrity = if trusted { 0 } else { FLAG_I };
    integrity
        | match Type::from_code(tlv.code) {
            None => FLAG_U,
            Some(of) if !of.fits(tlv.value.len()) => FLAG_M,
            Some(_) => 0,
        }
}

fn answer_tlv(code: u8, answer: &Answer, value: &mut [u8]) {
    if code == Type::Marks.code() {
        value.copy_from_slice(&answer.marks.to_bytes());
    } else if let (true, Some(follow_up)) = (code == Type::FollowUp.code(), answer.follow_up) {
        value.copy_from_slice(&follow_up.to_bytes());
    }
}

/// The tag over the packet's number and the TLVs before the tag (RFC 8972 section 4.8).
fn tlv_tag(key: &Key, seq: u32, tlvs: &[u8]) -> [u8; TAG] {
    key.tag(&[&seq.to_be_bytes(), tlvs])
}

/// Whether the TLVs are authentic: always in open mode, else by their tag, after which only padding
/// may follow.
fn tlvs_hold(auth: Auth<'_>, seq: u32, tlvs: &[u8]) -> bool {
    let Auth::Keyed(key) = auth else { return true };
    let mut walk = Tlvs::new(tlvs);
    let mut before = 0;
    let mut is_valid = None;
    while let Some(tlv) = walk.next() {
        let is_tag = tlv.code == Type::Hmac.code();
        let is_padding = tlv.code == Type::ExtraPadding.code();
        if is_valid.is_some() && !is_padding {
            return false;
        }
        if is_tag {
            let parts = [&seq.to_be_bytes()[..], &tlvs[..before]];
            is_valid = Some(key.verify(&parts, tlv.value).is_ok());
        }
        before = tlvs.len() - walk.rest().len();
    }
    // Padding alone needs no tag: it has nothing to forge.
    is_valid.unwrap_or_else(|| Tlvs::new(tlvs).all(|tlv| tlv.code == Type::ExtraPadding.code()))
}
