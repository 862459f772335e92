//! TCP connections over bad paths, as a point between their ends captures them: a seeded simulation
//! that shares no code with what reads captures.
//!
//! Each connection has a path with delay, jitter, loss and reordering on either side of the point of
//! capture, two ends with retransmission timers, fast retransmission, SACK, delayed acknowledgements,
//! time stamps and windows, and a dialogue of requests and answers.

mod end;
mod frame;
mod random;
mod segment;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io::{self, Write};

use end::{EndAction, TcpEnd};
use frame::{Addresses, frame};
use random::Random;
use segment::Segment;

/// Which end of a connection: the client is 0.
type EndIndex = usize;

/// What to make.
#[derive(Clone, Copy)]
pub(crate) struct TrafficSpec {
    pub(crate) flows: u32,
    /// Requests of each flow, at most.
    pub(crate) requests: u64,
    /// Nanoseconds from one flow's beginning to the next one's, on average.
    pub(crate) spacing_nanos: u64,
    pub(crate) seed: u64,
    /// Without loss, reordering, stalls and cut packets.
    pub(crate) is_clean: bool,
}

/// What a packet really is, in positions of its sender that never wrap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Truth {
    pub(crate) flow: u32,
    pub(crate) from: usize,
    /// Its first position, and that behind its last.
    pub(crate) range: (u64, u64),
    pub(crate) ack: Option<u64>,
    /// It holds what its sender had sent before.
    pub(crate) is_repeated: bool,
    /// All of it is there also with what its sender had sent before.
    pub(crate) is_spurious: bool,
}

/// A captured packet.
pub(crate) struct CapturedPacket {
    /// Nanoseconds since 1970.
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
    /// Bytes on the wire.
    pub(crate) length: usize,
    pub(crate) truth: Truth,
}

impl PartialEq for CapturedPacket {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for CapturedPacket {}

impl PartialOrd for CapturedPacket {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By time; what was captured at the same time has an order too.
impl Ord for CapturedPacket {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.truth).cmp(&(other.at, other.truth))
    }
}

/// Hands out all packets in the order of their capture.
pub(crate) fn traffic(spec: TrafficSpec, mut on_packet: impl FnMut(CapturedPacket)) {
    let mut random = Random(spec.seed);
    let mut start = 1_700_000_000_000_000_000;
    let mut pending: BinaryHeap<Reverse<CapturedPacket>> = BinaryHeap::new();
    for number in 0..spec.flows {
        start += random.below(spec.spacing_nanos * 2 + 1);
        while let Some(Reverse(captured)) = pop_before(&mut pending, start) {
            on_packet(captured);
        }
        let flow = Connection::new(number, spec, &mut random).run(start);
        pending.extend(flow.into_iter().map(Reverse));
    }
    while let Some(Reverse(captured)) = pending.pop() {
        on_packet(captured);
    }
}

fn pop_before(
    pending: &mut BinaryHeap<Reverse<CapturedPacket>>,
    until: u64,
) -> Option<Reverse<CapturedPacket>> {
    let is_before = pending
        .peek()
        .is_some_and(|Reverse(captured)| captured.at < until);
    is_before.then(|| pending.pop()).flatten()
}

/// The beginning of a pcap file of Ethernet frames with nanoseconds.
pub(crate) fn pcap_header(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
    out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0])
}

/// A packet of a pcap file.
pub(crate) fn pcap_packet(captured: &CapturedPacket, out: &mut impl Write) -> io::Result<()> {
    let small = |number: u64| u32::try_from(number).expect("fits");
    let fields = [
        small(captured.at / 1_000_000_000),
        small(captured.at % 1_000_000_000),
        small(captured.bytes.len() as u64),
        small(captured.length as u64),
    ];
    for field in fields {
        out.write_all(&field.to_le_bytes())?;
    }
    out.write_all(&captured.bytes)
}

/// One side of the point of capture.
#[derive(Clone, Copy)]
struct PathSide {
    delay: u64,
    jitter: u64,
    loss: u64,
    reorder: u64,
}

impl PathSide {
    fn draw(random: &mut Random, is_clean: bool) -> Self {
        let bad = |random: &mut Random, limit| if is_clean { 0 } else { random.below(limit) };
        let delay = [10_000, 200_000, 5_000_000, 40_000_000][random.pick(4)];
        Self {
            delay: delay + random.below(delay),
            jitter: delay / 20,
            // Out of a thousand; half of the paths lose nothing.
            loss: bad(random, 60).saturating_sub(30),
            reorder: bad(random, 40).saturating_sub(25),
        }
    }

    /// When a packet that left at `now` arrives, behind `last` unless it is reordered.
    fn cross(&self, now: u64, last: &mut u64, random: &mut Random) -> Option<u64> {
        if random.below(1000) < self.loss {
            return None;
        }
        let at = now + self.delay + random.below(self.jitter + 1);
        if random.below(1000) < self.reorder {
            return Some(at + random.below(3_000_000));
        }
        *last = at.max(*last + 1_000);
        Some(*last)
    }
}

enum SimEvent {
    Begin,
    /// A segment, and its place among those captured.
    Arrive(EndIndex, Segment, usize),
    Action(EndIndex, EndAction),
}

struct Connection {
    number: u32,
    ends: [TcpEnd; 2],
    /// From each end to the point of capture and back.
    path_sides: [PathSide; 2],
    /// When the last packet arrived: towards the capture, towards the end.
    last: [[u64; 2]; 2],
    addresses: Addresses,
    random: Random,
    event_queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    planned_events: Vec<Option<SimEvent>>,
    captured_packets: Vec<CapturedPacket>,
    /// Whether each of these arrives, and finds an open window.
    is_accepted: Vec<bool>,
}

impl Connection {
    fn new(number: u32, spec: TrafficSpec, random: &mut Random) -> Self {
        let mut random = Random(random.next());
        let is_clean = spec.is_clean;
        let path_sides = [0, 1].map(|_| PathSide::draw(&mut random, is_clean));
        let dialogue = end::Dialogue::draw(&mut random, spec.requests);
        let ends = TcpEnd::both_ends(&mut random, is_clean, &dialogue);
        Self {
            number,
            ends,
            path_sides,
            last: [[0; 2]; 2],
            addresses: Addresses::draw(number, &mut random, is_clean),
            random,
            event_queue: BinaryHeap::new(),
            planned_events: Vec::new(),
            captured_packets: Vec::new(),
            is_accepted: Vec::new(),
        }
    }

    /// Says of what was sent again whether that was for nothing.
    fn mark_truth(&mut self) {
        for index in 0..self.captured_packets.len() {
            let truth = self.captured_packets[index].truth;
            let earlier = self.captured_packets[..index].iter().zip(&self.is_accepted);
            let earlier_ranges = earlier.filter(|(captured, is_accepted)| {
                **is_accepted && captured.truth.from == truth.from
            });
            let mut earlier_ranges: Vec<(u64, u64)> = earlier_ranges
                .map(|(captured, _)| captured.truth.range)
                .collect();
            earlier_ranges.sort_unstable();
            let mut covered_until = truth.range.0;
            for (from, to) in earlier_ranges {
                covered_until = if from <= covered_until {
                    covered_until.max(to)
                } else {
                    covered_until
                };
            }
            let is_covered = truth.range.0 < truth.range.1 && covered_until >= truth.range.1;
            self.captured_packets[index].truth.is_spurious = truth.is_repeated && is_covered;
        }
    }

    fn run(mut self, start: u64) -> Vec<CapturedPacket> {
        self.plan(start, SimEvent::Begin);
        let mut steps = 0;
        while let Some(Reverse((now, _, index))) = self.event_queue.pop() {
            steps += 1;
            // Two ends that lose everything give up.
            if steps > 20_000 || now > start + 120_000_000_000 {
                break;
            }
            let event = self.planned_events[index].take().expect("planned once");
            let end_index = match event {
                SimEvent::Begin => {
                    self.ends[0].begin();
                    0
                }
                SimEvent::Arrive(end_index, segment, index) => {
                    self.is_accepted[index] = !self.ends[end_index].is_closed();
                    self.ends[end_index].receive_segment(now, &segment, &mut self.random);
                    end_index
                }
                SimEvent::Action(end_index, action) => {
                    self.ends[end_index].act(now, action);
                    end_index
                }
            };
            let (segments, actions) = self.ends[end_index].take_output(now);
            for segment in segments {
                self.send(now, end_index, segment);
            }
            for (at, action) in actions {
                self.plan(at, SimEvent::Action(end_index, action));
            }
        }
        self.mark_truth();
        self.captured_packets
    }

    fn plan(&mut self, at: u64, event: SimEvent) {
        self.planned_events.push(Some(event));
        let order = self.planned_events.len();
        self.event_queue
            .push(Reverse((at, order as u64, order - 1)));
    }

    fn send(&mut self, now: u64, from: EndIndex, segment: Segment) {
        let to = 1 - from;
        let (near_side, far_side) = (self.path_sides[from], self.path_sides[to]);
        let Some(at) = near_side.cross(now, &mut self.last[from][0], &mut self.random) else {
            return;
        };
        let iss = [self.ends[0].iss, self.ends[1].iss];
        let (bytes, length) = frame(&self.addresses, from, &segment, iss);
        let truth = Truth {
            flow: self.number,
            from,
            range: (segment.position, segment.end()),
            ack: segment.ack,
            is_repeated: segment.is_repeated,
            is_spurious: false,
        };
        self.captured_packets.push(CapturedPacket {
            at,
            bytes,
            length,
            truth,
        });
        self.is_accepted.push(false);
        if let Some(arrives_at) = far_side.cross(at, &mut self.last[to][1], &mut self.random) {
            let index = self.captured_packets.len() - 1;
            self.plan(arrives_at, SimEvent::Arrive(to, segment, index));
        }
    }
}
