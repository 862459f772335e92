//! A virtual path and the TCP connection above it, in milliseconds.

use neph_model::{
    FlowIndex, Instant, Local, Marks, Message, Outcome, Peer, ProbeKind, Scenario, Seq, TcpState,
};
use neph_stats::Random;

use super::stalling::{RequestAtPeer, StalledParty};
use super::world::{Queue, World};

/// Initial congestion window, in segments.
const INITIAL_WINDOW: f64 = 10.0;
const SEGMENT: f64 = 1448.0;
/// Largest window, in segments: twice as large as any message of these tests.
const MAX_WINDOW: f64 = 200.0;
/// How long a kernel keeps an acknowledgement for a reply to travel with.
const DELAYED_ACK: f64 = 40.0;
/// Length of a stall of a connection, in milliseconds.
const STALL: f64 = 300.0;

/// One connection over a world's path.
pub(crate) struct Connection<'w> {
    pub(super) world: &'w World,
    base: f64,
    /// Additional delay of all messages but the first.
    stall: f64,
    window: f64,
    min_rtt: f64,
    retransmissions: u32,
    /// Spurious retransmissions, reported since the end of the last stall.
    duplicates: u32,
    /// The peer was stalled when the last message arrived.
    is_stalled: bool,
    /// The message that opened it.
    opened_by: u32,
    /// Time of the last reply, send time of the last message, and time at which the bottleneck is free.
    last_reply_at: f64,
    last_sent_at: f64,
    bottleneck_free_at: f64,
}

/// How often a queue drops packets and becomes shorter, per second.
const SAWTEETH_PER_S: f64 = 0.7;

impl Queue {
    /// Delay of the queue at this second without the limit of the link, in milliseconds.
    fn depth(&self, second: f64) -> f64 {
        let elapsed = second - self.from;
        if elapsed < 0.0 || second > self.to {
            return 0.0;
        }
        let sawtooth = 0.6 + 0.4 * (elapsed * SAWTEETH_PER_S).fract();
        self.peak_ms * sawtooth * elapsed.min(1.0)
    }
}

pub(crate) fn exponential(random: &mut Random, scale: f64) -> f64 {
    -(1.0 - random.unit()).ln() * scale
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds of a test")]
pub(super) fn instant(millis: f64) -> Instant<Local> {
    Instant::from_nanos((millis * 1e6) as i64)
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds of a test")]
pub(crate) fn peer(millis: f64) -> Instant<Peer> {
    Instant::from_nanos((millis * 1e6) as i64 + 5_000_000_000)
}

/// The transmission of a message's bytes.
struct Sending {
    /// Departure of the last byte.
    sent_at: f64,
    /// The window then, in segments.
    window: f64,
    lost: u32,
}

impl<'w> Connection<'w> {
    pub(crate) fn new(world: &'w World, block: u32, port: u16) -> Self {
        let path_change = if world
            .path_change_blocks
            .contains(&(f64::from(block) / f64::from(world.blocks)))
        {
            world.path_change_ms
        } else {
            0.0
        };
        let base = world.round_trip_ms + world.path_of(port) + path_change;
        Self {
            world,
            base,
            stall: if world.stalled_block == Some(block) {
                STALL
            } else {
                0.0
            },
            window: INITIAL_WINDOW,
            min_rtt: base + 0.02,
            retransmissions: 0,
            duplicates: 0,
            is_stalled: false,
            opened_by: 0,
            last_reply_at: 0.0,
            last_sent_at: f64::NEG_INFINITY,
            bottleneck_free_at: f64::NEG_INFINITY,
        }
    }

    /// Delay of other traffic's queue or of a longer path at a time, in milliseconds.
    pub(super) fn queue(&self, at: f64) -> f64 {
        let is_active = |queue: &Queue| (queue.from..queue.to).contains(&(at / 1e3));
        if let Some(longer_path) = self.world.longer_path.filter(is_active) {
            return longer_path.peak_ms;
        }
        let Some(queue) = self.world.queue else {
            return 0.0;
        };
        if at / 1e3 < queue.from {
            return 0.0;
        }
        // It drains no faster than the link carries: what saws is what flows in.
        let sawteeth = ((at / 1e3 - queue.from) * SAWTEETH_PER_S).floor();
        let drop_times = [queue.from + sawteeth / SAWTEETH_PER_S, queue.to];
        let past_drops = drop_times.into_iter().filter(|second| second * 1e3 <= at);
        let depths = past_drops.map(|second| queue.depth(second - 1e-6) - (at - second * 1e3));
        depths.fold(queue.depth(at / 1e3), f64::max)
    }

    /// RTT of a small packet that is sent at this time.
    pub(super) fn round_trip_at(&self, at: f64, random: &mut Random) -> f64 {
        self.base + self.queue(at) + exponential(random, self.world.jitter_ms)
    }

    fn send(&mut self, bytes: f64, written: f64, random: &mut Random) -> Sending {
        let world = self.world;
        let segments = (bytes / SEGMENT).ceil().max(1.0);
        let is_full = self.queue(written) > 0.0;
        let mut share = if is_full { world.queue_loss } else { 0.0 } + world.loss;
        if world.outage.contains(&(written / 1e3)) {
            share = 1.0;
        }
        let lost = (0..10_000_u32)
            .take_while(|segment| f64::from(*segment) < segments)
            .filter(|_| random.unit() < share)
            .count();
        let lost = u32::try_from(lost).unwrap();
        if world.probe == ProbeKind::Udp {
            let (sent_at, window) = (written, INITIAL_WINDOW);
            return Sending {
                sent_at,
                window,
                lost,
            };
        }
        if world.has_idle_restart && written - self.last_reply_at > 200.0 + self.base {
            self.window = INITIAL_WINDOW;
        }
        let receive_window = world.receive_window.map_or(f64::INFINITY, f64::from);
        // A window that the receiver does not let be filled stops at twice what it has room for.
        let max_window = world.max_window.map_or(MAX_WINDOW, f64::from);
        let window_limit = max_window.min(2.0 * receive_window);
        let mut sent_at = written.max(self.last_sent_at);
        let is_busy = self.last_sent_at > written - self.base;
        let (mut sent_segments, mut window) = (0.0, self.window.min(window_limit));
        if is_busy && window >= window_limit {
            // A window that is always full lets go what is acknowledged.
            sent_at += segments / window_limit * self.base;
        } else {
            while sent_segments + window.min(receive_window) < segments {
                sent_segments += window.min(receive_window);
                window = (window * 2.0).min(window_limit);
                sent_at += self.base + self.queue(sent_at);
            }
        }
        if let Some(pacing) = world.pacing {
            sent_at = sent_at.max(written + bytes * 8.0 / pacing / 1e3);
        }
        let growth = if segments > INITIAL_WINDOW { 1.6 } else { 1.0 };
        self.window = (window * growth).min(window_limit);
        if lost > 0 {
            self.retransmissions += lost;
            self.window = (self.window / 2.0).max(INITIAL_WINDOW);
        }
        Sending {
            sent_at,
            window,
            lost,
        }
    }

    /// How long the bottleneck makes the last byte wait beyond its leaving.
    fn transmission(&mut self, bytes: f64, written: f64, sent: f64) -> f64 {
        let wire_bytes = bytes + (bytes / SEGMENT).ceil().max(1.0) * 66.0;
        let duration = wire_bytes * 8.0 / self.world.rate_mbit / 1e3;
        let end = (written.max(self.bottleneck_free_at) + duration).max(sent + duration.min(0.1));
        self.bottleneck_free_at = end;
        end - sent
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
        let client_delay = self.client_delay(random);
        let mut marks = Marks::intended_at(instant(due));
        let Some(scheduled_at) = world.client_sends_at(due, interval, random) else {
            return Message::new(FlowIndex(0), Seq(seq), marks);
        };
        let mut ready_at = scheduled_at + 0.004 + exponential(random, 0.01);
        ready_at += Self::rare_delay(random) + client_delay;
        let handshake = self.handshake_round_trips(random);
        if let Some(round_trips) = handshake {
            self.opened_by = u32::try_from(seq).unwrap();
            ready_at = self.open_connection(round_trips, ready_at, &mut marks, random);
        }
        let written = ready_at + 0.01;
        marks.app_send = Some(instant(written));
        let bytes = scenario.request_size.bytes() as f64;
        let sending = self.send(bytes, written, random);
        let sent = sending.sent_at + 0.02;
        let queued = world.queued_at(written, sent);
        (marks.queued, marks.nic_tx) = (queued.map(instant), Some(instant(sent)));
        self.last_sent_at = sent;
        let retransmission_delay = f64::from(sending.lost.min(2)) * (base + 5.0);
        let transmission = self.transmission(bytes, written, sent);
        // The last byte is in time mostly, and waits in the kernel for a segment before it.
        let reply_gap = f64::from(u8::from(bytes > SEGMENT)) * retransmission_delay;
        let stall = if seq > 0 { self.stall } else { 0.0 };
        let round_trip = self.round_trip_at(sent, random) + world.proxy_ms;
        let network = round_trip + stall + transmission + retransmission_delay - reply_gap;
        let processing = world.processing_ms * (0.9 + 0.2 * random.unit());
        let processing = processing + 0.03 + exponential(random, 0.01);
        let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
        let is_udp = world.probe == ProbeKind::Udp;
        if is_udp && sending.lost > 0 {
            message.outcome = Outcome::Lost;
            return message;
        }
        message.outcome = Outcome::Reply;
        message.connection = self.opened_by;
        let arrival = sent + network - base / 2.0;
        let peer_side = RequestAtPeer::of(world, (arrival, reply_gap), interval, random);
        if handshake.is_none() {
            self.count_spurious(peer_side.is_stalled);
        }
        let has_stamp = peer_side.is_last || is_udp || handshake.is_some();
        let marks = &mut message.marks;
        let replied_at = peer_side.read + processing;
        marks.peer = peer_side.marks(has_stamp, replied_at);
        let received = replied_at + 0.01 + base / 2.0 + self.retransmission_delay(random);
        marks.nic_rx = Some(instant(received)).filter(|_| has_stamp);
        let read_from = world.client_reads_at(received, interval, random);
        let app_read_at = self.read(read_from, client_delay, random);
        marks.app_recv = Some(instant(app_read_at));
        self.last_reply_at = app_read_at;
        if !is_udp {
            let delayed_ack = peer_side.arrived - arrival + transmission + retransmission_delay;
            let acked_at = self.acknowledged_at((sent, received), delayed_ack, random);
            self.set_tcp_state(&mut message, (sent, acked_at), sending.window);
        }
        message
    }

    /// Round trips of the handshake of a new connection; `None` if the connection stays open.
    fn handshake_round_trips(&self, random: &mut Random) -> Option<f64> {
        let round_trips = self.world.handshake_round_trips;
        round_trips.filter(|_| random.unit() < self.world.handshake_share)
    }

    /// Sets the TCP statistics of a message that was sent and acknowledged at these times.
    fn set_tcp_state(&mut self, message: &mut Message, (sent, acked): (f64, f64), window: f64) {
        message.marks.acked = Some(instant(acked));
        self.min_rtt = self.min_rtt.min(acked - sent);
        message.tcp_at_send = Some(self.tcp_state(window, 0));
        message.tcp_at_ack = Some(self.tcp_state(self.window, self.retransmissions));
    }

    /// When what left at a time is acknowledged, which something holds back on the way.
    fn acknowledged_at(
        &self,
        (sent, received): (f64, f64),
        delayed_ack: f64,
        random: &mut Random,
    ) -> f64 {
        // Most acknowledgements wait for the reply and travel with it, from a proxy too.
        let is_quick = random.unit() < self.world.quick_acks;
        let acked = sent + self.round_trip_at(sent, random) + delayed_ack;
        let acked = if is_quick { acked } else { received.max(acked) };
        // A kernel delays an acknowledgement for so long at most.
        acked.min(sent + self.base + delayed_ack + DELAYED_ACK)
    }

    /// A message that waits for its acknowledgement is retransmitted, several times in a long stall. A
    /// kernel may report one copy of all.
    fn count_spurious(&mut self, is_stalled_now: bool) {
        if is_stalled_now && !self.is_stalled {
            self.retransmissions += 3;
        }
        // A kernel that is awake reports a copy at once.
        let is_awake = self.world.stalls(&[StalledParty::Program]).is_some();
        if is_stalled_now != self.is_stalled && is_stalled_now == is_awake {
            self.duplicates += 1;
        }
        self.is_stalled = is_stalled_now;
    }

    /// Opens a connection with so many round trips above TCP's; when it is open.
    fn open_connection(
        &mut self,
        rounds: f64,
        at: f64,
        marks: &mut Marks,
        random: &mut Random,
    ) -> f64 {
        (self.window, self.retransmissions, self.duplicates) = (INITIAL_WINDOW, 0, 0);
        self.is_stalled = false;
        marks.dialled = Some(instant(at));
        let connected = at + self.round_trip_at(at, random);
        marks.connected = Some(instant(connected));
        let opened = connected + rounds * self.base + self.world.crypto_ms + 0.2;
        marks.opened = Some(instant(opened));
        opened
    }

    /// A wait to send that every host has now and then.
    fn rare_delay(random: &mut Random) -> f64 {
        if random.unit() < 0.005 { 4.0 } else { 0.0 }
    }

    /// How long our own host makes a message wait, each way.
    fn client_delay(&self, random: &mut Random) -> f64 {
        let client_delay = exponential(random, self.world.client_delay_ms);
        let is_hit =
            self.world.client_delay_share >= 1.0 || random.unit() < self.world.client_delay_share;
        if is_hit { client_delay } else { 0.0 }
    }

    /// When a reply is read that was received at a time.
    fn read(&self, received: f64, client_delay: f64, random: &mut Random) -> f64 {
        let delayed_ack = self.reply_gap(random);
        let read = received + delayed_ack + 0.012 + exponential(random, 0.01) + client_delay;
        // TCP gives out what comes on one connection in order.
        if self.world.reply_retransmission_share > 0.0 && self.world.handshake_round_trips.is_none()
        {
            return read.max(self.last_reply_at + 0.001);
        }
        read
    }

    /// How much later a reply comes of which the first copy is lost.
    fn retransmission_delay(&self, random: &mut Random) -> f64 {
        let is_lost = self.world.reply_retransmission_share > 0.0
            && random.unit() < self.world.reply_retransmission_share;
        if is_lost { self.base + 20.0 } else { 0.0 }
    }

    /// How long our kernel holds the reply's last byte back for a segment that is sent again.
    #[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
    fn reply_gap(&self, random: &mut Random) -> f64 {
        let earlier_segments = (self.world.reply_bytes as f64 / SEGMENT).ceil() - 1.0;
        let intact_share = (1.0 - self.world.reply_segment_loss).powf(earlier_segments.max(0.0));
        if intact_share < 1.0 && random.unit() > intact_share {
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
    fn tcp_state(&self, window: f64, retransmissions: u32) -> TcpState {
        TcpState {
            cwnd: window as u32,
            ssthresh: 80,
            srtt_us: (self.base * 1e3) as u32,
            min_rtt_us: (self.min_rtt * 1e3) as u32,
            retransmissions,
            dsack_duplicates: self.duplicates,
            delivery_rate: 1_000_000,
        }
    }
}
