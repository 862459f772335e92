//! Decodes records. `None` for bytes that are no record; never panics.

use neph_model::{
    Answer, Event, EventKind, FlowIndex, Instant, Marks, Message, Outcome, Sample, Seq, SeriesName,
    SynAnswer, TcpState,
};

use super::Record;
use super::encode::{
    ANSWERED, EVENT, HAS_DSACKS, MESSAGE, OPTIONAL_TIMES, REORDERED, SAMPLE, TCP_AT_ACK,
    TCP_AT_SEND,
};
use crate::bytes::Bytes;

/// One record, if the payload is exactly one.
pub(super) fn record(payload: &[u8]) -> Option<Record> {
    let (kind, body) = payload.split_first()?;
    let mut bytes = Bytes(body);
    let record = match *kind {
        MESSAGE => Record::Message(message(&mut bytes)?),
        EVENT => Record::Event(event(&mut bytes)?),
        SAMPLE => Record::Sample(sample(&mut bytes)?),
        _ => return None,
    };
    bytes.0.is_empty().then_some(record)
}

#[inline]
fn message(bytes: &mut Bytes<'_>) -> Option<Message> {
    let mask = bytes.u16()?;
    let flow = FlowIndex(bytes.u32()?);
    let seq = Seq(bytes.u64()?);
    let outcome = outcome(bytes.u8()?)?;
    let flags = bytes.u8()?;
    let answer = if flags & ANSWERED != 0 {
        Some(Answer::from_code(bytes.u16()?)?)
    } else {
        old_answer(flags)
    };
    let duplicates = bytes.u16()?;
    let connection = bytes.u32()?;
    let intended = bytes.i64()?;
    let mut times = [None; OPTIONAL_TIMES];
    for (bit, time) in times.iter_mut().enumerate() {
        if mask & (1 << bit) != 0 {
            *time = Some(bytes.i64()?);
        }
    }
    let mut message = Message::new(flow, seq, marks(intended, times));
    message.peer_wall_offset = times[13];
    message.outcome = outcome;
    message.reordered = flags & REORDERED != 0;
    message.answer = answer;
    message.duplicates = duplicates;
    message.connection = connection;
    for (bit, state) in [
        (TCP_AT_SEND, &mut message.tcp_at_send),
        (TCP_AT_ACK, &mut message.tcp_at_ack),
    ] {
        if mask & bit != 0 {
            *state = Some(tcp_state(bytes, flags)?);
        }
    }
    Some(message)
}

/// The answer in the flags of an older journal, which has answers to SYNs in two bits.
const fn old_answer(flags: u8) -> Option<Answer> {
    const SYN_ACK: u8 = 1 << 1;
    const RST: u8 = 1 << 2;
    match flags & (SYN_ACK | RST) {
        SYN_ACK => Some(Answer::Syn(SynAnswer::SynAck)),
        RST => Some(Answer::Syn(SynAnswer::Rst)),
        _ => None,
    }
}

/// In the order of `encode::message`.
fn marks(intended: i64, times: [Option<i64>; OPTIONAL_TIMES]) -> Marks {
    let instant = |at: usize| times[at].map(Instant::from_nanos);
    let peer = |at: usize| times[at].map(Instant::from_nanos);
    let mut marks = Marks::intended_at(Instant::from_nanos(intended));
    marks.dialled = instant(0);
    marks.connected = instant(1);
    marks.opened = instant(2);
    marks.app_send = instant(3);
    marks.queued = instant(4);
    marks.nic_tx = instant(5);
    marks.acked = instant(6);
    marks.peer.rx = peer(7);
    marks.peer.app_rx = peer(8);
    marks.peer.app_tx = peer(9);
    marks.peer.nic_tx = peer(10);
    marks.nic_rx = instant(11);
    marks.app_recv = instant(12);
    marks
}

const fn outcome(code: u8) -> Option<Outcome> {
    match code {
        0 => Some(Outcome::Reply),
        1 => Some(Outcome::Lost),
        2 => Some(Outcome::Failed),
        3 => Some(Outcome::Error),
        _ => None,
    }
}

fn tcp_state(bytes: &mut Bytes<'_>, flags: u8) -> Option<TcpState> {
    let mut state = TcpState {
        cwnd: bytes.u32()?,
        ssthresh: bytes.u32()?,
        srtt_us: bytes.u32()?,
        min_rtt_us: bytes.u32()?,
        retransmissions: bytes.u32()?,
        delivery_rate: bytes.u64()?,
        dsack_duplicates: 0,
    };
    if flags & HAS_DSACKS != 0 {
        state.dsack_duplicates = bytes.u32()?;
    }
    Some(state)
}

fn event(bytes: &mut Bytes<'_>) -> Option<Event> {
    Some(Event {
        flow: FlowIndex(bytes.u32()?),
        at: bytes.i64()?,
        kind: EventKind::from_name(bytes.text()?)?,
        text: bytes.text()?.to_owned(),
    })
}

fn sample(bytes: &mut Bytes<'_>) -> Option<Sample> {
    Some(Sample {
        at: bytes.i64()?,
        value: f64::from_bits(bytes.u64()?),
        series: SeriesName::from_name(bytes.text()?)?,
    })
}
