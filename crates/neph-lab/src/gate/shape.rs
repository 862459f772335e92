//! The effects of one direction of a link on packets: requested by a topology, applied by a gate.

use neph_model::{BitRate, ByteSize, Span};

use super::{CoDel, Jitter, Loss, ReservedProtocol, Share, Splitting};

/// The effects of one direction of a link on packets: transmission first, then the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The wire behind the transmitter, if there is a single path.
    pub wire: Wire,
    /// Transmission rate of whole frames, Ethernet header included, as in `tc`.
    pub rate: Option<BitRate>,
    /// Maximum queue for transmission; packets beyond it are dropped. Without a rate nothing waits.
    pub queue: QueueLimit,
    /// Which packets leave the queue, and which are dropped.
    pub discipline: Discipline,
    /// The longest packet in bytes, without its Ethernet header; a longer one is dropped.
    pub mtu: Option<u32>,
    /// Parallel paths behind the shared transmitter; empty: the single wire above.
    pub paths: Vec<Path>,
    /// How the paths divide the flows.
    pub splitting: Splitting,
}

/// One of several paths of a link. Each keeps its packets in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The name.
    pub name: String,
    /// Share of the flows, in proportion to the others; 0: none. In a topology 0 to 1000; a controller's
    /// weights are a million times finer.
    pub weight: u32,
    /// The only protocol on this path, which uses no other path; `None`: the path has no reservation.
    pub only: Option<ReservedProtocol>,
    /// Its effects on packets.
    pub wire: Wire,
}

impl Shape {
    /// The wire of each path, or the only one.
    pub(crate) fn wires(&self) -> impl Iterator<Item = &Wire> {
        let only = self.paths.is_empty().then_some(&self.wire);
        only.into_iter()
            .chain(self.paths.iter().map(|path| &path.wire))
    }

    /// The delay of the fastest path, which represents the nearest route.
    pub(crate) fn min_delay(&self) -> Span {
        let used_paths = self.paths.iter().filter(|path| path.weight > 0);
        let min_of_used = used_paths.map(|path| path.wire.delay).min();
        let min_of_all = self.wires().map(|wire| wire.delay).min();
        min_of_used.or(min_of_all).unwrap_or_default()
    }
}

/// The effects of a wire on packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Time on the wire, without transmission and queue; at least 0.
    pub delay: Span,
    /// Variation of the delay from packet to packet. Packets stay in order, except those that
    /// [`Self::reorder`] selects.
    pub jitter: Jitter,
    /// Which packets are lost.
    pub loss: Loss,
    /// The share of packets that arrive with one bit flipped and unchanged checksums.
    pub corrupt: Share,
    /// The share of packets that arrive twice. The copy, including a flipped bit, departs immediately behind
    /// the packet and takes no transmission time.
    pub duplicate: Share,
    /// The share of packets that skip delay and jitter. They depart after their transmission, and so before
    /// packets on the wire (netem's `reorder`).
    pub reorder: Share,
}

/// What happens to packets that wait for transmission. Packets that do not fit into the queue are always
/// dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// All are sent, in order.
    #[default]
    DropTail,
    /// Packets at the head are dropped at times after packets waited too long (RFC 8289).
    CoDel(CoDel),
}

/// Capacity for waiting packets, including the frame in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes; of the frame in transmission, those that are not on the wire yet.
    Bytes(ByteSize),
    /// Packets.
    Packets(u32),
}

/// A common size in home routers.
impl Default for QueueLimit {
    fn default() -> Self {
        Self::Bytes(ByteSize(256 * 1024))
    }
}

impl QueueLimit {
    /// The capacity in bytes for frames of `length` bytes.
    pub fn bytes_of(self, length: u32) -> ByteSize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(packets) => ByteSize(u64::from(packets) * u64::from(length)),
        }
    }
}

/// Transmission time of `length` bytes at `rate`, rounded to the nanosecond.
pub fn transmission_time(length: u32, rate: BitRate) -> Span {
    let rate = u128::from(rate.0.max(1));
    let nanos = (u128::from(length) * 8_000_000_000 + rate / 2) / rate;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
