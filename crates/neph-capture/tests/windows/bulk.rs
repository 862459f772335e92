//! One transfer of a client that is captured at the client: segments evenly spaced, over a path whose queue fills
//! and drains, so that its round trip and the number of segments in flight go up and down together.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use crate::traffic::{CapturedPacket, Truth as OfPacket, pcap_packet};

const SEGMENT: u32 = 1_448;
const BEGIN: u64 = 1_700_000_000_000_000_000;
/// The longest round trip, when the queue is full; the shortest is a tenth of it.
const MAX_ROUND_TRIP_NANOS: u64 = 180_000_000;

/// What to transfer.
pub(super) struct Bulk {
    /// Segments in flight at most.
    window: u64,
    segments: u64,
    /// One of so many segments is lost behind the point of capture, once; 0: none.
    pub(super) lost_one_in: u64,
}

/// Round trips in nanoseconds of what was acknowledged exactly, sent once, and kept waiting by nothing; and by
/// the first echo of the first segment with each time stamp.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) acknowledged: Vec<i64>,
    pub(super) echoed: Vec<i64>,
}

/// A packet of either: when it passed, who sent it, sequence number (or acknowledgement), bytes, time stamps.
struct Packet {
    at: u64,
    by_client: bool,
    number: u32,
    length: u32,
    stamps: (u32, u32),
    flags: u8,
}

impl Bulk {
    /// With so many segments in flight when the queue is full.
    pub(super) fn of(window: u64) -> Self {
        Self {
            window,
            segments: (window * 8).max(6_000),
            lost_one_in: 0,
        }
    }

    fn gap(&self) -> u64 {
        MAX_ROUND_TRIP_NANOS / self.window
    }

    /// The round trip of a packet that passes at `at` after the beginning: up and down once in 400 ms or more.
    fn round_trip(at: u64) -> u64 {
        const HALF: u64 = MAX_ROUND_TRIP_NANOS * 3;
        let phase = at % (2 * HALF);
        let up = if phase < HALF {
            phase
        } else {
            2 * HALF - phase
        };
        MAX_ROUND_TRIP_NANOS / 10
            + (MAX_ROUND_TRIP_NANOS - MAX_ROUND_TRIP_NANOS / 10) * (up / 1_000) / (HALF / 1_000)
    }

    pub(super) fn write(&self, out: &mut impl Write) -> Truth {
        let mut packets = self.packets();
        packets.sort_by_key(|packet| (packet.at, !packet.by_client));
        let mut truth = Truth::default();
        let mut passed: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut stamped: BTreeMap<u32, Option<(u64, u32)>> = BTreeMap::new();
        let mut acked = 1;
        for packet in &packets {
            pcap_packet(&packet.captured(), out).expect("written");
            if packet.by_client && packet.length > 0 {
                let end = packet.number + packet.length;
                passed.entry(end).or_insert((packet.at, packet.at)).1 = packet.at;
                stamped
                    .entry(packet.stamps.0)
                    .or_insert(Some((packet.at, end)));
            } else if !packet.by_client && packet.flags == 0x10 {
                let elapsed = |since: u64| i64::try_from(packet.at - since).expect("short");
                let waited = |end: u32, since: u64| {
                    let below = passed.range(acked + 1..end);
                    below
                        .into_iter()
                        .any(|(_, (first, last))| first != last || *last > since)
                };
                if packet.number > acked
                    && let Some((first, last)) = passed.get(&packet.number)
                    && first == last
                    && !waited(packet.number, *first)
                {
                    truth.acknowledged.push(elapsed(*first));
                }
                acked = acked.max(packet.number);
                let echoed = stamped.get_mut(&packet.stamps.1).and_then(Option::take);
                if let Some((since, _)) = echoed.filter(|(_, end)| *end <= packet.number) {
                    truth.echoed.push(elapsed(since));
                }
            }
        }
        truth
    }

    /// All packets, of both sides.
    fn packets(&self) -> Vec<Packet> {
        let stamp = |at: u64| u32::try_from(at / 1_000_000).expect("short") + 1_000;
        let mut packets = handshake();
        // Arrivals at the server: when, the segment's place, when it passed.
        let mut arrivals: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let begin = 200_000_000;
        for index in 0..self.segments {
            let at = begin + index * self.gap();
            packets.push(data(at, index, stamp(at)));
            if self.lost_one_in == 0 || (index + 77) % self.lost_one_in > 0 {
                arrivals.insert((at + Self::round_trip(at), index), at);
            }
        }
        let mut got: BTreeSet<u64> = BTreeSet::new();
        let (mut next, mut waits, mut recent, mut repeated) = (0, 0, 0, 0);
        while let Some(((now, index), passed)) = arrivals.pop_first() {
            let in_order = index == next;
            if index <= next {
                // What a delayed acknowledgement echoes is the first that it answers.
                recent = if waits == 0 { stamp(passed) } else { recent };
            }
            got.insert(index);
            while got.remove(&next) {
                next += 1;
            }
            let filled = in_order && next > index + 1;
            waits += u64::from(in_order);
            if !in_order || filled || waits >= 2 {
                packets.push(acknowledgement(now, next, (stamp(now), recent)));
                waits = 0;
            }
            repeated = if in_order { 0 } else { repeated + 1 };
            if repeated == 3 {
                let retransmitted_at = now + 10_000;
                packets.push(data(retransmitted_at, next, stamp(retransmitted_at)));
                arrivals.insert(
                    (retransmitted_at + Self::round_trip(retransmitted_at), next),
                    retransmitted_at,
                );
            }
        }
        packets
    }
}

fn handshake() -> Vec<Packet> {
    let packet = |at, by_client, number, flags| Packet {
        at,
        by_client,
        number,
        length: 0,
        stamps: (900, 900),
        flags,
    };
    vec![
        packet(0, true, 0, 0x02),
        packet(18_000_000, false, 1, 0x12),
        packet(18_001_000, true, 1, 0x10),
    ]
}

fn data(at: u64, index: u64, stamp: u32) -> Packet {
    Packet {
        at,
        by_client: true,
        number: 1 + u32::try_from(index).expect("few") * SEGMENT,
        length: SEGMENT,
        stamps: (stamp, 900),
        flags: 0x18,
    }
}

fn acknowledgement(at: u64, next: u64, stamps: (u32, u32)) -> Packet {
    Packet {
        at,
        by_client: false,
        number: 1 + u32::try_from(next).expect("few") * SEGMENT,
        length: 0,
        stamps,
        flags: 0x10,
    }
}

impl Packet {
    /// Its headers, in Ethernet.
    fn captured(&self) -> CapturedPacket {
        let (from, to): (u8, u8) = if self.by_client { (1, 2) } else { (2, 1) };
        let ports: [u16; 2] = if self.by_client {
            [4_000, 80]
        } else {
            [80, 4_000]
        };
        let (seq, ack) = match (self.by_client, self.flags) {
            (true, 0x02) => (self.number, 0),
            (true, _) => (self.number, 1),
            (false, 0x12) => (0, 1),
            (false, _) => (1, self.number),
        };
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0]);
        let total = u16::try_from(52 + self.length).expect("a packet");
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x80, self.flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
        bytes.extend(self.stamps.0.to_be_bytes());
        bytes.extend(self.stamps.1.to_be_bytes());
        CapturedPacket {
            at: BEGIN + self.at,
            length: 14 + usize::from(total),
            bytes,
            truth: OfPacket {
                flow: 0,
                from: usize::from(!self.by_client),
                range: (0, 0),
                ack: None,
                is_repeated: false,
                is_spurious: false,
            },
        }
    }
}
