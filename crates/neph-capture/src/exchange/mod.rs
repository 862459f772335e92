//! Requests and answers outside of TCP: ICMP echo, DNS over UDP, and QUIC's spin bit.
//!
//! Owns the assignment of answers to requests. A pair is a client and a server, with any client port; for
//! QUIC it is one connection. Does not own duplicates in the capture, nor the content of requests.

mod classify;
mod counts;
mod mirror;
mod pair;
mod pending_requests;
mod quic;
mod spin_bit;

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
use classify::classify;
pub use counts::ExchangeCounts;
pub use pair::HostPair;
use pending_requests::MessageId;
use quic::QuicPorts;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExchangeProtocol {
    /// ICMP echo, as sent by ping.
    Ping,
    /// A query to UDP port 53.
    Dns,
    /// The spin bit of QUIC: at UDP port 443, at given ports, and of connections whose handshake was captured
    /// at any port.
    Quic,
}

impl ExchangeProtocol {
    /// In the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Ping, Self::Dns, Self::Quic];
}

/// A round trip outside of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeRoundTrip {
    /// When the answer passed the capture point.
    pub at: Wall,
    /// The part of the path: between the capture point and the end behind it.
    pub half: Half,
    /// From the request to the answer.
    pub round_trip: Span,
}

/// Receives exchanges as packets come.
pub trait ExchangeListener {
    /// A round trip. The first ones of QUIC are reported once its spin bit is trusted.
    fn round_trip(&mut self, _key: &ExchangeKey, _round_trip: ExchangeRoundTrip) {}

    /// A pair is over.
    fn ended(&mut self, pair: &HostPair);
}

/// Receives only pairs that are over.
struct EndedPairs<F>(F);

impl<F: FnMut(&HostPair)> ExchangeListener for EndedPairs<F> {
    fn ended(&mut self, pair: &HostPair) {
        self.0(pair);
    }
}

/// Client and server, and the kind of their exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExchangeKey {
    /// The kind.
    pub protocol: ExchangeProtocol,
    /// The client; the port is 0 except for QUIC.
    pub client: SocketAddr,
    /// The server; the port is 0 for ICMP.
    pub server: SocketAddr,
    /// The outermost VLAN.
    pub vlan: Option<u16>,
    /// The innermost tunnel.
    pub tunnel: Option<Tunnel>,
}

/// The meaning of a packet for its pair.
#[derive(Debug, Clone, Copy)]
enum ExchangeEvent {
    Request(MessageId),
    Answer(MessageId),
    SpinBit(Side, u8),
}

/// All pairs of client and server.
#[derive(Debug)]
pub struct Exchanges {
    max_pairs: usize,
    idle_timeout: Span,
    indices: HashMap<ExchangeKey, u32, RandomState>,
    /// Pairs in VLANs or tunnels, by client and server without these.
    tagged_indices: HashMap<ExchangeKey, Vec<u32>, RandomState>,
    /// Answers that may belong to several others.
    ambiguous_answers: u64,
    pairs: Vec<Option<HostPair>>,
    free_indices: Vec<u32>,
    recency: Recency,
    now: i64,
    evicted: u64,
    quic: QuicPorts,
    /// Counts of pairs that ended in the current period, by protocol; `None` if periods are not used.
    ended_counts: Option<Box<[ExchangeCounts; ExchangeProtocol::ALL.len()]>>,
}

impl Exchanges {
    /// At most this many pairs: beyond it the longest silent one is evicted. A pair that is silent for longer
    /// than `idle_timeout` is over.
    pub fn new(max_pairs: usize, idle_timeout: Span) -> Self {
        Self {
            max_pairs: max_pairs.max(1),
            idle_timeout,
            indices: HashMap::default(),
            tagged_indices: HashMap::default(),
            ambiguous_answers: 0,
            pairs: Vec::new(),
            free_indices: Vec::new(),
            recency: Recency::default(),
            now: i64::MIN,
            evicted: 0,
            quic: QuicPorts::default(),
            ended_counts: None,
        }
    }

    /// Servers at these UDP ports use QUIC too, even without a captured handshake.
    #[must_use]
    pub fn with_quic_ports(mut self, ports: &[u16]) -> Self {
        self.quic.add_ports(ports);
        self
    }

    /// Adds a packet that was captured at `at`. Returns whether it belongs to an exchange. Pairs that are
    /// over are passed to `ended`.
    pub fn add_packet_with(
        &mut self,
        at: Wall,
        packet: &Dissected<'_>,
        ended: impl FnMut(&HostPair),
    ) -> bool {
        self.add_packet(at, packet, &mut EndedPairs(ended))
    }

    /// The same, with reports of round trips as they are found.
    #[inline]
    pub fn add_packet(
        &mut self,
        at: Wall,
        packet: &Dissected<'_>,
        listener: &mut impl ExchangeListener,
    ) -> bool {
        match packet.transport {
            // True for nearly all packets.
            Transport::Tcp { .. } => false,
            _ => self.process(at, packet, listener),
        }
    }

    fn process(
        &mut self,
        at: Wall,
        packet: &Dissected<'_>,
        listener: &mut impl ExchangeListener,
    ) -> bool {
        let indices = &self.indices;
        let is_known = |key: &ExchangeKey| indices.contains_key(key);
        let Some((key, event)) = classify(packet, &mut self.quic, is_known) else {
            return false;
        };
        self.end_idle_pairs(at, listener);
        let index = match self.indices.get(&key) {
            Some(index) => *index,
            None => match self.join_mirrored(&key, event) {
                Some(index) => index,
                None => self.insert(at, key, listener),
            },
        };
        self.recency.touch(index, self.now);
        if let Some(pair) = &mut self.pairs[index as usize] {
            pair.add_packet(at, event, &mut |key, round_trip| {
                listener.round_trip(key, round_trip);
            });
        }
        true
    }

    /// Ends the pairs that are silent for too long at `now`.
    pub fn end_idle(&mut self, now: Wall, ended: impl FnMut(&HostPair)) {
        self.end_idle_pairs(now, &mut EndedPairs(ended));
    }

    fn end_idle_pairs(&mut self, now: Wall, listener: &mut impl ExchangeListener) {
        self.now = self.now.max(now.unix_nanos());
        let until = self.now.saturating_sub(self.idle_timeout.nanos());
        while let Some(index) = self.recency.oldest_before(until) {
            self.remove(index, listener);
        }
    }

    /// Ends a period. Passes on each pair with a packet in this period, in no order. Returns the counts
    /// of all pairs by protocol, including those that ended meanwhile. The first call begins the first period.
    pub fn end_period(
        &mut self,
        mut report: impl FnMut(&HostPair, &ExchangeCounts),
    ) -> [ExchangeCounts; ExchangeProtocol::ALL.len()] {
        let mut totals = std::mem::take(&mut **self.ended_counts.get_or_insert_default());
        for pair in self.pairs.iter_mut().flatten() {
            if let Some(period_counts) = pair.take_period_counts() {
                totals[pair.key().protocol as usize].merge(&period_counts);
                report(pair, &period_counts);
            }
        }
        totals
    }

    /// Ends all pairs, the longest silent first.
    pub fn end(&mut self, ended: impl FnMut(&HostPair)) {
        let mut listener = EndedPairs(ended);
        while let Some(index) = self.recency.oldest() {
            self.remove(index, &mut listener);
        }
    }

    /// Pairs that were evicted, because there were too many.
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    fn insert(&mut self, at: Wall, key: ExchangeKey, listener: &mut impl ExchangeListener) -> u32 {
        if self.indices.len() >= self.max_pairs
            && let Some(index) = self.recency.oldest()
        {
            self.evicted += 1;
            self.remove(index, listener);
        }
        let index = self.free_indices.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            u32::try_from(self.pairs.len() - 1).expect("as many as `max_pairs` allows")
        });
        self.pairs[index as usize] = Some(HostPair::begin(at, key));
        self.recency.insert(index, self.now);
        self.indices.insert(key, index);
        self.tag(&key, index);
        index
    }

    fn remove(&mut self, index: u32, listener: &mut impl ExchangeListener) {
        self.recency.remove(index);
        if let Some(pair) = self.pairs[index as usize].take() {
            self.indices.remove(pair.key());
            self.untag(&pair, index);
            self.free_indices.push(index);
            if let Some(ended_counts) = &mut self.ended_counts {
                ended_counts[pair.key().protocol as usize].merge(&pair.current_period_counts());
            }
            listener.ended(&pair);
        }
    }
}
