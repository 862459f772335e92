//! A path with two to eight points of capture whose every delay is known, and its captures.

use std::collections::HashMap;
use std::fs;

use crate::neph::TestFolder;

pub(super) const SECOND: i64 = 1_000_000_000;
pub(super) const START: i64 = 1_795_000_000 * SECOND;

/// How the path is.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathModel {
    pub(super) points: usize,
    /// The least delay of a segment, in nanoseconds, the same both ways.
    pub(super) min_delay: i64,
    /// Queues add up to this.
    pub(super) queue: i64,
    /// Of 1,000 packets so many are lost in each segment.
    pub(super) lost: u64,
    /// And so many become two.
    pub(super) duplicated: u64,
    /// Segments are cut behind the first point, and joined again at the last.
    pub(super) offload: bool,
    /// The first point calls the server otherwise.
    pub(super) nat: bool,
    /// The second point sees everything in VXLAN.
    pub(super) vxlan: bool,
}

impl PathModel {
    pub(super) const PLAIN: Self = Self {
        points: 2,
        min_delay: 200_000,
        queue: 3_000_000,
        lost: 0,
        duplicated: 0,
        offload: false,
        nat: false,
        vxlan: false,
    };
}

/// What happened to a packet.
#[derive(Debug, Clone)]
pub(super) struct Truth {
    pub(super) is_reverse: bool,
    pub(super) protocol: &'static str,
    /// When its last byte passed each point, by the true time.
    pub(super) passed_at: Vec<Option<i64>>,
    pub(super) lost_in: Option<usize>,
}

/// A capture: the true time, and the bytes.
type Capture = Vec<(i64, Vec<u8>)>;

/// Numbers as they come, seeded.
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn below(&mut self, max_queue: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % max_queue.max(1)
    }
}

/// What is on its way over the path.
struct PacketInFlight {
    is_reverse: bool,
    protocol: &'static str,
    /// As each point sees it: one packet, or several in a row.
    packets_at_points: Vec<Vec<Vec<u8>>>,
}

/// Everything that was simulated.
pub(super) struct Simulation {
    pub(super) path: PathModel,
    pub(super) truths: Vec<Truth>,
    captures: Vec<Capture>,
    random: SeededRandom,
    /// The protocol of each, and whether it went back.
    copies: Vec<(&'static str, bool)>,
}

impl Simulation {
    /// Requests and replies of three protocols, so many of each, one each 2 ms.
    pub(super) fn of(path: PathModel, rounds: u32, seed: u64) -> Self {
        let mut simulated = Self {
            path,
            truths: Vec::new(),
            captures: vec![Vec::new(); path.points],
            random: SeededRandom(seed | 1),
            copies: Vec::new(),
        };
        let mut at = START;
        for round in 0..rounds {
            for protocol in ["icmp", "udp", "tcp"] {
                at += 2_000_000;
                let request = simulated.packet(protocol, round, false);
                let arrival = simulated.send(at, &request);
                if let Some(arrival) = arrival {
                    let reply = simulated.packet(protocol, round, true);
                    simulated.send(arrival + 50_000, &reply);
                }
            }
        }
        for capture in &mut simulated.captures {
            capture.sort_by_key(|(at, _)| *at);
        }
        simulated
    }

    /// Copies that were made of packets of a protocol this way, all segments together.
    pub(super) fn copies(&self, protocol: &str, is_reverse: bool) -> usize {
        let copies = self.copies.iter();
        copies.filter(|of| **of == (protocol, is_reverse)).count()
    }

    fn packet(&mut self, protocol: &'static str, round: u32, is_reverse: bool) -> PacketInFlight {
        let packets_at_points = (0..self.path.points)
            .map(|point| self.packets_at(point, (protocol, round), is_reverse));
        PacketInFlight {
            is_reverse,
            protocol,
            packets_at_points: packets_at_points.collect(),
        }
    }

    /// What a point sees of it.
    fn packets_at(
        &self,
        point: usize,
        (protocol, round): (&str, u32),
        is_reverse: bool,
    ) -> Vec<Vec<u8>> {
        let number = u16::try_from(round * 2 % 65_536).expect("16 bits") + u16::from(is_reverse);
        let server = if self.path.nat && point == 0 { 77 } else { 2 };
        let ends = if is_reverse { (server, 1) } else { (1, server) };
        let bodies: Vec<(u16, Vec<u8>)> = match protocol {
            "icmp" => vec![(number, icmp(round, is_reverse))],
            "udp" => vec![(number, udp(round, is_reverse))],
            _ => {
                let is_split = self.path.offload && !is_reverse && point > 0;
                let cuts: &[(u32, u32)] = match (is_split, point + 1 == self.path.points) {
                    (false, _) => &[(0, 6_000)],
                    (true, true) if self.path.points > 2 => &[(0, 3_000), (3_000, 6_000)],
                    (true, _) => &[(0, 1_500), (1_500, 3_000), (3_000, 4_500), (4_500, 6_000)],
                };
                if is_reverse {
                    vec![(number, tcp(round, true, (0, 0)))]
                } else {
                    let parts = (0_u16..).zip(cuts);
                    parts
                        .map(|(part, cut)| (number.wrapping_add(part), tcp(round, false, *cut)))
                        .collect()
                }
            }
        };
        let protocol = match protocol {
            "icmp" => 1,
            "udp" => 17,
            _ => 6,
        };
        let packets = bodies
            .into_iter()
            .map(|(id, body)| ipv4(protocol, id, ends, &body));
        let wrapped = packets.map(|packet| {
            if self.path.vxlan && point == 1 {
                vxlan(&packet)
            } else {
                packet
            }
        });
        wrapped.collect()
    }

    /// Lets it travel; when it came to the far end.
    fn send(&mut self, at: i64, packet: &PacketInFlight) -> Option<i64> {
        let points = self.path.points;
        let mut truth = Truth {
            is_reverse: packet.is_reverse,
            protocol: packet.protocol,
            passed_at: vec![None; points],
            lost_in: None,
        };
        let mut now = at;
        let mut copies_sent = 1;
        for step in 0..points {
            let point = if packet.is_reverse {
                points - 1 - step
            } else {
                step
            };
            if step > 0 {
                let segment = if packet.is_reverse { point } else { point - 1 };
                if copies_sent == 1 && self.random.below(1_000) < self.path.lost {
                    truth.lost_in = Some(segment);
                    break;
                }
                if copies_sent == 1 && self.random.below(1_000) < self.path.duplicated {
                    copies_sent = 2;
                    self.copies.push((packet.protocol, packet.is_reverse));
                }
                now += self.path.min_delay + self.queue();
            }
            let packets = &packet.packets_at_points[point];
            for copy in 0..copies_sent {
                for (part, bytes) in packets.iter().enumerate() {
                    // The last byte comes last; parts are 2 us from each other.
                    let before = i64::try_from(packets.len() - 1 - part).expect("few") * 2_000;
                    let at = now - before + copy * 40_000;
                    self.captures[point].push((at, bytes.clone()));
                }
            }
            truth.passed_at[point] = Some(now);
        }
        let is_delivered = truth.lost_in.is_none();
        self.truths.push(truth);
        is_delivered.then_some(now)
    }

    /// Most packets meet little of a queue.
    fn queue(&mut self) -> i64 {
        let max_queue = u64::try_from(self.path.queue).expect("not below zero");
        let share = self.random.below(1_000) * self.random.below(1_000);
        i64::try_from(max_queue * share / 1_000_000 * self.random.below(1_000) / 1_000)
            .expect("small")
    }

    /// Writes the captures by these clocks, and says which packet a stamp is of: its point and what it
    /// showed.
    pub(super) fn write(
        &mut self,
        folder: &TestFolder,
        clock: impl Fn(usize, i64) -> i64,
    ) -> (Vec<String>, HashMap<(usize, i64), usize>) {
        let mut stamps = HashMap::new();
        for (number, truth) in self.truths.iter().enumerate() {
            for (point, at) in truth.passed_at.iter().enumerate() {
                if let Some(at) = at {
                    stamps.insert((point, clock(point, *at)), number);
                }
            }
        }
        let files = self.captures.iter().enumerate().map(|(point, capture)| {
            let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
            file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
            let link: u32 = if self.path.vxlan && point == 1 {
                1
            } else {
                101
            };
            file.extend(link.to_le_bytes());
            for (at, bytes) in capture {
                let at = clock(point, *at);
                let length = i64::try_from(bytes.len()).expect("short");
                let captured_length = length.min(160);
                for field in [at / SECOND, at % SECOND, captured_length, length] {
                    file.extend(u32::try_from(field).expect("32 bits").to_le_bytes());
                }
                file.extend(&bytes[..usize::try_from(captured_length).expect("short")]);
            }
            let name = format!("p{point}");
            let path = folder.path(&format!("{name}.pcap"));
            fs::write(&path, file).expect("a file");
            format!("{name}={}", path.display())
        });
        (files.collect(), stamps)
    }
}

fn ipv4(protocol: u8, number: u16, (from, to): (u8, u8), body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(u16::try_from(20 + body.len()).expect("short").to_be_bytes());
    packet.extend(number.to_be_bytes());
    packet.extend([0x40, 0, 64, protocol, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
    packet.extend(body);
    packet
}

fn icmp(round: u32, is_reverse: bool) -> Vec<u8> {
    let mut body = vec![if is_reverse { 0 } else { 8 }, 0, 9, 9];
    body.extend(((round % 65_536) | (7 << 16)).to_be_bytes());
    body.extend([3; 56]);
    body
}

fn udp(round: u32, is_reverse: bool) -> Vec<u8> {
    let (a, b) = (5_000_u16.to_be_bytes(), 53_u16.to_be_bytes());
    let mut body = if is_reverse { [b, a] } else { [a, b] }.concat();
    body.extend([0, 28, 0, 0]);
    body.extend(round.to_be_bytes());
    body.extend([4; 16]);
    body
}

/// Part of a round's 6,000 bytes, or their acknowledgement.
fn tcp(round: u32, is_reverse: bool, (from, to): (u32, u32)) -> Vec<u8> {
    let (a, b) = (6_000_u16.to_be_bytes(), 80_u16.to_be_bytes());
    let mut body = if is_reverse { [b, a] } else { [a, b] }.concat();
    let begin = 4_294_900_000_u32.wrapping_add(round * 6_000);
    let (seq, ack) = if is_reverse {
        (7, begin.wrapping_add(6_000))
    } else {
        (begin.wrapping_add(from), 7)
    };
    body.extend(seq.to_be_bytes());
    body.extend(ack.to_be_bytes());
    let flags = if to == 6_000 { 0x18 } else { 0x10 };
    body.extend([0x80, flags, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    body.extend((round * 6 + 1).to_be_bytes());
    body.extend((round * 6).to_be_bytes());
    body.resize(body.len() + usize::try_from(to - from).expect("short"), 5);
    body
}

/// In Ethernet in VXLAN in UDP in IPv4 in Ethernet.
fn vxlan(packet: &[u8]) -> Vec<u8> {
    let ethernet = |inner_frame: &[u8]| [&[2; 12][..], &[8, 0], inner_frame].concat();
    let inner_frame = ethernet(packet);
    let mut datagram = [49_152_u16, 4_789].map(u16::to_be_bytes).concat();
    let length = u16::try_from(16 + inner_frame.len()).expect("short");
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0, 8, 0, 0, 0, 0, 0, 9, 0]);
    datagram.extend(inner_frame);
    ethernet(&ipv4(17, 1, (101, 102), &datagram))
}
