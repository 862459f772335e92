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
pub const CAPTURE_ONCE_REMEDY: &str = "one interface, or with tcpdump -i any in its default format (LINUX_SLL2), \
                               which records interfaces, or remove exact duplicates (editcap -w 0.02 FILE NEW)";

/// At the beginning of a capture, this many packets are remembered: each may be the first copy of several
/// interfaces.
const FIRST_PACKETS: u32 = 1000;

/// Receives what packets show.
pub trait ConversationListener: Listener {
    /// A pair of client and server is over.
    fn pair_ended(&mut self, pair: &HostPair);

    /// A question was answered.
    fn request_answered(&mut self, _key: &ExchangeKey, _round_trip: ExchangeRoundTrip) {}
}

/// Forwards to a listener, as exchanges need it.
struct Forwarder<'a, T>(&'a mut T);

impl<T: ConversationListener> ExchangeListener for Forwarder<'_, T> {
    fn round_trip(&mut self, key: &ExchangeKey, round_trip: ExchangeRoundTrip) {
        self.0.request_answered(key, round_trip);
    }

    fn ended(&mut self, pair: &HostPair) {
        self.0.pair_ended(pair);
    }
}

/// Counts of all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Bytes of IP of each packet once, as flows count theirs: from the IP header on, in a tunnel from the
    /// inner one.
    pub bytes: u64,
    /// Duplicates in the capture: from another interface, another layer, or a mirror.
    pub copies: u64,
}

impl PacketCounts {
    /// The difference to the earlier counts `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes - earlier.bytes,
            copies: self.copies - earlier.copies,
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
    has_several_interfaces: bool,
    /// How many of the first packets are still to come.
    first_packets_left: u32,
    counts: PacketCounts,
}

/// Examined packets, and those repeated at the same interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatCounts {
    pub packets: u64,
    pub examined: u64,
}

impl RepeatCounts {
    /// Networks make fewer duplicates than this too.
    const MIN_PACKETS: u64 = 10;
    /// More than one packet in so many.
    const MIN_SHARE_DIVISOR: u64 = 20;

    /// Whether so many are repeated that the capture itself has them twice.
    pub const fn has_capture_duplicates(self) -> bool {
        self.packets >= Self::MIN_PACKETS && self.packets * Self::MIN_SHARE_DIVISOR >= self.examined
    }
}

impl Conversations {
    /// Servers on the UDP ports `quic_ports` use QUIC too.
    pub fn new(limits: Limits, quic_ports: &[u16]) -> Self {
        Self {
            table: Table::new(limits),
            exchanges: Exchanges::new(limits.max_flows, limits.idle_timeout)
                .with_quic_ports(quic_ports),
            duplicates: DuplicateFilter::default(),
            has_several_interfaces: false,
            first_packets_left: FIRST_PACKETS,
            counts: PacketCounts::default(),
        }
    }

    /// Begins another capture.
    pub const fn begin_capture(&mut self) {
        self.first_packets_left = FIRST_PACKETS;
    }

    /// Counts of packets that captures hold twice. Segments from the fast parser are not examined.
    pub const fn repeats(&self) -> RepeatCounts {
        RepeatCounts {
            packets: self.duplicates.repeats(),
            examined: self.duplicates.examined(),
        }
    }

    /// Adds a packet at `interface`, a number of the capture.
    pub fn add_packet(
        &mut self,
        at: Wall,
        interface: u32,
        packet: &Dissected<'_>,
        listener: &mut impl ConversationListener,
    ) {
        self.has_several_interfaces |= interface > 0;
        self.first_packets_left = self.first_packets_left.saturating_sub(1);
        if !self.can_use_fast_parser() && self.duplicates.is_duplicate(at, interface, packet) {
            self.counts.copies += 1;
            return;
        }
        self.counts.bytes += packet.ip.total_len as u64;
        if !self
            .exchanges
            .add_packet(at, packet, &mut Forwarder(listener))
        {
            self.table.add_packet(at, packet, listener);
        }
    }

    /// Counts a packet whose headers were cut off before the addresses.
    pub const fn count_cut_packet(&mut self) {
        self.table.count_cut_packet();
    }

    pub const fn counts(&self) -> PacketCounts {
        self.counts
    }

    /// Whether the fast parser may be used: no check for copies is needed.
    pub const fn can_use_fast_parser(&self) -> bool {
        !self.has_several_interfaces
            && self.first_packets_left == 0
            && !self.duplicates.has_copies()
    }

    /// Adds a segment from the fast parser, at the only interface.
    #[inline]
    pub fn add_segment(
        &mut self,
        at: Wall,
        segment: &Plain,
        listener: &mut impl ConversationListener,
    ) {
        self.counts.bytes += u64::from(segment.total_len);
        self.table.add_segment(at, segment, listener);
    }

    /// Ends flows and exchanges that are silent for too long at `now`. Needed where no packets come.
    pub fn end_idle(&mut self, now: Wall, listener: &mut impl ConversationListener) {
        self.table.end_idle(now, listener);
        self.exchanges
            .end_idle(now, |pair| listener.pair_ended(pair));
    }

    /// Ends all flows and exchanges.
    pub fn end(&mut self, listener: &mut impl ConversationListener) {
        self.table.end(listener);
        self.exchanges.end(|pair| listener.pair_ended(pair));
    }
}
