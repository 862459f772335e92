//! Encodes and decodes a message: 58 bytes, little-endian. An absent value is zero and is marked by
//! a bit.

use neph_model::{
    FleetMessage, FleetOutcome, FleetReply, Instant, PeerReport, ReadBy, Slot, Span, SynAnswer,
};

use crate::bytes::Bytes;

pub(super) const RECORD_BYTES: usize = 58;

const OUTCOME: u8 = 0b11;
/// The outcome code of a reply to a SYN that was a RST.
const REFUSED: u8 = 3;
const READ_BY_PROGRAM: u8 = 1 << 2;
const AT_PEER: u8 = 1 << 3;
const PEER_COUNT: u8 = 1 << 4;
const PEER_TTL: u8 = 1 << 5;
const TTL: u8 = 1 << 6;
/// The reply was a SYN-ACK.
const ACCEPTED: u8 = 1 << 7;

pub(super) fn encode(message: &FleetMessage, out: &mut Vec<u8>) {
    let reply = message.reply();
    let peer = reply.and_then(|reply| reply.peer_report);
    let time = |span: Option<Span>| span.map_or(0, Span::nanos).to_le_bytes();
    out.push(bits(message));
    out.extend(message.slot.0.to_le_bytes());
    out.extend(message.source_port.to_le_bytes());
    out.extend(message.seq.to_le_bytes());
    out.extend(message.sent.nanos().to_le_bytes());
    out.extend(message.late.nanos().to_le_bytes());
    out.extend(time(reply.map(|reply| reply.round_trip)));
    out.extend(peer.map_or(0, |peer| peer.rx.nanos()).to_le_bytes());
    out.extend(time(peer.map(|peer| peer.residence)));
    out.extend(peer.and_then(|peer| peer.count).unwrap_or(0).to_le_bytes());
    out.push(peer.and_then(|peer| peer.ttl).unwrap_or(0));
    out.push(reply.and_then(|reply| reply.ttl).unwrap_or(0));
    out.push(reply.map_or(0, |reply| reply.copies));
}

fn bits(message: &FleetMessage) -> u8 {
    let reply = match &message.outcome {
        FleetOutcome::Reply(reply) => reply,
        FleetOutcome::Lost => return 1,
        FleetOutcome::Failed => return 2,
    };
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    bit(reply.read_by == ReadBy::Program, READ_BY_PROGRAM)
        | bit(reply.ttl.is_some(), TTL)
        | match reply.answer {
            None => 0,
            Some(SynAnswer::SynAck) => ACCEPTED,
            Some(SynAnswer::Rst) => REFUSED,
        }
        | reply.peer_report.map_or(0, |peer| {
            AT_PEER | bit(peer.count.is_some(), PEER_COUNT) | bit(peer.ttl.is_some(), PEER_TTL)
        })
}

/// `None` for bytes that are no message.
pub(super) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<FleetMessage> {
    let mut reader = Bytes(bytes);
    let flags = reader.u8()?;
    let slot = Slot(reader.u32()?);
    let source_port = reader.u16()?;
    let seq = reader.u32()?;
    let sent = Instant::from_nanos(reader.i64()?);
    let lateness = Span::from_nanos(reader.i64()?);
    let outcome = match flags & OUTCOME {
        0 | REFUSED => FleetOutcome::Reply(reply(flags, &mut reader)?),
        1 => FleetOutcome::Lost,
        2 => FleetOutcome::Failed,
        _ => return None,
    };
    Some(FleetMessage {
        slot,
        source_port,
        seq,
        sent,
        late: lateness,
        outcome,
    })
}

fn reply(flags: u8, reader: &mut Bytes<'_>) -> Option<FleetReply> {
    let has = |bit: u8| flags & bit != 0;
    let round_trip = Span::from_nanos(reader.i64()?);
    let rx = Instant::from_nanos(reader.i64()?);
    let residence = Span::from_nanos(reader.i64()?);
    let count = reader.u32()?;
    let [peer_ttl, ttl, copies] = reader.take()?;
    let peer = PeerReport {
        rx,
        residence,
        count: has(PEER_COUNT).then_some(count),
        ttl: has(PEER_TTL).then_some(peer_ttl),
    };
    let by_program = has(READ_BY_PROGRAM);
    Some(FleetReply {
        round_trip,
        read_by: if by_program {
            ReadBy::Program
        } else {
            ReadBy::Kernel
        },
        peer_report: has(AT_PEER).then_some(peer),
        ttl: has(TTL).then_some(ttl),
        copies,
        answer: if flags & OUTCOME == REFUSED {
            Some(SynAnswer::Rst)
        } else {
            has(ACCEPTED).then_some(SynAnswer::SynAck)
        },
    })
}
