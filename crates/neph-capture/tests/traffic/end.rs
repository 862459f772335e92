//! One end of a simulated connection: what it sends when (RFC 9293, 5681, 6298, 2018, 7323).
//!
//! Owns numbers, windows and timers; positions count from its SYN and never wrap. Reads no clock.

use super::random::Random;
pub(super) use super::segment::Segment;

const MILLISECOND: u64 = 1_000_000;

/// What an end does without being told to by a segment.
#[derive(Clone, Copy)]
pub(super) enum Act {
    Timeout(u32),
    HeldBack(u32),
    Write(u64),
    Reopen,
    Ask,
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
            let think = [0, 0, 20, 60][random.pick(4)] * MILLISECOND;
            let longest = [100, 3_000, 60_000][random.pick(3)];
            let answer = 1 + random.below(longest);
            (request, think, answer)
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
    repeated: u32,
    recovers_until: Option<u64>,
    peer_window: u64,
    timeout: u64,
    timer: u32,
    is_timer_set: bool,
    // Receiving.
    got: u64,
    beyond: Vec<(u64, u64)>,
    /// What came twice, until it is reported (RFC 2883).
    duplicate: Option<(u64, u64)>,
    waits: u32,
    must_answer: bool,
    holds: u32,
    is_closed_window: bool,
    stalls: bool,
    stays_alive: bool,
    // Time stamps.
    clock: Option<u32>,
    recent: u32,
    segments: Vec<Segment>,
    acts: Vec<(u64, Act)>,
}

impl TcpEnd {
    /// Client and server of one connection.
    pub(super) fn both_ends(random: &mut Random, clean: bool, dialogue: &Dialogue) -> [Self; 2] {
        let stamps = clean || random.below(4) > 0;
        let size = [1448, 1448, 536, 14_480][random.pick(if clean { 2 } else { 4 })];
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
                segment_size: size,
                dialogue: dialogue.clone(),
                round: 0,
                acked: 0,
                next: 0,
                highest: 0,
                written: 1,
                is_closing: false,
                congestion_window: 10,
                repeated: 0,
                recovers_until: None,
                peer_window: 65_535,
                timeout: 250 * MILLISECOND,
                timer: 0,
                is_timer_set: false,
                got: 0,
                beyond: Vec::new(),
                duplicate: None,
                waits: 0,
                must_answer: false,
                holds: 0,
                is_closed_window: false,
                stalls: !clean && random.below(10) == 0,
                stays_alive: !clean && random.below(10) == 0,
                clock: stamps.then(|| first(random)),
                recent: 0,
                segments: Vec::new(),
                acts: Vec::new(),
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

    pub(super) fn arrive(&mut self, now: u64, segment: &Segment, random: &mut Random) {
        if let Some((value, _)) = segment.stamps
            && segment.position <= self.got
        {
            self.recent = value;
        }
        let is_first = segment.syn && self.got == 0;
        if segment.syn {
            self.has_begun = true;
            self.must_answer = !is_first || self.is_client;
            self.got = self.got.max(1);
        }
        if let Some(ack) = segment.ack {
            self.acknowledged(ack, segment);
        }
        if !segment.syn && segment.end() > segment.position {
            self.receive(now, segment, random);
        } else if !segment.syn && segment.position < self.got {
            // Asks whether somebody is still there.
            self.must_answer = true;
        }
        self.converse(now, is_first, random);
    }

    fn acknowledged(&mut self, ack: u64, segment: &Segment) {
        if !segment.syn {
            self.peer_window = u64::from(segment.window) << 7;
        }
        if ack > self.acked {
            self.acked = ack;
            self.next = self.next.max(ack);
            self.repeated = 0;
            self.congestion_window = (self.congestion_window + 1).min(60);
            self.timeout = 250 * MILLISECOND;
            self.timer += 1;
            self.is_timer_set = false;
            match self.recovers_until {
                Some(until) if ack < until => self.send_again(),
                _ => self.recovers_until = None,
            }
        } else if ack == self.acked && segment.end() == segment.position && self.next > self.acked {
            self.repeated += 1;
            if self.repeated == 3 && self.recovers_until.is_none() {
                self.recovers_until = Some(self.next);
                self.congestion_window = (self.congestion_window / 2).max(2);
                self.send_again();
            }
        }
    }

    fn receive(&mut self, now: u64, segment: &Segment, random: &mut Random) {
        let range = (segment.position, segment.end());
        let is_there = range.1 <= self.got || self.beyond.contains(&range);
        self.duplicate = is_there.then_some(range).or(self.duplicate);
        if self.is_closed_window || segment.end() <= self.got {
            self.must_answer = true;
            return;
        }
        if segment.position > self.got {
            self.beyond.retain(|block| *block != range);
            self.beyond.insert(0, range);
            self.must_answer = true;
            return;
        }
        self.must_answer |= !self.beyond.is_empty() || segment.fin;
        self.got = segment.end();
        while let Some(&(_, end)) = self
            .beyond
            .iter()
            .find(|(from, to)| *from <= self.got && *to > self.got)
        {
            self.got = end;
        }
        let got = self.got;
        self.beyond.retain(|(_, to)| *to > got);
        self.waits += 1;
        self.must_answer |= self.waits >= 2;
        if self.stalls && random.below(20) == 0 {
            self.is_closed_window = true;
            self.must_answer = true;
            self.acts.push((now + 600 * MILLISECOND, Act::Reopen));
        }
    }

    /// What the program does once it has read what it waits for.
    fn converse(&mut self, now: u64, is_first: bool, random: &mut Random) {
        if is_first && self.is_client {
            self.acts.push((now + random.below(MILLISECOND), Act::Ask));
        }
        let rounds = &self.dialogue.0;
        let Some(&(_, think, answer)) = rounds.get(self.round) else {
            let requested_bytes: u64 = rounds.iter().map(|round| round.0).sum();
            if !self.is_client && self.got > requested_bytes + 1 && !self.is_closing {
                self.is_closing = true;
            }
            return;
        };
        let until = |part: fn(&(u64, u64, u64)) -> u64| -> u64 {
            1 + rounds[..=self.round].iter().map(part).sum::<u64>()
        };
        if self.is_client && self.got >= until(|round| round.2) {
            self.round += 1;
            let is_last = self.round == self.dialogue.0.len();
            let next = if is_last { Act::Close } else { Act::Ask };
            self.acts.push((now + random.below(30 * MILLISECOND), next));
        } else if !self.is_client && self.got >= until(|round| round.0) {
            self.round += 1;
            self.acts
                .push((now + think + random.below(MILLISECOND), Act::Write(answer)));
        }
    }

    pub(super) fn act(&mut self, now: u64, act: Act) {
        match act {
            Act::Timeout(timer) if timer == self.timer => self.timed_out(),
            Act::HeldBack(holds) if holds == self.holds => self.must_answer |= self.waits > 0,
            Act::Timeout(_) | Act::HeldBack(_) => {}
            Act::Write(length) => self.written += length,
            Act::Ask => self.written += self.dialogue.0[self.round].0,
            Act::Reopen => {
                self.is_closed_window = false;
                self.must_answer = true;
            }
            Act::Close if self.stays_alive && self.next == self.acked => {
                self.stays_alive = false;
                self.push(self.next - 1, 0);
                self.acts.push((now + 100 * MILLISECOND, Act::Close));
            }
            Act::Close => self.is_closing = true,
        }
    }

    fn timed_out(&mut self) {
        self.is_timer_set = false;
        self.timer += 1;
        self.timeout = (self.timeout * 2).min(8_000 * MILLISECOND);
        if self.next > self.acked {
            self.recovers_until = Some(self.next);
            self.congestion_window = 2;
            self.send_again();
        } else if self.next < self.written && self.peer_window == 0 {
            self.push(self.next, 1);
        }
    }

    fn send_again(&mut self) {
        let data = self.written.min(self.next).saturating_sub(self.acked);
        let length = if self.acked == 0 {
            0
        } else {
            data.min(self.segment_size)
        };
        self.push(self.acked, length);
    }

    /// What is to be sent now, and done later.
    pub(super) fn turn(&mut self, now: u64) -> (Vec<Segment>, Vec<(u64, Act)>) {
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
        if self.must_answer && self.segments.is_empty() && self.got > 0 {
            self.push(self.next, 0);
        }
        self.set_timers(now);
        self.finish(now);
        (
            std::mem::take(&mut self.segments),
            std::mem::take(&mut self.acts),
        )
    }

    fn set_timers(&mut self, now: u64) {
        if self.segments.is_empty() {
            if self.waits == 1 {
                self.acts
                    .push((now + 40 * MILLISECOND, Act::HeldBack(self.holds)));
            }
        } else {
            self.waits = 0;
            self.holds += 1;
            self.must_answer = false;
        }
        let is_blocked = self.peer_window == 0 && self.next < self.written;
        if !self.is_timer_set && (self.next > self.acked || is_blocked) {
            self.is_timer_set = true;
            self.acts
                .push((now + self.timeout, Act::Timeout(self.timer)));
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
    fn finish(&mut self, now: u64) {
        let milliseconds = u32::try_from((now / MILLISECOND) & 0xffff_ffff).expect("32 bits");
        let window = match (self.is_closed_window, self.got) {
            (true, _) => 0,
            (false, 0) => 64_240,
            (false, _) => 2_000,
        };
        for segment in &mut self.segments {
            segment.ack = (self.got > 0).then_some(self.got);
            segment.window = window;
            let value = self.clock.map(|clock| clock.wrapping_add(milliseconds));
            segment.stamps = value.map(|value| (value, self.recent));
            let duplicate = self.duplicate.take().into_iter();
            segment.sack = duplicate.chain(self.beyond.iter().copied()).collect();
        }
    }
}
