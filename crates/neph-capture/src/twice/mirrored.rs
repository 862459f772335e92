//! Whose packets a capture shows twice: a mirror of both directions does it with nearly all of them.
//!
//! Owns the counts by pair of hosts, in memory that does not grow. What the network or a sender repeats is
//! a small part of what they send.

use neph_model::Span;
use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::TcpHeader;

use super::MIRRORED;

/// Pairs of hosts that are remembered: of two with the same place the later one is.
const PAIRS: usize = 4_096;
/// Counts are halved above this: what was long ago counts less.
const MANY: u16 = 256;
/// The first packet of two hosts that comes again so soon is a copy: a sender takes longer.
const AT_ONCE: Span = Span::from_millis(1);

/// What it says that a packet is the same as another one shortly before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its sender numbered it in IP: another one is not the same.
    Numbered,
    /// Nobody sends another one so soon: a SYN, an echo.
    Once,
    /// Data or the end of a stream: it is sent again where it was lost.
    Data,
    /// Many of the same may be sent: acknowledgements, fragments without a number.
    Repeatable,
}

impl Kind {
    /// Many senders number 0 what is not to be cut.
    pub(super) const fn of(packet: &Dissected<'_>) -> Self {
        match (&packet.transport, packet.ip.identification) {
            (Transport::Icmp([0 | 8 | 128 | 129, ..]), _) => Self::Once,
            (Transport::Tcp { header, .. }, _) if header.flags & TcpHeader::SYN != 0 => Self::Once,
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
pub(super) struct One {
    /// A digest of the two hosts.
    pub(super) hosts: u64,
    /// From the lower address to the higher.
    pub(super) is_upward: bool,
    /// Its sender's number in IP.
    pub(super) number: u16,
    pub(super) kind: Kind,
}

/// What is known of one pair of hosts.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    hosts: u64,
    /// Packets that came, each once, without those that may be repeated.
    once: u16,
    /// Packets among them that came again soon.
    again: u16,
    /// The latest number of each host, and whether another packet had it too: it numbers nothing then.
    numbers: [u16; 2],
    is_constant: [bool; 2],
}

impl Pair {
    /// Of what came before the latest most came twice.
    fn is_mirrored(self, later: Span) -> bool {
        let before = self.once.saturating_sub(1);
        let is_first = before == 0 && later < AT_ONCE;
        is_first || self.again > 0 && self.again * 2 >= before
    }
}

/// Counts by pair of hosts.
#[derive(Debug, Default)]
pub(super) struct Mirrored(Vec<Pair>);

impl Mirrored {
    /// A packet came that is like none before it.
    pub(super) fn once(&mut self, one: One) {
        let pair = self.pair(one.hosts);
        if one.number != 0 {
            let way = usize::from(one.is_upward);
            pair.is_constant[way] |= pair.numbers[way] == one.number;
            pair.numbers[way] = one.number;
        }
        if one.kind != Kind::Repeatable {
            pair.once += 1;
            if pair.once > MANY {
                (pair.once, pair.again) = (pair.once / 2, pair.again / 2);
            }
        }
    }

    /// It comes again, so much later: whether that is a copy.
    pub(super) fn again(&mut self, one: One, later: Span) -> bool {
        let pair = self.pair(one.hosts);
        let is_mirrored = later < MIRRORED && pair.is_mirrored(later);
        if one.kind != Kind::Repeatable && later < MIRRORED {
            pair.again = pair.again.saturating_add(1);
        }
        match one.kind {
            Kind::Once => true,
            Kind::Numbered => is_mirrored || !pair.is_constant[usize::from(one.is_upward)],
            Kind::Data => is_mirrored,
            Kind::Repeatable => is_mirrored && pair.again > 0,
        }
    }

    fn pair(&mut self, hosts: u64) -> &mut Pair {
        if self.0.is_empty() {
            self.0.resize(PAIRS, Pair::default());
        }
        let place = usize::try_from(hosts >> 52).unwrap_or(0) % PAIRS;
        let pair = &mut self.0[place];
        if pair.hosts != hosts {
            *pair = Pair {
                hosts,
                ..Pair::default()
            };
        }
        pair
    }
}
