//! Questions and answers outside of TCP: ICMP echo, DNS over UDP, and QUIC's spin bit.
//!
//! Owns which packet answers which. A pair is who asks and who answers, whatever the asker's port; of
//! QUIC it is one connection. Does not own packets sent twice, nor what is asked.

mod counted;
mod mirror;
mod pair;
mod part;
mod quic;
mod spin;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;

use foldhash::fast::RandomState;
use neph_model::{Span, Wall};
use neph_wire::dissect::{Dissected, Transport, Tunnel};

use crate::flow::Recency;
use crate::sample::Half;
use crate::tcp::Side;
pub use counted::Counted;
pub use pair::Pair;
use part::part_of;
use quic::QuicPorts;
use waiting::Numbered;

/// What is asked and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// ICMP echo: what ping sends.
    Ping,
    /// A query to UDP port 53.
    Dns,
    /// The spin bit of QUIC: at UDP port 443, at ports that were named, and of connections whose handshake
    /// passed at any port.
    Quic,
}

impl Question {
    /// In the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Ping, Self::Dns, Self::Quic];
}

/// A round trip outside of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// When the answer passed the point of capture.
    pub at: Wall,
    /// Which part of the path: between the point of capture and the end behind it.
    pub half: Half,
    /// From the question to the answer.
    pub round_trip: Span,
}

/// Is told of exchanges as packets come.
pub trait Asking {
    /// A round trip. Of QUIC when its spin bit is believed: the first ones are told then.
    fn trip(&mut self, _of: &Between, _trip: Answered) {}

    /// A pair is over.
    fn ended(&mut self, pair: &Pair);
}

/// Is told of pairs that are over alone.
struct Over<F>(F);

impl<F: FnMut(&Pair)> Asking for Over<F> {
    fn ended(&mut self, pair: &Pair) {
        self.0(pair);
    }
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
enum ExchangeEvent {
    Asks(Numbered),
    Answers(Numbered),
    Spins(Side, u8),
}

/// Pairs that ask and answer.
#[derive(Debug)]
pub struct Exchanges {
    most: usize,
    idle: Span,
    places: HashMap<Between, u32, RandomState>,
    /// Those of pairs in VLANs or tunnels, by who they are without these.
    tagged: HashMap<Between, Vec<u32>, RandomState>,
    /// Answers that may belong to several others.
    ambiguous: u64,
    pairs: Vec<Option<Pair>>,
    free: Vec<u32>,
    recency: Recency,
    now: i64,
    crowded_out: u64,
    quic: QuicPorts,
    /// What was counted in the running period of pairs that ended in it, by question; none where
    /// nobody looks at periods.
    ended: Option<Box<[Counted; Question::ALL.len()]>>,
}

impl Exchanges {
    /// At most so many pairs at a time: one more ends the one that was silent the longest; and one that
    /// is silent for longer than `idle` is over.
    pub fn new(most: usize, idle: Span) -> Self {
        Self {
            most: most.max(1),
            idle,
            places: HashMap::default(),
            tagged: HashMap::default(),
            ambiguous: 0,
            pairs: Vec::new(),
            free: Vec::new(),
            recency: Recency::default(),
            now: i64::MIN,
            crowded_out: 0,
            quic: QuicPorts::default(),
            ended: None,
        }
    }

    /// Servers at these ports of UDP speak QUIC too, also where the handshake is not seen.
    #[must_use]
    pub fn with_quic_ports(mut self, ports: &[u16]) -> Self {
        self.quic.name(ports);
        self
    }

    /// A packet was captured at `at`. Tells whether it was part of an exchange; pairs that are over
    /// are handed to `ended`.
    pub fn see(&mut self, at: Wall, packet: &Dissected<'_>, ended: impl FnMut(&Pair)) -> bool {
        self.hear(at, packet, &mut Over(ended))
    }

    /// The same, where round trips are told too as they are found.
    #[inline]
    pub fn hear(&mut self, at: Wall, packet: &Dissected<'_>, reported: &mut impl Asking) -> bool {
        match packet.transport {
            // Nearly all packets.
            Transport::Tcp { .. } => false,
            _ => self.take_in(at, packet, reported),
        }
    }

    fn take_in(&mut self, at: Wall, packet: &Dissected<'_>, reported: &mut impl Asking) -> bool {
        let places = &self.places;
        let is_known = |between: &Between| places.contains_key(between);
        let Some((between, event)) = part_of(packet, &mut self.quic, is_known) else {
            return false;
        };
        self.quiet(at, reported);
        let place = match self.places.get(&between) {
            Some(place) => *place,
            None => match self.join_mirrored(&between, event) {
                Some(place) => place,
                None => self.insert(at, between, reported),
            },
        };
        self.recency.touch(place, self.now);
        if let Some(pair) = &mut self.pairs[place as usize] {
            pair.see(at, event, &mut |between, trip| reported.trip(between, trip));
        }
        true
    }

    /// It is `now`: ends the pairs that are silent for too long.
    pub fn silence(&mut self, now: Wall, ended: impl FnMut(&Pair)) {
        self.quiet(now, &mut Over(ended));
    }

    fn quiet(&mut self, now: Wall, reported: &mut impl Asking) {
        self.now = self.now.max(now.unix_nanos());
        let until = self.now.saturating_sub(self.idle.nanos());
        while let Some(place) = self.recency.oldest_before(until) {
            self.remove(place, reported);
        }
    }

    /// Ends a period: hands out each pair that had a packet since the last look, in no order, and gives
    /// what was counted of all, those included that ended meanwhile, by question. Periods are counted
    /// from the first look on.
    pub fn look(
        &mut self,
        mut take: impl FnMut(&Pair, &Counted),
    ) -> [Counted; Question::ALL.len()] {
        let mut all = std::mem::take(&mut **self.ended.get_or_insert_default());
        for pair in self.pairs.iter_mut().flatten() {
            if let Some(recent) = pair.look() {
                all[pair.between().question as usize].merge(&recent);
                take(pair, &recent);
            }
        }
        all
    }

    /// No more packets come: all pairs are over, the longest silent first.
    pub fn end(&mut self, ended: impl FnMut(&Pair)) {
        let mut reported = Over(ended);
        while let Some(place) = self.recency.oldest() {
            self.remove(place, &mut reported);
        }
    }

    /// Pairs that were ended for others, because there were too many.
    pub const fn crowded_out(&self) -> u64 {
        self.crowded_out
    }

    fn insert(&mut self, at: Wall, between: Between, reported: &mut impl Asking) -> u32 {
        if self.places.len() >= self.most
            && let Some(place) = self.recency.oldest()
        {
            self.crowded_out += 1;
            self.remove(place, reported);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            u32::try_from(self.pairs.len() - 1).expect("as many as `most` allows")
        });
        self.pairs[place as usize] = Some(Pair::begin(at, between));
        self.recency.insert(place, self.now);
        self.places.insert(between, place);
        self.tag(&between, place);
        place
    }

    fn remove(&mut self, place: u32, reported: &mut impl Asking) {
        self.recency.remove(place);
        if let Some(pair) = self.pairs[place as usize].take() {
            self.places.remove(pair.between());
            self.untag(&pair, place);
            self.free.push(place);
            if let Some(ended) = &mut self.ended {
                ended[pair.between().question as usize].merge(&pair.rest());
            }
            reported.ended(&pair);
        }
    }
}
