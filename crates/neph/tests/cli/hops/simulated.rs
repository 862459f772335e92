//! A path with two to eight points of capture whose every delay is known, and its captures.

use std::collections::HashMap;
use std::fs;

use crate::neph::TestFolder;

pub(super) const SECOND: i64 = 1_000_000_000;
pub(super) const START: i64 = 1_795_000_000 * SECOND;

/// How the path is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) points: usize,
    /// The least delay of a segment, in nanoseconds, the same both ways.
    pub(super) least: i64,
    /// Queues add up to this.
    pub(super) queue: i64,
    /// Of 1,000 packets so many are lost in each segment.
    pub(super) lost: u64,
    /// And so many become two.
    pub(super) doubled: u64,
    /// Segments are cut behind the first point, and joined again at the last.
    pub(super) offload: bool,
    /// The first point calls the server otherwise.
    pub(super) nat: bool,
    /// The second point sees everything in VXLAN.
    pub(super) vxlan: bool,
}

impl Path {
    pub(super) const PLAIN: Self = Self {
        points: 2,
        least: 200_000,
        queue: 3_000_000,
        lost: 0,
        doubled: 0,
        offload: false,
        nat: false,
        vxlan: false,
    };
}

/// What happened to a packet.
#[derive(Debug, Clone)]
pub(super) struct Truth {
    pub(super) is_back: bool,
    pub(super) protocol: &'static str,
    /// When its last byte passed each point, by the true time.
    pub(super) at: Vec<Option<i64>>,
    pub(super) lost_in: Option<usize>,
}

/// A capture: the true time, and the bytes.
type Capture = Vec<(i64, Vec<u8>)>;

/// Numbers as they come, seeded.
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

/// What is on its way over the path.
struct PacketInFlight {
    is_back: bool,
    protocol: &'static str,
    /// As each point sees it: one packet, or several in a row.
    looks: Vec<Vec<Vec<u8>>>,
}

/// Everything that was simulated.
pub(super) struct Simulated {
    pub(super) path: Path,
    pub(super) truths: Vec<Truth>,
    captures: Vec<Capture>,
    dice: SeededRandom,
    /// The protocol of each, and whether it went back.
    copies: Vec<(&'static str, bool)>,
}

impl Simulated {
    /// Requests and replies of three protocols, so many of each, one each 2 ms.
    pub(super) fn of(path: Path, rounds: u32, seed: u64) -> Self {
        let mut simulated = Self {
            path,
            truths: Vec::new(),
            captures: vec![Vec::new(); path.points],
            dice: SeededRandom(seed | 1),
            copies: Vec::new(),
        };
        let mut at = START;
        for round in 0..rounds {
            for protocol in ["icmp", "udp", "tcp"] {
                at += 2_000_000;
                let request = simulated.packet(protocol, round, false);
                let came = simulated.send(at, &request);
                if let Some(came) = came {
                    let reply = simulated.packet(protocol, round, true);
                    simulated.send(came + 50_000, &reply);
                }
            }
        }
        for capture in &mut simulated.captures {
            capture.sort_by_key(|(at, _)| *at);
        }
        simulated
    }

    /// Copies that were made of packets of a protocol this way, all segments together.
    pub(super) fn copies(&self, protocol: &str, is_back: bool) -> usize {
        let copies = self.copies.iter();
        copies.filter(|of| **of == (protocol, is_back)).count()
    }

    fn packet(&mut self, protocol: &'static str, round: u32, is_back: bool) -> PacketInFlight {
        let looks = (0..self.path.points).map(|point| self.look(point, (protocol, round), is_back));
        PacketInFlight {
            is_back,
            protocol,
            looks: looks.collect(),
        }
    }

    /// What a point sees of it.
    fn look(&self, point: usize, (protocol, round): (&str, u32), is_back: bool) -> Vec<Vec<u8>> {
        let number = u16::try_from(round * 2 % 65_536).expect("16 bits") + u16::from(is_back);
        let server = if self.path.nat && point == 0 { 77 } else { 2 };
        let ends = if is_back { (server, 1) } else { (1, server) };
        let bodies: Vec<(u16, Vec<u8>)> = match protocol {
            "icmp" => vec![(number, icmp(round, is_back))],
            "udp" => vec![(number, udp(round, is_back))],
            _ => {
                let is_cut = self.path.offload && !is_back && point > 0;
                let cuts: &[(u32, u32)] = match (is_cut, point + 1 == self.path.points) {
                    (false, _) => &[(0, 6_000)],
                    (true, true) if self.path.points > 2 => &[(0, 3_000), (3_000, 6_000)],
                    (true, _) => &[(0, 1_500), (1_500, 3_000), (3_000, 4_500), (4_500, 6_000)],
                };
                if is_back {
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
    fn send(&mut self, at: i64, sent: &PacketInFlight) -> Option<i64> {
        let points = self.path.points;
        let mut truth = Truth {
            is_back: sent.is_back,
            protocol: sent.protocol,
            at: vec![None; points],
            lost_in: None,
        };
        let mut now = at;
        let mut times = 1;
        for step in 0..points {
            let point = if sent.is_back {
                points - 1 - step
            } else {
                step
            };
            if step > 0 {
                let segment = if sent.is_back { point } else { point - 1 };
                if times == 1 && self.dice.below(1_000) < self.path.lost {
                    truth.lost_in = Some(segment);
                    break;
                }
                if times == 1 && self.dice.below(1_000) < self.path.doubled {
                    times = 2;
                    self.copies.push((sent.protocol, sent.is_back));
                }
                now += self.path.least + self.queue();
            }
            let looks = &sent.looks[point];
            for copy in 0..times {
                for (part, bytes) in looks.iter().enumerate() {
                    // The last byte comes last; parts are 2 us from each other.
                    let before = i64::try_from(looks.len() - 1 - part).expect("few") * 2_000;
                    let at = now - before + copy * 40_000;
                    self.captures[point].push((at, bytes.clone()));
                }
            }
            truth.at[point] = Some(now);
        }
        let has_come = truth.lost_in.is_none();
        self.truths.push(truth);
        has_come.then_some(now)
    }

    /// Most packets meet little of a queue.
    fn queue(&mut self) -> i64 {
        let limit = u64::try_from(self.path.queue).expect("not below zero");
        let share = self.dice.below(1_000) * self.dice.below(1_000);
        i64::try_from(limit * share / 1_000_000 * self.dice.below(1_000) / 1_000).expect("small")
    }

    /// Writes the captures by these clocks, and says which packet a stamp is of: its point and what it
    /// showed.
    pub(super) fn write(
        &mut self,
        folder: &TestFolder,
        shows: impl Fn(usize, i64) -> i64,
    ) -> (Vec<String>, HashMap<(usize, i64), usize>) {
        let mut stamps = HashMap::new();
        for (number, truth) in self.truths.iter().enumerate() {
            for (point, at) in truth.at.iter().enumerate() {
                if let Some(at) = at {
                    stamps.insert((point, shows(point, *at)), number);
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
                let at = shows(point, *at);
                let length = i64::try_from(bytes.len()).expect("short");
                let kept_count = length.min(160);
                for field in [at / SECOND, at % SECOND, kept_count, length] {
                    file.extend(u32::try_from(field).expect("32 bits").to_le_bytes());
                }
                file.extend(&bytes[..usize::try_from(kept_count).expect("short")]);
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

fn icmp(round: u32, is_back: bool) -> Vec<u8> {
    let mut body = vec![if is_back { 0 } else { 8 }, 0, 9, 9];
    body.extend(((round % 65_536) | (7 << 16)).to_be_bytes());
    body.extend([3; 56]);
    body
}

fn udp(round: u32, is_back: bool) -> Vec<u8> {
    let (a, b) = (5_000_u16.to_be_bytes(), 53_u16.to_be_bytes());
    let mut body = if is_back { [b, a] } else { [a, b] }.concat();
    body.extend([0, 28, 0, 0]);
    body.extend(round.to_be_bytes());
    body.extend([4; 16]);
    body
}

/// Part of a round's 6,000 bytes, or their acknowledgement.
fn tcp(round: u32, is_back: bool, (from, to): (u32, u32)) -> Vec<u8> {
    let (a, b) = (6_000_u16.to_be_bytes(), 80_u16.to_be_bytes());
    let mut body = if is_back { [b, a] } else { [a, b] }.concat();
    let begin = 4_294_900_000_u32.wrapping_add(round * 6_000);
    let (seq, ack) = if is_back {
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
    let ethernet = |inside: &[u8]| [&[2; 12][..], &[8, 0], inside].concat();
    let inside = ethernet(packet);
    let mut datagram = [49_152_u16, 4_789].map(u16::to_be_bytes).concat();
    let length = u16::try_from(16 + inside.len()).expect("short");
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0, 8, 0, 0, 0, 0, 0, 9, 0]);
    datagram.extend(inside);
    ethernet(&ipv4(17, 1, (101, 102), &datagram))
}
