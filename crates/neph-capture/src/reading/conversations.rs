//! Conversations in packets: TCP flows, and questions with answers of other protocols.
//!
//! Owns the assignment of packets to these, and that a packet seen at several interfaces counts once.

use crate::{
    DuplicateFilter, ExchangeKey, ExchangeListener, ExchangeRoundTrip, Exchanges, HostPair, Limits,
    Listener, Table,
};
use neph_model::Wall;
use neph_wire::dissect::{Dissected, Plain};

/// How to capture packets once, or so that copies can be recognized. A router's copy of a packet differs in
/// its bytes, so only the interface identifies it.
pub const ONCE: &str = "one interface, or with tcpdump -i any in its default format (LINUX_SLL2), \
                               which records interfaces, or remove exact duplicates (editcap -w 0.02 FILE NEW)";

/// At the beginning of a capture, this many packets are remembered: each may be the first copy of several
/// interfaces.
const FIRST: u32 = 1000;

/// Receives what packets show.
pub trait ConversationListener: Listener {
    /// A pair of client and server is over.
    fn exchanged(&mut self, pair: &HostPair);

    /// A question was answered.
    fn answered(&mut self, _of: &ExchangeKey, _trip: ExchangeRoundTrip) {}
}

/// Forwards to a listener, as exchanges need it.
struct Forwarder<'a, T>(&'a mut T);

impl<T: ConversationListener> ExchangeListener for Forwarder<'_, T> {
    fn round_trip(&mut self, of: &ExchangeKey, answer: ExchangeRoundTrip) {
        self.0.answered(of, answer);
    }

    fn ended(&mut self, pair: &HostPair) {
        self.0.exchanged(pair);
    }
}

/// Counts of all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of IP of each packet once, as flows count theirs: from the IP header on, in a tunnel from the
    /// inner one.
    pub bytes: u64,
    /// Duplicates in the capture: from another interface, another layer, or a mirror.
    pub copies: u64,
}

impl Counts {
    /// The difference to the earlier counts `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            copies: self.copies - before.copies,
        }
    }
}

/// Flows and exchanges of all packets.
#[derive(Debug)]
pub struct Conversations {
    pub table: Table,
    pub exchanges: Exchanges,
    duplicates: DuplicateFilter,
    /// Whether packets of several interfaces were seen: only then copies are searched.
    has_interfaces: bool,
    /// How many of the first packets are still to come.
    first: u32,
    counts: Counts,
}

/// Examined packets, and those repeated at the same interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    pub packets: u64,
    pub looked: u64,
}

impl Repeated {
    /// Networks make fewer duplicates than this too.
    const FEW: u64 = 10;
    /// More than one packet in so many.
    const SHARE: u64 = 20;

    /// Whether so many are repeated that the capture itself has them twice.
    pub const fn is_many(self) -> bool {
        self.packets >= Self::FEW && self.packets * Self::SHARE >= self.looked
    }
}

impl Conversations {
    /// Servers on the UDP ports `quic` use QUIC too.
    pub fn new(limits: Limits, quic: &[u16]) -> Self {
        Self {
            table: Table::new(limits),
            exchanges: Exchanges::new(limits.flows, limits.idle_timeout).with_quic_ports(quic),
            duplicates: DuplicateFilter::default(),
            has_interfaces: false,
            first: FIRST,
            counts: Counts::default(),
        }
    }

    /// Begins another capture.
    pub const fn begin(&mut self) {
        self.first = FIRST;
    }

    /// Counts of packets that captures hold twice. Segments from the fast parser are not examined.
    pub const fn repeats(&self) -> Repeated {
        Repeated {
            packets: self.duplicates.repeats(),
            looked: self.duplicates.looked(),
        }
    }

    /// Adds a packet at `interface`, a number of the capture.
    pub fn see(
        &mut self,
        at: Wall,
        interface: u32,
        packet: &Dissected<'_>,
        listener: &mut impl ConversationListener,
    ) {
        self.has_interfaces |= interface > 0;
        self.first = self.first.saturating_sub(1);
        if !self.takes_plain() && self.duplicates.is_duplicate(at, interface, packet) {
            self.counts.copies += 1;
            return;
        }
        self.counts.bytes += packet.ip.total_len as u64;
        if !self.exchanges.hear(at, packet, &mut Forwarder(listener)) {
            self.table.see(at, packet, listener);
        }
    }

    /// Adds a packet whose headers were cut off before the addresses.
    pub const fn see_cut(&mut self) {
        self.table.see_cut();
    }

    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the fast parser may be used: no check for copies is needed.
    pub const fn takes_plain(&self) -> bool {
        !self.has_interfaces && self.first == 0 && !self.duplicates.has_copies()
    }

    /// Adds a segment from the fast parser, at the only interface.
    #[inline]
    pub fn see_plain(&mut self, at: Wall, read: &Plain, listener: &mut impl ConversationListener) {
        self.counts.bytes += u64::from(read.total_len);
        self.table.see_plain(at, read, listener);
    }

    /// Ends flows and exchanges that are silent for too long at `now`. Needed where no packets come.
    pub fn silence(&mut self, now: Wall, listener: &mut impl ConversationListener) {
        self.table.silence(now, listener);
        self.exchanges.silence(now, |pair| listener.exchanged(pair));
    }

    /// Ends all.
    pub fn end(&mut self, listener: &mut impl ConversationListener) {
        self.table.end(listener);
        self.exchanges.end(|pair| listener.exchanged(pair));
    }
}
