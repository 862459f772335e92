//! Questions and answers outside of TCP: ICMP echo, DNS over UDP, and QUIC's spin bit.
//!
//! Owns which packet answers which. A pair is who asks and who answers, whatever the asker's port; of
//! QUIC it is one connection. Does not own packets sent twice, nor what is asked.

mod pair;
mod spin;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use foldhash::fast::RandomState;
use neph_model::{Span, Wall};
use neph_wire::dissect::{Dissected, Transport, Tunnel};

use crate::flow::Recency;
use crate::tcp::Side;
pub use pair::{Deviation, Pair};

const DNS: u16 = 53;
const QUIC: u16 = 443;
/// Types of ICMP and of `ICMPv6`: they differ, so that the version need not be asked.
const ECHO: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];

/// What is asked and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// ICMP echo: what ping sends.
    Ping,
    /// A query to UDP port 53.
    Dns,
    /// The spin bit of QUIC at UDP port 443.
    Quic,
}

/// Who asks whom, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Between {
    /// What.
    pub question: Question,
    /// Who asks; the port is 0 but for QUIC.
    pub client: SocketAddr,
    /// Who answers; the port is 0 for ICMP.
    pub server: SocketAddr,
    /// The outermost VLAN.
    pub vlan: Option<u16>,
    /// The innermost tunnel.
    pub tunnel: Option<Tunnel>,
}

/// What a packet says to those it is between.
#[derive(Debug, Clone, Copy)]
enum Said {
    Asks(u32),
    Answers(u32),
    Spins(Side, u8),
}

/// Pairs that ask and answer.
#[derive(Debug)]
pub struct Exchanges {
    most: usize,
    idle: Span,
    places: HashMap<Between, u32, RandomState>,
    pairs: Vec<Option<Pair>>,
    free: Vec<u32>,
    recency: Recency,
    now: i64,
    crowded_out: u64,
}

impl Exchanges {
    /// At most so many pairs at a time: one more ends the one that was silent the longest; and one that
    /// is silent for longer than `idle` is over.
    pub fn new(most: usize, idle: Span) -> Self {
        Self {
            most: most.max(1),
            idle,
            places: HashMap::default(),
            pairs: Vec::new(),
            free: Vec::new(),
            recency: Recency::default(),
            now: i64::MIN,
            crowded_out: 0,
        }
    }

    /// A packet was captured at `at`. Tells whether it was part of an exchange; pairs that are over
    /// are handed to `ended`.
    #[inline]
    pub fn see(&mut self, at: Wall, packet: &Dissected<'_>, ended: impl FnMut(&Pair)) -> bool {
        match packet.transport {
            // Nearly all packets.
            Transport::Tcp { .. } => false,
            _ => self.take_in(at, packet, ended),
        }
    }

    fn take_in(&mut self, at: Wall, packet: &Dissected<'_>, mut ended: impl FnMut(&Pair)) -> bool {
        let Some((between, said)) = part_of(packet) else {
            return false;
        };
        self.silence(at, &mut ended);
        let place = match self.places.get(&between) {
            Some(place) => *place,
            // An answer without a question begins nothing.
            None if matches!(said, Said::Answers(_)) => return true,
            None => self.insert(at, between, &mut ended),
        };
        self.recency.touch(place, self.now);
        if let Some(pair) = &mut self.pairs[place as usize] {
            pair.see(at, said);
        }
        true
    }

    /// It is `now`: ends the pairs that are silent for too long.
    pub fn silence(&mut self, now: Wall, mut ended: impl FnMut(&Pair)) {
        self.now = self.now.max(now.unix_nanos());
        let until = self.now.saturating_sub(self.idle.nanos());
        while let Some(place) = self.recency.oldest_before(until) {
            self.remove(place, &mut ended);
        }
    }

    /// No more packets come: all pairs are over, the longest silent first.
    pub fn end(&mut self, mut ended: impl FnMut(&Pair)) {
        while let Some(place) = self.recency.oldest() {
            self.remove(place, &mut ended);
        }
    }

    /// Pairs that were ended for others, because there were too many.
    pub const fn crowded_out(&self) -> u64 {
        self.crowded_out
    }

    fn insert(&mut self, at: Wall, between: Between, ended: &mut impl FnMut(&Pair)) -> u32 {
        if self.places.len() >= self.most
            && let Some(place) = self.recency.oldest()
        {
            self.crowded_out += 1;
            self.remove(place, ended);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            u32::try_from(self.pairs.len() - 1).expect("as many as `most` allows")
        });
        self.pairs[place as usize] = Some(Pair::begin(at, between));
        self.recency.insert(place, self.now);
        self.places.insert(between, place);
        place
    }

    fn remove(&mut self, place: u32, ended: &mut impl FnMut(&Pair)) {
        self.recency.remove(place);
        if let Some(pair) = self.pairs[place as usize].take() {
            self.places.remove(pair.between());
            self.free.push(place);
            ended(&pair);
        }
    }
}

/// What a packet is part of.
fn part_of(packet: &Dissected<'_>) -> Option<(Between, Said)> {
    let (source, destination) = (packet.ip.source, packet.ip.destination);
    let (question, client, server, said) = match &packet.transport {
        Transport::Icmp([kind, 0, _, _, a, b, c, d, ..]) => {
            let id = u32::from_be_bytes([*a, *b, *c, *d]);
            let (asks, answers) = (ECHO.contains(kind), ECHO_REPLY.contains(kind));
            let ends = |client: IpAddr, server: IpAddr| ((client, 0), (server, 0));
            let ((client, server), said) = match (asks, answers) {
                (true, _) => (ends(source, destination), Said::Asks(id)),
                (_, true) => (ends(destination, source), Said::Answers(id)),
                _ => return None,
            };
            (Question::Ping, client, server, said)
        }
        Transport::Udp { header, .. } => {
            let (from, to) = ((source, header.source), (destination, header.destination));
            match header.payload {
                [a, b, flags, ..] if from.1 == DNS || to.1 == DNS => {
                    let id = |port: u16| u32::from(port) << 16 | u32::from_be_bytes([0, 0, *a, *b]);
                    let (client, server, said) = match (flags & 0x80 != 0, to.1, from.1) {
                        (false, DNS, port) => (from.0, to, Said::Asks(id(port))),
                        (true, port, DNS) => (to.0, from, Said::Answers(id(port))),
                        _ => return None,
                    };
                    (Question::Dns, (client, 0), server, said)
                }
                [first, ..] if to.1 == QUIC => {
                    (Question::Quic, from, to, Said::Spins(Side::Client, *first))
                }
                [first, ..] if from.1 == QUIC => {
                    (Question::Quic, to, from, Said::Spins(Side::Server, *first))
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    let between = Between {
        question,
        client: client.into(),
        server: server.into(),
        vlan: packet.vlan,
        tunnel: packet.tunnel,
    };
    Some((between, said))
}
