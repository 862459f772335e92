//! A packet while captures are read: the fields that are needed once its bytes are gone.
//!
//! Owns its timestamps, one per passed point, and the fields that link packets to their answers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, SocketAddr};

use foldhash::quality::RandomState;
use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::{ICMP, TcpHeader, tcp_timestamps};

use crate::identity::COUNTED_PAYLOAD_BYTES;

/// No further packet, or none at all.
pub(super) const NO_NUMBER: u32 = u32::MAX;
/// Replaces the timestamp where a packet did not pass.
const NOT_PASSED: i64 = i64::MIN;

/// Source and destination, with the names that are valid at points without NAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Protocol number in IP.
    pub protocol: u8,
    /// Source; port 0 where it has none.
    pub source: SocketAddr,
    /// Destination; port 0 where it has none.
    pub destination: SocketAddr,
}

impl FiveTuple {
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

/// How a packet relates to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PacketKind {
    /// An echo request, with its number in `seq`.
    EchoRequest,
    /// An echo reply, with its number in `seq`.
    EchoReply,
    /// A segment that acknowledges `ack`.
    Acknowledging,
    /// A segment without acknowledgement.
    Segment,
    /// A fragment other than the first: its datagram is not known.
    LaterFragment,
    /// A datagram, or anything else.
    Other,
}

/// How a packet is handled after all captures were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketHandling {
    /// It is followed.
    Followed,
    /// It is part of a larger one, which is followed.
    Part,
    /// A duplicate, by the network or in the capture.
    Copy,
    /// Others equal it, and they cannot be distinguished.
    Ambiguous,
}

/// 28 bytes, and 8 for each point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    /// Number of its flow.
    pub(super) flow: u32,
    /// The next packet that equals it.
    pub(super) next_equal: u32,
    /// Equal in all parts of a segment that was split; for a datagram a digest of its beginning.
    pub(super) split_key: u32,
    /// Number of the first byte; for a datagram its IP identification.
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Sequence numbers of a segment: its bytes, SYN and FIN; for a datagram its bytes. 0 for others.
    pub(super) length: u32,
    pub(super) kind: PacketKind,
    pub(super) has_data: bool,
    /// Its sender numbered it, in IP or above: no equal packet follows soon.
    pub(super) is_distinguishable: bool,
    pub(super) handling: PacketHandling,
}

impl Packet {
    pub(super) fn from_dissected(
        dissected: &Dissected<'_>,
        flow: u32,
        hasher: &RandomState,
    ) -> Self {
        let mut packet = Self {
            flow,
            next_equal: NO_NUMBER,
            split_key: 0,
            seq: 0,
            ack: 0,
            length: 0,
            kind: PacketKind::Other,
            has_data: false,
            is_distinguishable: matches!(dissected.transport, Transport::Tcp { .. }),
            handling: PacketHandling::Followed,
        };
        match &dissected.transport {
            Transport::Tcp {
                header,
                payload_len,
            } => {
                let has_flag = |flag| header.flags & flag != 0;
                (packet.seq, packet.ack) = (header.seq, header.ack);
                packet.kind = if has_flag(TcpHeader::ACK) {
                    PacketKind::Acknowledging
                } else {
                    PacketKind::Segment
                };
                packet.has_data = *payload_len > 0;
                let flag_numbers =
                    u32::from(has_flag(TcpHeader::SYN)) + u32::from(has_flag(TcpHeader::FIN));
                packet.length = payload_len.saturating_add(flag_numbers);
                if packet.has_data {
                    let stamps = tcp_timestamps(header.options);
                    // Offload that splits or merges segments does not change these.
                    packet.split_key = half_of_hash(hasher.hash_one((header.ack, stamps)));
                }
            }
            Transport::Udp {
                header,
                payload_len,
            } => {
                packet.length = *payload_len;
                packet.seq = dissected.ip.identification.map_or(0, u32::from);
                let beginning = &header.payload[..header.payload.len().min(COUNTED_PAYLOAD_BYTES)];
                packet.split_key = half_of_hash(hasher.hash_one(beginning));
            }
            Transport::Icmp(message) => {
                let number = message.get(4..8).and_then(|number| number.try_into().ok());
                let is_ipv4 = dissected.ip.protocol == ICMP;
                packet.kind = match message.first() {
                    Some(8) if is_ipv4 => PacketKind::EchoRequest,
                    Some(0) if is_ipv4 => PacketKind::EchoReply,
                    Some(128) if !is_ipv4 => PacketKind::EchoRequest,
                    Some(129) if !is_ipv4 => PacketKind::EchoReply,
                    _ => PacketKind::Other,
                };
                packet.seq = number.map_or(0, u32::from_be_bytes);
            }
            Transport::Fragment => packet.kind = PacketKind::LaterFragment,
            Transport::Other => {}
        }
        packet
    }
}

#[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
const fn half_of_hash(hash: u64) -> u32 {
    hash as u32
}

/// All packets, each with its timestamps.
#[derive(Debug)]
pub(super) struct Packets {
    points: usize,
    pub(super) by_number: Vec<Packet>,
    /// When each packet passed each point: those of one packet follow each other.
    times: Vec<i64>,
}

impl Packets {
    pub(super) const fn with_points(points: usize) -> Self {
        Self {
            points,
            by_number: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Adds a packet. `None` if the numbers are exhausted.
    pub(super) fn push(&mut self, packet: Packet) -> Option<u32> {
        let index = u32::try_from(self.by_number.len())
            .ok()
            .filter(|at| *at < NO_NUMBER)?;
        self.by_number.push(packet);
        self.times
            .extend(std::iter::repeat_n(NOT_PASSED, self.points));
        Some(index)
    }

    pub(super) fn get(&self, packet: u32) -> &Packet {
        &self.by_number[packet as usize]
    }

    pub(super) fn passed_at(&self, packet: u32, point: usize) -> Option<i64> {
        let at = self.times[packet as usize * self.points + point];
        (at != NOT_PASSED).then_some(at)
    }

    pub(super) fn set_passed_at(&mut self, packet: u32, point: usize, at: Option<i64>) {
        // No real timestamp lies 292 years before 1970.
        self.times[packet as usize * self.points + point] = at.unwrap_or(NOT_PASSED);
    }

    /// The packets that equal this one, beginning with itself.
    pub(super) fn chain(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(first), |at| {
            Some(self.get(*at).next_equal).filter(|next| *next != NO_NUMBER)
        })
    }
}

/// Flows by number, and their host pairs.
#[derive(Debug, Default)]
pub(super) struct Flows {
    numbers: HashMap<FiveTuple, u32, RandomState>,
    pairs: HashMap<(IpAddr, IpAddr), u32, RandomState>,
    /// Each flow, and its host pair.
    pub(super) by_number: Vec<(FiveTuple, u32)>,
}

impl Flows {
    pub(super) fn number_or_insert(&mut self, flow: FiveTuple) -> u32 {
        let next = u32::try_from(self.by_number.len()).unwrap_or(NO_NUMBER);
        let number = *self.numbers.entry(flow).or_insert(next);
        if number == next {
            let (a, b) = (flow.source.ip(), flow.destination.ip());
            let ends = if a < b { (a, b) } else { (b, a) };
            let pair = u32::try_from(self.pairs.len()).unwrap_or(NO_NUMBER);
            let pair = *self.pairs.entry(ends).or_insert(pair);
            self.by_number.push((flow, pair));
        }
        number
    }

    pub(super) fn pair_count(&self) -> usize {
        self.pairs.len()
    }

    /// Extends a property of flows to all flows with the same hosts, protocol and direction.
    pub(super) fn spread_over_kinds(&self, flows: &[bool]) -> Vec<bool> {
        let kind = |(flow, pair): &(FiveTuple, u32)| (*pair, flow.protocol, flow.is_upward());
        let selected = self
            .by_number
            .iter()
            .zip(flows)
            .filter(|(_, has_property)| **has_property);
        let kinds: HashSet<_, RandomState> = selected.map(|(flow, _)| kind(flow)).collect();
        self.by_number
            .iter()
            .map(|flow| kinds.contains(&kind(flow)))
            .collect()
    }

    /// For each flow its reverse flow.
    pub(super) fn reverse_flows(&self) -> Vec<u32> {
        let number = |flow: &FiveTuple| self.numbers.get(&flow.reversed()).copied();
        let flows = self.by_number.iter();
        flows
            .map(|(flow, _)| number(flow).unwrap_or(NO_NUMBER))
            .collect()
    }
}
