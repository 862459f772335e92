//! One end of a simulated connection: what it sends when (RFC 9293, 5681, 6298, 2018, 7323).
//!
//! Owns numbers, windows and timers; positions count from its SYN and never wrap. Reads no clock.

use super::random::Random;
pub(super) use super::segment::Segment;

const MILLISECOND: u64 = 1_000_000;

/// What an end does without being told to by a segment.
#[derive(Clone, Copy)]
pub(super) enum EndAction {
    RetransmissionTimeout(u32),
    DelayedAck(u32),
    Write(u64),
    ReopenWindow,
    SendRequest,
    Close,
}

/// Requests, thinking and answers.
#[derive(Clone)]
pub(super) struct Dialogue(Vec<(u64, u64, u64)>);

impl Dialogue {
    pub(super) fn draw(random: &mut Random, limit: u64) -> Self {
        let rounds = 1 + random.below(limit);
        let round = |_| {
            let request = 1 + random.below(2_000);
            let processing_time = [0, 0, 20, 60][random.pick(4)] * MILLISECOND;
            let longest = [100, 3_000, 60_000][random.pick(3)];
            let answer = 1 + random.below(longest);
            (request, processing_time, answer)
        };
        Self((0..rounds).map(round).collect())
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub(super) struct TcpEnd {
    pub(super) iss: u32,
    is_client: bool,
    has_begun: bool,
    segment_size: u64,
    dialogue: Dialogue,
    round: usize,
    // Sending.
    acked: u64,
    next: u64,
    /// Behind all that was ever sent.
    highest: u64,
    written: u64,
    is_closing: bool,
    congestion_window: u64,
    duplicate_acks: u32,
    recovery_end: Option<u64>,
    peer_window: u64,
    timeout: u64,
    timer: u32,
    is_timer_set: bool,
    // Receiving.
    received: u64,
    out_of_order: Vec<(u64, u64)>,
    /// What came twice, until it is reported (RFC 2883).
    duplicate: Option<(u64, u64)>,
    unacknowledged: u32,
    must_acknowledge: bool,
    delayed_ack_timer: u32,
    is_closed_window: bool,
    may_stall: bool,
    sends_keep_alive: bool,
    // Time stamps.
    clock: Option<u32>,
    recent_timestamp: u32,
    segments: Vec<Segment>,
    actions: Vec<(u64, EndAction)>,
}

impl TcpEnd {
    /// Client and server of one connection.
    pub(super) fn both_ends(random: &mut Random, is_clean: bool, dialogue: &Dialogue) -> [Self; 2] {
        let has_timestamps = is_clean || random.below(4) > 0;
        let segment_size = [1448, 1448, 536, 14_480][random.pick(if is_clean { 2 } else { 4 })];
        [true, false].map(|is_client| {
            let near_wrap = random.below(4) == 0;
            let first = |random: &mut Random| {
                let small = random.small();
                if near_wrap {
                    u32::MAX - small % 20_000
                } else {
                    small
                }
            };
            Self {
                iss: first(random),
                is_client,
                has_begun: false,
                segment_size,
                dialogue: dialogue.clone(),
                round: 0,
                acked: 0,
                next: 0,
                highest: 0,
                written: 1,
                is_closing: false,
                congestion_window: 10,
                duplicate_acks: 0,
                recovery_end: None,
                peer_window: 65_535,
                timeout: 250 * MILLISECOND,
                timer: 0,
                is_timer_set: false,
                received: 0,
                out_of_order: Vec::new(),
                duplicate: None,
                unacknowledged: 0,
                must_acknowledge: false,
                delayed_ack_timer: 0,
                is_closed_window: false,
                may_stall: !is_clean && random.below(10) == 0,
                sends_keep_alive: !is_clean && random.below(10) == 0,
                clock: has_timestamps.then(|| first(random)),
                recent_timestamp: 0,
                segments: Vec::new(),
                actions: Vec::new(),
            }
        })
    }

    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Whether it takes no data for now.
    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed_window
    }

    pub(super) fn receive_segment(&mut self, now: u64, segment: &Segment, random: &mut Random) {
        if let Some((value, _)) = segment.stamps
            && segment.position <= self.received
        {
            self.recent_timestamp = value;
        }
        let is_first = segment.syn && self.received == 0;
        if segment.syn {
            self.has_begun = true;
            self.must_acknowledge = !is_first || self.is_client;
            self.received = self.received.max(1);
        }
        if let Some(ack) = segment.ack {
            self.take_acknowledgement(ack, segment);
        }
        if !segment.syn && segment.end() > segment.position {
            self.take_data(now, segment, random);
        } else if !segment.syn && segment.position < self.received {
            // Asks whether somebody is still there.
            self.must_acknowledge = true;
        }
        self.run_application(now, is_first, random);
    }

    fn take_acknowledgement(&mut self, ack: u64, segment: &Segment) {
        if !segment.syn {
            self.peer_window = u64::from(segment.window) << 7;
        }
        if ack > self.acked {
            self.acked = ack;
            self.next = self.next.max(ack);
            self.duplicate_acks = 0;
            self.congestion_window = (self.congestion_window + 1).min(60);
            self.timeout = 250 * MILLISECOND;
            self.timer += 1;
            self.is_timer_set = false;
            match self.recovery_end {
                Some(until) if ack < until => self.retransmit(),
                _ => self.recovery_end = None,
            }
        } else if ack == self.acked && segment.end() == segment.position && self.next > self.acked {
            self.duplicate_acks += 1;
            if self.duplicate_acks == 3 && self.recovery_end.is_none() {
                self.recovery_end = Some(self.next);
                self.congestion_window = (self.congestion_window / 2).max(2);
                self.retransmit();
            }
        }
    }

    fn take_data(&mut self, now: u64, segment: &Segment, random: &mut Random) {
        let range = (segment.position, segment.end());
        let is_already_received = range.1 <= self.received || self.out_of_order.contains(&range);
        self.duplicate = is_already_received.then_some(range).or(self.duplicate);
        if self.is_closed_window || segment.end() <= self.received {
            self.must_acknowledge = true;
            return;
        }
        if segment.position > self.received {
            self.out_of_order.retain(|block| *block != range);
            self.out_of_order.insert(0, range);
            self.must_acknowledge = true;
            return;
        }
        self.must_acknowledge |= !self.out_of_order.is_empty() || segment.fin;
        self.received = segment.end();
        while let Some(&(_, end)) = self
            .out_of_order
            .iter()
            .find(|(from, to)| *from <= self.received && *to > self.received)
        {
            self.received = end;
        }
        let received = self.received;
        self.out_of_order.retain(|(_, to)| *to > received);
        self.unacknowledged += 1;
        self.must_acknowledge |= self.unacknowledged >= 2;
        if self.may_stall && random.below(20) == 0 {
            self.is_closed_window = true;
            self.must_acknowledge = true;
            self.actions
                .push((now + 600 * MILLISECOND, EndAction::ReopenWindow));
        }
    }

    /// What the program does once it has read what it waits for.
    fn run_application(&mut self, now: u64, is_first: bool, random: &mut Random) {
        if is_first && self.is_client {
            self.actions
                .push((now + random.below(MILLISECOND), EndAction::SendRequest));
        }
        let rounds = &self.dialogue.0;
        let Some(&(_, processing_time, answer)) = rounds.get(self.round) else {
            let requested_bytes: u64 = rounds.iter().map(|round| round.0).sum();
            if !self.is_client && self.received > requested_bytes + 1 && !self.is_closing {
                self.is_closing = true;
            }
            return;
        };
        let until = |part: fn(&(u64, u64, u64)) -> u64| -> u64 {
            1 + rounds[..=self.round].iter().map(part).sum::<u64>()
        };
        if self.is_client && self.received >= until(|round| round.2) {
            self.round += 1;
            let is_last = self.round == self.dialogue.0.len();
            let next = if is_last {
                EndAction::Close
            } else {
                EndAction::SendRequest
            };
            self.actions
                .push((now + random.below(30 * MILLISECOND), next));
        } else if !self.is_client && self.received >= until(|round| round.0) {
            self.round += 1;
            let answer_time = now + processing_time + random.below(MILLISECOND);
            self.actions.push((answer_time, EndAction::Write(answer)));
        }
    }

    pub(super) fn act(&mut self, now: u64, action: EndAction) {
        match action {
            EndAction::RetransmissionTimeout(timer) if timer == self.timer => {
                self.retransmit_after_timeout();
            }
            EndAction::DelayedAck(timer) if timer == self.delayed_ack_timer => {
                self.must_acknowledge |= self.unacknowledged > 0;
            }
            EndAction::RetransmissionTimeout(_) | EndAction::DelayedAck(_) => {}
            EndAction::Write(length) => self.written += length,
            EndAction::SendRequest => self.written += self.dialogue.0[self.round].0,
            EndAction::ReopenWindow => {
                self.is_closed_window = false;
                self.must_acknowledge = true;
            }
            EndAction::Close if self.sends_keep_alive && self.next == self.acked => {
                self.sends_keep_alive = false;
                self.push(self.next - 1, 0);
                self.actions
                    .push((now + 100 * MILLISECOND, EndAction::Close));
            }
            EndAction::Close => self.is_closing = true,
        }
    }

    fn retransmit_after_timeout(&mut self) {
        self.is_timer_set = false;
        self.timer += 1;
        self.timeout = (self.timeout * 2).min(8_000 * MILLISECOND);
        if self.next > self.acked {
            self.recovery_end = Some(self.next);
            self.congestion_window = 2;
            self.retransmit();
        } else if self.next < self.written && self.peer_window == 0 {
            self.push(self.next, 1);
        }
    }

    fn retransmit(&mut self) {
        let data = self.written.min(self.next).saturating_sub(self.acked);
        let length = if self.acked == 0 {
            0
        } else {
            data.min(self.segment_size)
        };
        self.push(self.acked, length);
    }

    /// What is to be sent now, and done later.
    pub(super) fn take_output(&mut self, now: u64) -> (Vec<Segment>, Vec<(u64, EndAction)>) {
        if self.has_begun && self.next == 0 {
            self.push(0, 0);
            self.next = 1;
        }
        while self.acked > 0 {
            let window = (self.congestion_window * self.segment_size).min(self.peer_window);
            let room = (self.acked + window).saturating_sub(self.next);
            let length = (self.written.saturating_sub(self.next))
                .min(self.segment_size)
                .min(room);
            if length == 0 {
                break;
            }
            self.push(self.next, length);
            self.next += length;
        }
        if self.is_closing && self.acked > 0 && self.next == self.written {
            self.push(self.next, 0);
            self.next += 1;
        }
        if self.must_acknowledge && self.segments.is_empty() && self.received > 0 {
            self.push(self.next, 0);
        }
        self.set_timers(now);
        self.add_acknowledgements(now);
        (
            std::mem::take(&mut self.segments),
            std::mem::take(&mut self.actions),
        )
    }

    fn set_timers(&mut self, now: u64) {
        if self.segments.is_empty() {
            if self.unacknowledged == 1 {
                let action = EndAction::DelayedAck(self.delayed_ack_timer);
                self.actions.push((now + 40 * MILLISECOND, action));
            }
        } else {
            self.unacknowledged = 0;
            self.delayed_ack_timer += 1;
            self.must_acknowledge = false;
        }
        let is_blocked = self.peer_window == 0 && self.next < self.written;
        if !self.is_timer_set && (self.next > self.acked || is_blocked) {
            self.is_timer_set = true;
            let action = EndAction::RetransmissionTimeout(self.timer);
            self.actions.push((now + self.timeout, action));
        }
    }

    fn push(&mut self, position: u64, length: u64) {
        self.segments.push(Segment {
            is_repeated: position < self.highest,
            position,
            length: u32::try_from(length).expect("a segment"),
            ack: None,
            syn: position == 0,
            fin: length == 0
                && self.is_closing
                && position == self.written
                && position >= self.acked,
            window: 0,
            stamps: None,
            sack: Vec::new(),
        });
        let end = self.segments.last().map_or(0, Segment::end);
        self.highest = self.highest.max(end);
    }

    /// Fills in what a segment says of the other direction at the moment it leaves.
    fn add_acknowledgements(&mut self, now: u64) {
        let milliseconds = u32::try_from((now / MILLISECOND) & 0xffff_ffff).expect("32 bits");
        let window = match (self.is_closed_window, self.received) {
            (true, _) => 0,
            (false, 0) => 64_240,
            (false, _) => 2_000,
        };
        for segment in &mut self.segments {
            segment.ack = (self.received > 0).then_some(self.received);
            segment.window = window;
            let value = self.clock.map(|clock| clock.wrapping_add(milliseconds));
            segment.stamps = value.map(|value| (value, self.recent_timestamp));
            let duplicate = self.duplicate.take().into_iter();
            segment.sack = duplicate.chain(self.out_of_order.iter().copied()).collect();
        }
    }
}
