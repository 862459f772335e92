//! What travels over a link: the main flow's messages with all their marks, and the echoes beside
//! them.

use neph_model::{
    FlowIndex, Instant, Local, Marks, Message, Outcome, Scenario, Seq, Span, TcpState,
};
use neph_stats::Random;

use super::Link;

/// The main flow's messages, then the companion's.
pub(crate) fn messages(scenario: &Scenario, link: &Link, random: &mut Random) -> Vec<Message> {
    let mut messages = Vec::new();
    for seq in 0..scenario.messages {
        messages.push(message(scenario, seq, link, random));
    }
    let last = messages.last().unwrap().marks.intended.nanos();
    let mut at = 0;
    let mut seq = 0;
    while at <= last {
        messages.push(ping(seq, at, link, random));
        at += 200_000_000;
        seq += 1;
    }
    messages
}

fn jitter(random: &mut Random, scale: f64) -> f64 {
    -(1.0 - random.unit()).ln() * scale
}

#[expect(clippy::cast_possible_truncation, reason = "microseconds of a test")]
fn nanos(micros: f64) -> i64 {
    (micros * 1000.0) as i64
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a test"
)]
fn message(scenario: &Scenario, seq: u64, link: &Link, random: &mut Random) -> Message {
    let at = i64::try_from(seq).unwrap() * scenario.interval.nanos();
    let mut marks = Marks::intended_at(Instant::from_nanos(at));
    let bytes = scenario.request_size.bytes() as f64;
    // Idle slow start: what was idle for 200 ms begins with 10 segments again.
    let segments = bytes / 1448.0;
    let is_idle = scenario.interval >= Span::from_millis(200);
    let cwnd = if is_idle {
        10.0
    } else {
        (10.0 + seq as f64 * 2.0).min(140.0)
    };
    let rounds = (segments / cwnd).max(1.0).log2().ceil().max(0.0);
    let lost = random.unit() < link.loss;
    let mut clock = at + nanos(3.0 + jitter(random, 4.0));
    let mut step = |micros: f64, to: &mut Option<Instant<Local>>| {
        clock += nanos(micros);
        *to = Some(Instant::from_nanos(clock));
        clock
    };
    step(0.0, &mut marks.app_send);
    step(
        9.0 + jitter(random, 2.0) + rounds * link.round_trip_ms * 1000.0,
        &mut marks.queued,
    );
    step(6.0 + jitter(random, 1.0), &mut marks.nic_tx);
    let forward = link.round_trip_ms * 500.0 + bytes * 8.0 / link.up_mbit + jitter(random, 60.0);
    let reverse = link.round_trip_ms * 500.0 + jitter(random, 40.0);
    let peer = |t: i64| Some(Instant::from_nanos(t + 5_000_000_000));
    let sent = clock;
    let arrived = sent + nanos(forward);
    let peer_spans = [
        18.0 + jitter(random, 4.0),
        link.work_ms * 1000.0 + 32.0 + jitter(random, 10.0),
        14.0 + jitter(random, 3.0),
    ]
    .map(nanos);
    let departed = arrived + peer_spans.iter().sum::<i64>();
    let state = state(cwnd as u32, seq, link);
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.tcp_at_send = Some(state);
    if lost {
        message.outcome = Outcome::Lost;
        return message;
    }
    message.outcome = Outcome::Reply;
    message.tcp_at_ack = Some(state);
    let received = departed + nanos(reverse);
    message.marks.acked = Some(Instant::from_nanos(received - peer_spans[1]));
    if link.reflector {
        message.marks.peer.rx = peer(arrived);
        message.marks.peer.app_rx = peer(arrived + peer_spans[0]);
        message.marks.peer.app_tx = peer(arrived + peer_spans[0] + peer_spans[1]);
        message.marks.peer.nic_tx = peer(departed);
    }
    message.marks.nic_rx = Some(Instant::from_nanos(received));
    message.marks.app_recv = Some(Instant::from_nanos(
        received + nanos(12.0 + jitter(random, 6.0)),
    ));
    message
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a test"
)]
fn state(cwnd: u32, seq: u64, link: &Link) -> TcpState {
    let round_trip_us = (link.round_trip_ms * 1000.0) as u32;
    // What has no loss sends nothing again.
    let has_loss = u64::from(link.loss > 0.0);
    TcpState {
        cwnd,
        ssthresh: 80,
        srtt_us: round_trip_us + 1_000,
        min_rtt_us: round_trip_us,
        retransmissions: u32::try_from(has_loss * seq / 97).unwrap(),
        dsack_duplicates: 0,
        delivery_rate: 1_000_000,
    }
}

fn ping(seq: u64, at: i64, link: &Link, random: &mut Random) -> Message {
    let mut marks = Marks::intended_at(Instant::from_nanos(at));
    let send = at + nanos(4.0);
    let received = send + nanos(link.round_trip_ms * 1000.0 + jitter(random, 80.0));
    marks.app_send = Some(Instant::from_nanos(send));
    marks.queued = Some(Instant::from_nanos(send + 1000));
    marks.nic_tx = Some(Instant::from_nanos(send + 2000));
    marks.nic_rx = Some(Instant::from_nanos(received));
    marks.app_recv = Some(Instant::from_nanos(received + nanos(9.0)));
    let mut message = Message::new(FlowIndex(1), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message
}
