//! What packets show: flows of TCP, and questions with answers outside of it, each packet once.
//!
//! Owns which of them takes a packet, and that a packet which passed several interfaces counts once.

use crate::{Answered, Asking, Between, Exchanges, Limits, Listener, Pair, Table, Twice};
use neph_model::Wall;
use neph_wire::dissect::{Dissected, Plain};

/// What to capture so that packets are there once, or can be told apart: of one that a router passed on the
/// copy is another to the byte, and nothing but its interface tells it.
pub const ONCE: &str = "one interface, or with tcpdump -i any in its default format (LINUX_SLL2), \
                               which tells interfaces, or take out copies that are the same to the byte \
                               (editcap -w 0.02 FILE NEW)";

/// Of so many packets at the beginning of a capture each is remembered: it may be one of several
/// interfaces, and this the first.
const FIRST: u32 = 1000;

/// Is told what packets show, as they show it.
pub trait Told: Listener {
    /// Those who asked and answered are over.
    fn exchanged(&mut self, pair: &Pair);

    /// Somebody was answered.
    fn answered(&mut self, _of: &Between, _trip: Answered) {}
}

/// Who is told, as exchanges know him.
struct Telling<'a, T>(&'a mut T);

impl<T: Told> Asking for Telling<'_, T> {
    fn trip(&mut self, of: &Between, trip: Answered) {
        self.0.answered(of, trip);
    }

    fn ended(&mut self, pair: &Pair) {
        self.0.exchanged(pair);
    }
}

/// What was counted of all packets, whatever they showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of IP, of each packet once, as flows count theirs: from the IP header on, in a tunnel from
    /// the inner one.
    pub bytes: u64,
    /// Packets that the capture shows again: at another interface, in another layer, by a mirror.
    pub copies: u64,
}

impl Counts {
    /// What was added since `before`.
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
    twice: Twice,
    /// Whether packets of several interfaces were seen: only there they are looked for twice.
    has_interfaces: bool,
    /// How many of the first packets are still to come.
    first: u32,
    counts: Counts,
}

/// Of packets that were looked at those that stand in a capture again, at the same interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    pub packets: u64,
    pub looked: u64,
}

impl Again {
    /// Fewer are made by networks too.
    const FEW: u64 = 10;
    /// More than one in so many.
    const SHARE: u64 = 20;

    /// Whether somebody wrote them twice.
    pub const fn is_many(self) -> bool {
        self.packets >= Self::FEW && self.packets * Self::SHARE >= self.looked
    }
}

impl Conversations {
    /// Servers at `quic` ports of UDP speak QUIC too.
    pub fn new(limits: Limits, quic: &[u16]) -> Self {
        Self {
            table: Table::new(limits),
            exchanges: Exchanges::new(limits.flows, limits.idle).with_quic_ports(quic),
            twice: Twice::default(),
            has_interfaces: false,
            first: FIRST,
            counts: Counts::default(),
        }
    }

    /// Another capture begins.
    pub const fn begin(&mut self) {
        self.first = FIRST;
    }

    /// What was seen of packets that stand in captures twice: none that are read at a glance are looked
    /// at.
    pub const fn again(&self) -> Again {
        Again {
            packets: self.twice.again(),
            looked: self.twice.looked(),
        }
    }

    /// A packet passed `interface`, a number of the capture's.
    pub fn see(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>, told: &mut impl Told) {
        self.has_interfaces |= interface > 0;
        self.first = self.first.saturating_sub(1);
        if !self.takes_plain() && self.twice.is_duplicate(at, interface, packet) {
            self.counts.copies += 1;
            return;
        }
        self.counts.bytes += packet.ip.total_len as u64;
        if !self.exchanges.hear(at, packet, &mut Telling(told)) {
            self.table.see(at, packet, told);
        }
    }

    /// A packet whose headers were cut off before they told its addresses.
    pub const fn see_cut(&mut self) {
        self.table.see_cut();
    }

    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether segments may be read at a glance: nobody asks whether they passed another interface.
    pub const fn takes_plain(&self) -> bool {
        !self.has_interfaces && self.first == 0 && !self.twice.has_copies()
    }

    /// A segment that was read at a glance passed the only interface.
    #[inline]
    pub fn see_plain(&mut self, at: Wall, read: &Plain, told: &mut impl Told) {
        self.counts.bytes += u64::from(read.total_len);
        self.table.see_plain(at, read, told);
    }

    /// Ends what is silent for too long at `now`, where no packet says how late it is.
    pub fn silence(&mut self, now: Wall, told: &mut impl Told) {
        self.table.silence(now, told);
        self.exchanges.silence(now, |pair| told.exchanged(pair));
    }

    /// No more packets come.
    pub fn end(&mut self, told: &mut impl Told) {
        self.table.end(told);
        self.exchanges.end(|pair| told.exchanged(pair));
    }
}
