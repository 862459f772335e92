//! A virtual path and the TCP above it, in milliseconds: what messages and echoes meet on it.

use neph_model::{
    FlowIndex, Instant, Local, Marks, Message, Outcome, Peer, ProbeKind, Scenario, Seq, TcpState,
};
use neph_stats::Random;

use super::stalling::{AtPeer, Still};
use super::world::{Queue, World};

/// Segments of a window that nothing has closed yet.
const INITIAL: f64 = 10.0;
const SEGMENT: f64 = 1448.0;
/// What the window grows to at most: larger ones hold every message of these tests twice.
const LARGEST: f64 = 200.0;
/// How long a kernel keeps an acknowledgement for a reply to travel with.
const DELAYED_ACK: f64 = 40.0;
/// How long a connection stalls where it does.
const STALL: f64 = 300.0;

/// One connection over a world's path.
pub(crate) struct Line<'w> {
    world: &'w World,
    base: f64,
    /// What all messages but the first meet besides.
    stall: f64,
    window: f64,
    least_rtt: f64,
    retransmissions: u32,
    /// Retransmissions that the peer had received already: known since the last stall's end.
    duplicates: u32,
    /// The peer stood still when the last message arrived.
    is_stalled: bool,
    connection: u32,
    /// When the last reply came, when the last message left, when the bottleneck is free again.
    replied: f64,
    sent: f64,
    free: f64,
}

/// So many times a second a queue that saws falls.
const TEETH: f64 = 0.7;

impl Queue {
    /// How deep those who fill it would have it at a second, in milliseconds.
    fn depth(&self, second: f64) -> f64 {
        let since = second - self.from;
        if since < 0.0 || second > self.to {
            return 0.0;
        }
        let saw = 0.6 + 0.4 * (since * TEETH).fract();
        self.peak_ms * saw * since.min(1.0)
    }
}

pub(crate) fn exponential(random: &mut Random, scale: f64) -> f64 {
    -(1.0 - random.unit()).ln() * scale
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds of a test")]
fn instant(millis: f64) -> Instant<Local> {
    Instant::from_nanos((millis * 1e6) as i64)
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds of a test")]
pub(crate) fn peer(millis: f64) -> Instant<Peer> {
    Instant::from_nanos((millis * 1e6) as i64 + 5_000_000_000)
}

/// How a message's bytes go out.
struct Sending {
    /// When the last byte leaves.
    sent: f64,
    /// The window then, in segments.
    window: f64,
    lost: u32,
}

impl<'w> Line<'w> {
    pub(crate) fn new(world: &'w World, block: u32, port: u16) -> Self {
        let later = if world
            .later
            .contains(&(f64::from(block) / f64::from(world.blocks)))
        {
            world.later_ms
        } else {
            0.0
        };
        let base = world.round_trip_ms + world.path_of(port) + later;
        Self {
            world,
            base,
            stall: if world.stalled == Some(block) {
                STALL
            } else {
                0.0
            },
            window: INITIAL,
            least_rtt: base + 0.02,
            retransmissions: 0,
            duplicates: 0,
            is_stalled: false,
            connection: 0,
            replied: 0.0,
            sent: f64::NEG_INFINITY,
            free: f64::NEG_INFINITY,
        }
    }

    /// What others' queue or a detour adds at a time, in milliseconds. A queue fills, and saws.
    fn queue(&self, at: f64) -> f64 {
        let is_in = |queue: &Queue| (queue.from..queue.to).contains(&(at / 1e3));
        if let Some(detour) = self.world.detour.filter(is_in) {
            return detour.peak_ms;
        }
        let Some(queue) = self.world.queue else {
            return 0.0;
        };
        if at / 1e3 < queue.from {
            return 0.0;
        }
        // It drains no faster than the link carries: what saws is what flows in.
        let teeth = ((at / 1e3 - queue.from) * TEETH).floor();
        let fallen = [queue.from + teeth / TEETH, queue.to];
        let drained = fallen.into_iter().filter(|second| second * 1e3 <= at);
        let sent = drained.map(|second| queue.depth(second - 1e-6) - (at - second * 1e3));
        sent.fold(queue.depth(at / 1e3), f64::max)
    }

    /// Both directions for somebody small at a time.
    fn crossing(&self, at: f64, random: &mut Random) -> f64 {
        self.base + self.queue(at) + exponential(random, self.world.jitter_ms)
    }

    fn send(&mut self, bytes: f64, written: f64, random: &mut Random) -> Sending {
        let world = self.world;
        let segments = (bytes / SEGMENT).ceil().max(1.0);
        let is_full = self.queue(written) > 0.0;
        let mut share = if is_full { world.congested_loss } else { 0.0 } + world.loss;
        if world.outage.contains(&(written / 1e3)) {
            share = 1.0;
        }
        let lost = (0..10_000_u32)
            .take_while(|sent| f64::from(*sent) < segments)
            .filter(|_| random.unit() < share)
            .count();
        let lost = u32::try_from(lost).unwrap();
        if world.probe == ProbeKind::Udp {
            let (sent, window) = (written, INITIAL);
            return Sending { sent, window, lost };
        }
        if world.restarts && written - self.replied > 200.0 + self.base {
            self.window = INITIAL;
        }
        let room = world.room.map_or(f64::INFINITY, f64::from);
        // A window that the receiver does not let be filled stops at twice what it has room for.
        let cap = world.window.map_or(LARGEST, f64::from).min(2.0 * room);
        let mut at = written.max(self.sent);
        let is_busy = self.sent > written - self.base;
        let (mut sent, mut window) = (0.0, self.window.min(cap));
        if is_busy && window >= cap {
            // A window that is always full lets go what is acknowledged.
            at += segments / cap * self.base;
        } else {
            while sent + window.min(room) < segments {
                sent += window.min(room);
                window = (window * 2.0).min(cap);
                at += self.base + self.queue(at);
            }
        }
        if let Some(pacing) = world.pacing {
            at = at.max(written + bytes * 8.0 / pacing / 1e3);
        }
        let grown = if segments > INITIAL { 1.6 } else { 1.0 };
        self.window = (window * grown).min(cap);
        if lost > 0 {
            self.retransmissions += lost;
            self.window = (self.window / 2.0).max(INITIAL);
        }
        Sending {
            sent: at,
            window,
            lost,
        }
    }

    /// How long the bottleneck makes the last byte wait beyond its leaving.
    fn transmission(&mut self, bytes: f64, written: f64, sent: f64) -> f64 {
        let wire = bytes + (bytes / SEGMENT).ceil().max(1.0) * 66.0;
        let takes = wire * 8.0 / self.world.rate_mbit / 1e3;
        let done = (written.max(self.free) + takes).max(sent + takes.min(0.1));
        self.free = done;
        done - sent
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
    pub(super) fn message(
        &mut self,
        scenario: &Scenario,
        seq: u64,
        random: &mut Random,
    ) -> Message {
        let (world, base) = (self.world, self.base);
        let interval = scenario.interval.millis_f64();
        let due = seq as f64 * interval;
        let starved = self.starved(random);
        let mut marks = Marks::intended_at(instant(due));
        let Some(at_work) = world.client_works(due, interval, random) else {
            return Message::new(FlowIndex(0), Seq(seq), marks);
        };
        let mut at = at_work + 0.004 + exponential(random, 0.01) + Self::hiccup(random) + starved;
        let dials = world.dials.filter(|_| random.unit() < world.dialled);
        if let Some(rounds) = dials {
            self.connection = u32::try_from(seq).unwrap();
            at = self.dial(rounds, at, &mut marks, random);
        }
        let written = at + 0.01;
        marks.app_send = Some(instant(written));
        let bytes = scenario.request_size.bytes() as f64;
        let sending = self.send(bytes, written, random);
        let sent = sending.sent + 0.02;
        let queued = world.queued(written, sent);
        (marks.queued, marks.nic_tx) = (queued.map(instant), Some(instant(sent)));
        self.sent = sent;
        let rto = f64::from(sending.lost.min(2)) * (base + 5.0);
        let transmission = self.transmission(bytes, written, sent);
        // The last byte is in time mostly, and waits in the kernel for a segment before it.
        let hole = if bytes > SEGMENT { rto } else { 0.0 };
        let stall = if seq > 0 { self.stall } else { 0.0 };
        let crossing = self.crossing(sent, random) + world.proxy_ms;
        let network = crossing + stall + transmission + rto - hole;
        let work = world.think_ms * (0.9 + 0.2 * random.unit()) + 0.03 + exponential(random, 0.01);
        let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
        let is_udp = world.probe == ProbeKind::Udp;
        if is_udp && sending.lost > 0 {
            message.outcome = Outcome::Lost;
            return message;
        }
        message.outcome = Outcome::Reply;
        message.connection = self.connection;
        let there = sent + network - base / 2.0;
        let peer_side = AtPeer::of(world, (there, hole), interval, random);
        if dials.is_none() {
            self.count_spurious(peer_side.is_stalled);
        }
        let has_stamp = peer_side.is_last || is_udp || dials.is_some();
        let marks = &mut message.marks;
        let answered = peer_side.read + work;
        marks.peer = peer_side.marks(has_stamp, answered);
        let received = answered + 0.01 + base / 2.0 + self.rto(random);
        marks.nic_rx = Some(instant(received)).filter(|_| has_stamp);
        let reads = world.client_reads(received, interval, random);
        let read = self.read(reads, starved, random);
        marks.app_recv = Some(instant(read));
        self.replied = read;
        if !is_udp {
            let delayed_ack = peer_side.arrived - there + transmission + rto;
            let acked = self.acknowledged((sent, received), delayed_ack, random);
            self.report_tcp(&mut message, (sent, acked), sending.window);
        }
        message
    }

    /// What TCP says of a message that left and was acknowledged at these times.
    fn report_tcp(&mut self, message: &mut Message, (sent, acked): (f64, f64), window: f64) {
        message.marks.acked = Some(instant(acked));
        self.least_rtt = self.least_rtt.min(acked - sent);
        message.tcp_at_send = Some(self.state(window, 0));
        message.tcp_at_ack = Some(self.state(self.window, self.retransmissions));
    }

    /// When what left at a time is acknowledged, which something holds back on the way.
    fn acknowledged(
        &self,
        (sent, received): (f64, f64),
        delayed_ack: f64,
        random: &mut Random,
    ) -> f64 {
        // Most acknowledgements wait for the reply and travel with it, from a proxy too.
        let is_quick = random.unit() < self.world.quick_acks;
        let acked = sent + self.crossing(sent, random) + delayed_ack;
        let acked = if is_quick { acked } else { received.max(acked) };
        // A kernel delays an acknowledgement for so long at most.
        acked.min(sent + self.base + delayed_ack + DELAYED_ACK)
    }

    /// A message that waits for its acknowledgement is retransmitted, several times in a long stall. A
    /// kernel may report one copy of all.
    fn count_spurious(&mut self, stalled: bool) {
        if stalled && !self.is_stalled {
            self.retransmissions += 3;
        }
        // A kernel that is awake reports a copy at once.
        let is_awake = self.world.stalls(&[Still::Program]).is_some();
        if stalled != self.is_stalled && stalled == is_awake {
            self.duplicates += 1;
        }
        self.is_stalled = stalled;
    }

    /// Opens a connection with so many round trips above TCP's; when it is open.
    fn dial(&mut self, rounds: f64, at: f64, marks: &mut Marks, random: &mut Random) -> f64 {
        (self.window, self.retransmissions, self.duplicates) = (INITIAL, 0, 0);
        self.is_stalled = false;
        marks.dialled = Some(instant(at));
        let connected = at + self.crossing(at, random);
        marks.connected = Some(instant(connected));
        let opened = connected + rounds * self.base + self.world.sums_ms + 0.2;
        marks.opened = Some(instant(opened));
        opened
    }

    /// A wait to send that every host has now and then.
    fn hiccup(random: &mut Random) -> f64 {
        if random.unit() < 0.005 { 4.0 } else { 0.0 }
    }

    /// How long our own host makes a message wait, each way.
    fn starved(&self, random: &mut Random) -> f64 {
        let starved = exponential(random, self.world.starved_ms);
        let is_hit = self.world.starved >= 1.0 || random.unit() < self.world.starved;
        if is_hit { starved } else { 0.0 }
    }

    /// When a reply is read that was received at a time.
    fn read(&self, received: f64, starved: f64, random: &mut Random) -> f64 {
        let delayed_ack = self.reply_hole(random);
        let read = received + delayed_ack + 0.012 + exponential(random, 0.01) + starved;
        // TCP gives out what comes on one connection in order.
        if self.world.replies_lost > 0.0 && self.world.dials.is_none() {
            return read.max(self.replied + 0.001);
        }
        read
    }

    /// How much later a reply comes of which the first copy is lost.
    fn rto(&self, random: &mut Random) -> f64 {
        let is_lost = self.world.replies_lost > 0.0 && random.unit() < self.world.replies_lost;
        if is_lost { self.base + 20.0 } else { 0.0 }
    }

    /// How long our kernel holds the reply's last byte back for a segment that is sent again.
    #[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
    fn reply_hole(&self, random: &mut Random) -> f64 {
        let before = (self.world.reply as f64 / SEGMENT).ceil() - 1.0;
        let all_came = (1.0 - self.world.reply_loss).powf(before.max(0.0));
        if all_came < 1.0 && random.unit() > all_came {
            self.base + 5.0
        } else {
            0.0
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small numbers of a test"
    )]
    fn state(&self, window: f64, retransmissions: u32) -> TcpState {
        TcpState {
            cwnd: window as u32,
            ssthresh: 80,
            srtt_us: (self.base * 1e3) as u32,
            min_rtt_us: (self.least_rtt * 1e3) as u32,
            retransmissions,
            dsack_duplicates: self.duplicates,
            delivery_rate: 1_000_000,
        }
    }
}

/// The ICMP echoes beside a scenario's messages, five a second.
#[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
pub(crate) fn echoes(line: &Line<'_>, scenario: &Scenario, random: &mut Random) -> Vec<Message> {
    let last = scenario.messages as f64 * scenario.interval.millis_f64();
    (0..100_000_u64)
        .map(|seq| (seq, seq as f64 * 200.0))
        .take_while(|(_, at)| *at < last)
        .map(|(seq, due)| {
            let mut marks = Marks::intended_at(instant(due));
            let world = line.world;
            let wake = |who: &[Still], at: f64, random: &mut Random| {
                let stalls = world.stalls(who);
                stalls.map_or(at, |stalling| stalling.wake(at, 200.0, random))
            };
            let clients = [Still::ClientLate, Still::ClientSkips];
            let sent = wake(&clients, due, random) + 0.01;
            let past = line.queue(sent) * (1.0 - line.world.echoes_wait);
            let delayed_ack = wake(&[Still::Host], sent, random) - sent;
            let back = sent + delayed_ack + line.crossing(sent, random) - past + line.world.icmp_ms;
            (marks.app_send, marks.nic_tx) = (Some(instant(sent)), Some(instant(sent + 0.002)));
            (marks.nic_rx, marks.app_recv) = (Some(instant(back)), Some(instant(back + 0.01)));
            let mut message = Message::new(FlowIndex(1), Seq(seq), marks);
            message.outcome = Outcome::Reply;
            message
        })
        .collect()
}
