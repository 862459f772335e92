//! Encodes records. Little-endian; an absent value takes no space, a bit mask marks present ones.

use neph_model::{Event, Message, Outcome, Sample, TcpState};

pub(super) const MESSAGE: u8 = 1;
pub(super) const EVENT: u8 = 2;
pub(super) const SAMPLE: u8 = 3;

/// The optional times of a message, in the order of their mask bits.
pub(super) const OPTIONAL_TIMES: usize = 14;
pub(super) const TCP_AT_SEND: u16 = 1 << 14;
pub(super) const TCP_AT_ACK: u16 = 1 << 15;

pub(super) const fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Reply => 0,
        Outcome::Lost => 1,
        Outcome::Failed => 2,
        Outcome::Error => 3,
    }
}

/// The reply was reordered.
pub(super) const REORDERED: u8 = 1;
/// An answer code follows. In older journals, bits 1 and 2 contain the answer to a SYN.
pub(super) const ANSWERED: u8 = 1 << 3;
/// The TCP states end with the DSACK counter, which journals of older versions do not have.
pub(super) const HAS_DSACKS: u8 = 1 << 7;

pub(super) fn message(message: &Message, out: &mut Vec<u8>) {
    let marks = &message.marks;
    let instant =
        |at: Option<neph_model::Instant<neph_model::Local>>| at.map(neph_model::Instant::nanos);
    let peer =
        |at: Option<neph_model::Instant<neph_model::Peer>>| at.map(neph_model::Instant::nanos);
    let times: [Option<i64>; OPTIONAL_TIMES] = [
        instant(marks.dialled),
        instant(marks.connected),
        instant(marks.opened),
        instant(marks.app_send),
        instant(marks.queued),
        instant(marks.nic_tx),
        instant(marks.acked),
        peer(marks.peer.rx),
        peer(marks.peer.app_rx),
        peer(marks.peer.app_tx),
        peer(marks.peer.nic_tx),
        instant(marks.nic_rx),
        instant(marks.app_recv),
        message.peer_wall_offset,
    ];
    out.push(MESSAGE);
    let mask_at = out.len();
    out.extend([0; 2]);
    out.extend(message.flow.0.to_le_bytes());
    out.extend(message.seq.0.to_le_bytes());
    out.push(outcome_code(message.outcome));
    let answered = if message.answer.is_some() {
        ANSWERED
    } else {
        0
    };
    out.push(u8::from(message.reordered) | answered | HAS_DSACKS);
    if let Some(answer) = message.answer {
        out.extend(answer.code().to_le_bytes());
    }
    out.extend(message.duplicates.to_le_bytes());
    out.extend(message.connection.to_le_bytes());
    out.extend(marks.intended.nanos().to_le_bytes());
    let mut mask = 0_u16;
    for (bit, time) in times.into_iter().enumerate() {
        if let Some(time) = time {
            mask |= 1 << bit;
            out.extend(time.to_le_bytes());
        }
    }
    for (bit, state) in [
        (TCP_AT_SEND, &message.tcp_at_send),
        (TCP_AT_ACK, &message.tcp_at_ack),
    ] {
        if let Some(state) = state {
            mask |= bit;
            tcp_state(state, out);
        }
    }
    out[mask_at..mask_at + 2].copy_from_slice(&mask.to_le_bytes());
}

fn tcp_state(state: &TcpState, out: &mut Vec<u8>) {
    for value in [
        state.cwnd,
        state.ssthresh,
        state.srtt_us,
        state.min_rtt_us,
        state.retransmissions,
    ] {
        out.extend(value.to_le_bytes());
    }
    out.extend(state.delivery_rate.to_le_bytes());
    out.extend(state.dsack_duplicates.to_le_bytes());
}

pub(super) fn event(event: &Event, out: &mut Vec<u8>) {
    out.push(EVENT);
    out.extend(event.flow.0.to_le_bytes());
    out.extend(event.at.to_le_bytes());
    text(event.kind.name(), out);
    text(&event.text, out);
}

pub(super) fn sample(sample: &Sample, out: &mut Vec<u8>) {
    out.push(SAMPLE);
    out.extend(sample.at.to_le_bytes());
    out.extend(sample.value.to_bits().to_le_bytes());
    text(&sample.series.to_string(), out);
}

/// A text after its length. The writer refuses payloads beyond its limit, far below 4 GiB.
fn text(text: &str, out: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.extend(length.to_le_bytes());
    out.extend(text.as_bytes());
}
