//! A packet as it is kept while captures are read: what of it is needed once its bytes are gone.
//!
//! Owns marks (a stamp at each point that it passed) and what ties packets to their answers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, SocketAddr};

use foldhash::quality::RandomState;
use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::{ICMP, TcpHeader, tcp_timestamps};

use crate::identity::COUNTED;

/// No further packet, or none at all.
pub(super) const NONE: u32 = u32::MAX;
/// Instead of a stamp, where a packet did not pass.
const UNSEEN: i64 = i64::MIN;

/// Who sends to whom, by the names that hold at points without translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flowing {
    /// What it carries, by its number in IP.
    pub protocol: u8,
    /// Where it comes from; port 0 where it has none.
    pub source: SocketAddr,
    /// Where it goes; port 0 where it has none.
    pub destination: SocketAddr,
}

impl Flowing {
    pub(super) const fn reversed(self) -> Self {
        Self {
            protocol: self.protocol,
            source: self.destination,
            destination: self.source,
        }
    }

    /// From the lower address to the higher.
    pub(super) fn is_upward(self) -> bool {
        self.source < self.destination
    }
}

/// What a packet has to do with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// An echo that is asked for, its number in `seq`.
    Echo,
    /// An echo, its number in `seq`.
    Reply,
    /// A segment that acknowledges `ack`.
    Acknowledging,
    /// A segment that acknowledges nothing.
    Segment,
    /// A fragment behind the first: of which datagram between its hosts is not known.
    Piece,
    /// A datagram, or whatever else.
    Other,
}

/// What became of it when all captures were over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is followed.
    Followed,
    /// It is part of a larger one, which is followed.
    Part,
    /// The network made it of another one, or a point showed one again.
    Copy,
    /// Others are like it, and which is which cannot be told.
    Alike,
}

/// 28 bytes, and 8 for each point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    /// A number of its flow.
    pub(super) flow: u32,
    /// The next one that is like it.
    pub(super) next: u32,
    /// What all parts of a segment that was cut share; of a datagram how it begins.
    pub(super) train: u32,
    /// The first byte's number; of a datagram its own, in IP.
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Numbers that a segment takes: its bytes, SYN and FIN; of a datagram its bytes. 0 of others.
    pub(super) length: u32,
    pub(super) kind: Kind,
    pub(super) has_data: bool,
    /// Nobody sends another one like it soon after: its sender numbered it, in IP or above.
    pub(super) is_named: bool,
    pub(super) standing: Standing,
}

impl Packet {
    pub(super) fn of(packet: &Dissected<'_>, flow: u32, hasher: &RandomState) -> Self {
        let mut of = Self {
            flow,
            next: NONE,
            train: 0,
            seq: 0,
            ack: 0,
            length: 0,
            kind: Kind::Other,
            has_data: false,
            is_named: matches!(packet.transport, Transport::Tcp { .. }),
            standing: Standing::Followed,
        };
        match &packet.transport {
            Transport::Tcp {
                header,
                payload_len,
            } => {
                let has = |flag| header.flags & flag != 0;
                (of.seq, of.ack) = (header.seq, header.ack);
                of.kind = if has(TcpHeader::ACK) {
                    Kind::Acknowledging
                } else {
                    Kind::Segment
                };
                of.has_data = *payload_len > 0;
                let marks = u32::from(has(TcpHeader::SYN)) + u32::from(has(TcpHeader::FIN));
                of.length = payload_len.saturating_add(marks);
                if of.has_data {
                    let stamps = tcp_timestamps(header.options);
                    // Whoever cuts or joins segments leaves these alone.
                    of.train = short(hasher.hash_one((header.ack, stamps)));
                }
            }
            Transport::Udp {
                header,
                payload_len,
            } => {
                of.length = *payload_len;
                of.seq = packet.ip.identification.map_or(0, u32::from);
                let begins = &header.payload[..header.payload.len().min(COUNTED)];
                of.train = short(hasher.hash_one(begins));
            }
            Transport::Icmp(message) => {
                let number = message.get(4..8).and_then(|number| number.try_into().ok());
                let is_four = packet.ip.protocol == ICMP;
                of.kind = match message.first() {
                    Some(8) if is_four => Kind::Echo,
                    Some(0) if is_four => Kind::Reply,
                    Some(128) if !is_four => Kind::Echo,
                    Some(129) if !is_four => Kind::Reply,
                    _ => Kind::Other,
                };
                of.seq = number.map_or(0, u32::from_be_bytes);
            }
            Transport::Fragment => of.kind = Kind::Piece,
            Transport::Other => {}
        }
        of
    }
}

#[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
const fn short(hash: u64) -> u32 {
    hash as u32
}

/// All packets, each with its stamps.
#[derive(Debug)]
pub(super) struct Packets {
    points: usize,
    pub(super) of: Vec<Packet>,
    marks: Vec<i64>,
}

impl Packets {
    pub(super) const fn at(points: usize) -> Self {
        Self {
            points,
            of: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// One more; `None` if there are more than anybody can count.
    pub(super) fn push(&mut self, packet: Packet) -> Option<u32> {
        let place = u32::try_from(self.of.len()).ok().filter(|at| *at < NONE)?;
        self.of.push(packet);
        self.marks.extend(std::iter::repeat_n(UNSEEN, self.points));
        Some(place)
    }

    pub(super) fn get(&self, packet: u32) -> &Packet {
        &self.of[packet as usize]
    }

    pub(super) fn mark(&self, packet: u32, point: usize) -> Option<i64> {
        let at = self.marks[packet as usize * self.points + point];
        (at != UNSEEN).then_some(at)
    }

    pub(super) fn set(&mut self, packet: u32, point: usize, at: Option<i64>) {
        // A stamp of 292 years before 1970 is none that anybody meant.
        self.marks[packet as usize * self.points + point] = at.unwrap_or(UNSEEN);
    }

    /// Those that are like this one, itself first.
    pub(super) fn chain(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(first), |at| {
            Some(self.get(*at).next).filter(|next| *next != NONE)
        })
    }
}

/// Flows by number, and the pairs of hosts that they are between.
#[derive(Debug, Default)]
pub(super) struct Flows {
    numbers: HashMap<Flowing, u32, RandomState>,
    pairs: HashMap<(IpAddr, IpAddr), u32, RandomState>,
    /// Each flow, and its pair.
    pub(super) of: Vec<(Flowing, u32)>,
}

impl Flows {
    pub(super) fn number(&mut self, flow: Flowing) -> u32 {
        let next = u32::try_from(self.of.len()).unwrap_or(NONE);
        let number = *self.numbers.entry(flow).or_insert(next);
        if number == next {
            let (a, b) = (flow.source.ip(), flow.destination.ip());
            let ends = if a < b { (a, b) } else { (b, a) };
            let pair = u32::try_from(self.pairs.len()).unwrap_or(NONE);
            let pair = *self.pairs.entry(ends).or_insert(pair);
            self.of.push((flow, pair));
        }
        number
    }

    pub(super) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// What is so for a flow is so for all of its protocol and direction, between the same hosts.
    pub(super) fn spread_over_kinds(&self, flows: &[bool]) -> Vec<bool> {
        let kind = |(flow, pair): &(Flowing, u32)| (*pair, flow.protocol, flow.is_upward());
        let meant = self.of.iter().zip(flows).filter(|(_, is_so)| **is_so);
        let kinds: HashSet<_, RandomState> = meant.map(|(of, _)| kind(of)).collect();
        self.of.iter().map(|of| kinds.contains(&kind(of))).collect()
    }

    /// For each flow the one that answers it.
    pub(super) fn answering(&self) -> Vec<u32> {
        let number = |flow: &Flowing| self.numbers.get(&flow.reversed()).copied();
        let flows = self.of.iter();
        flows
            .map(|(flow, _)| number(flow).unwrap_or(NONE))
            .collect()
    }
}
