//! Host pairs whose packets a capture holds twice: a mirror of both directions repeats nearly all.
//!
//! Owns the counts per host pair, in bounded memory. Repetitions by the network or a sender are a small part
//! of all packets.

use neph_model::Span;
use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::TcpHeader;

use super::MAX_MIRROR_DELAY;

/// Host pairs that are remembered. Of two with the same place, the later one replaces the earlier.
const MAX_PAIRS: usize = 4_096;
/// Counts are halved above this, so that old packets count less.
const MAX_COUNT: u16 = 256;
/// If the first packet of two hosts is repeated within this, it is a copy: a sender takes longer.
const MAX_IMMEDIATE_DELAY: Span = Span::from_millis(1);

/// How a packet is recognized as a copy of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketKind {
    /// It has a number in IP: another packet has another number.
    Numbered,
    /// No sender repeats it so soon: a SYN, an echo.
    NeverRepeated,
    /// Data or the end of a stream: a lost one is retransmitted.
    Data,
    /// Several equal ones are legitimate: acknowledgements, fragments without a number.
    Repeatable,
}

impl PacketKind {
    /// The kind of a packet. Many senders number packets 0 that must not be fragmented.
    pub(super) const fn from_packet(packet: &Dissected<'_>) -> Self {
        match (&packet.transport, packet.ip.identification) {
            (Transport::Icmp([0 | 8 | 128 | 129, ..]), _) => Self::NeverRepeated,
            (Transport::Tcp { header, .. }, _) if header.flags & TcpHeader::SYN != 0 => {
                Self::NeverRepeated
            }
            (_, Some(1..)) => Self::Numbered,
            (
                Transport::Tcp {
                    header,
                    payload_len,
                },
                _,
            ) if *payload_len > 0 || header.flags & TcpHeader::FIN != 0 => Self::Data,
            (
                Transport::Udp {
                    payload_len: 1.., ..
                },
                _,
            ) => Self::Data,
            _ => Self::Repeatable,
        }
    }
}

/// A packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct MirroredPacket {
    /// Digest of the two hosts.
    pub(super) hosts: u64,
    /// From the lower address to the higher.
    pub(super) is_upward: bool,
    /// Its identification in IP.
    pub(super) number: u16,
    pub(super) kind: PacketKind,
}

/// Counts of one host pair.
#[derive(Debug, Clone, Copy, Default)]
struct HostPairCounts {
    hosts: u64,
    /// Distinct packets, without repeatable ones.
    distinct_packets: u16,
    /// Of these, packets that were soon repeated.
    repeats: u16,
    /// The latest number of each host, and whether two packets had it: then it identifies nothing.
    numbers: [u16; 2],
    is_number_constant: [bool; 2],
}

impl HostPairCounts {
    /// Whether most packets before the latest one came twice.
    fn is_mirrored(self, delay: Span) -> bool {
        let earlier_count = self.distinct_packets.saturating_sub(1);
        let is_first = earlier_count == 0 && delay < MAX_IMMEDIATE_DELAY;
        is_first || self.repeats > 0 && self.repeats * 2 >= earlier_count
    }
}

/// Counts per host pair.
#[derive(Debug, Default)]
pub(super) struct MirrorDetector(Vec<HostPairCounts>);

impl MirrorDetector {
    /// Adds a packet that equals none before it.
    pub(super) fn add_first(&mut self, packet: MirroredPacket) {
        let pair = self.pair(packet.hosts);
        if packet.number != 0 {
            let direction = usize::from(packet.is_upward);
            pair.is_number_constant[direction] |= pair.numbers[direction] == packet.number;
            pair.numbers[direction] = packet.number;
        }
        if packet.kind != PacketKind::Repeatable {
            pair.distinct_packets += 1;
            if pair.distinct_packets > MAX_COUNT {
                pair.distinct_packets /= 2;
                pair.repeats /= 2;
            }
        }
    }

    /// Adds a repetition after the time `delay`. Returns whether it is a copy.
    pub(super) fn add_repetition(&mut self, packet: MirroredPacket, delay: Span) -> bool {
        let pair = self.pair(packet.hosts);
        let is_mirrored = delay < MAX_MIRROR_DELAY && pair.is_mirrored(delay);
        if packet.kind != PacketKind::Repeatable && delay < MAX_MIRROR_DELAY {
            pair.repeats = pair.repeats.saturating_add(1);
        }
        match packet.kind {
            PacketKind::NeverRepeated => true,
            PacketKind::Numbered => {
                is_mirrored || !pair.is_number_constant[usize::from(packet.is_upward)]
            }
            PacketKind::Data => is_mirrored,
            PacketKind::Repeatable => is_mirrored && pair.repeats > 0,
        }
    }

    fn pair(&mut self, hosts: u64) -> &mut HostPairCounts {
        if self.0.is_empty() {
            self.0.resize(MAX_PAIRS, HostPairCounts::default());
        }
        let index = usize::try_from(hosts >> 52).unwrap_or(0) % MAX_PAIRS;
        let pair = &mut self.0[index];
        if pair.hosts != hosts {
            *pair = HostPairCounts {
                hosts,
                ..HostPairCounts::default()
            };
        }
        pair
    }
}
