//! What one direction of a link does to packets: asked for by a topology, carried out by a gate.

use neph_model::{BitRate, ByteSize, Span};

use super::{CoDel, Jitter, Loss, Reserved, Share, Splitting};

/// What one direction of a link does to packets: transmission first, then the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// What happens behind the transmitter, where there is one path.
    pub wire: Wire,
    /// Transmission rate; counted over whole frames, Ethernet header included, as `tc` does.
    pub rate: Option<BitRate>,
    /// What may wait for transmission; what does not fit is dropped. Without a rate nothing ever
    /// waits.
    pub queue: QueueLimit,
    /// Which packets leave the queue, and which are dropped.
    pub discipline: Discipline,
    /// The longest packet in bytes, without its Ethernet header; a longer one is dropped.
    pub mtu: Option<u32>,
    /// Parallel paths behind the transmitter, which they share; none for the one wire above.
    pub paths: Vec<Path>,
    /// How the paths divide the flows.
    pub splitting: Splitting,
}

/// One of several ways over a link. Each keeps its own packets in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// What it is called.
    pub name: String,
    /// How many flows it gets, in proportion to the others; none at 0. 0 to 1000 as asked for; a
    /// controller's are a million times as fine.
    pub weight: u32,
    /// The only protocol that takes it, and takes no other; none for a path that is for all.
    pub only: Option<Reserved>,
    /// What it does to packets.
    pub wire: Wire,
}

impl Shape {
    /// The wire of each path, or the only one.
    pub(crate) fn wires(&self) -> impl Iterator<Item = &Wire> {
        let only = self.paths.is_empty().then_some(&self.wire);
        only.into_iter()
            .chain(self.paths.iter().map(|path| &path.wire))
    }

    /// The delay of the fastest path: what the nearest way is told by.
    pub(crate) fn least_delay(&self) -> Span {
        let used = self.paths.iter().filter(|path| path.weight > 0);
        let used = used.map(|path| path.wire.delay).min();
        let all = self.wires().map(|wire| wire.delay).min();
        used.or(all).unwrap_or_default()
    }
}

/// What a wire does to packets that are on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Time on the wire, without transmission and queue; at least 0.
    pub delay: Span,
    /// How the delay varies from packet to packet. Packets never overtake each other, except
    /// those that [`Self::reorder`] picks.
    pub jitter: Jitter,
    /// Which packets are lost.
    pub loss: Loss,
    /// The share of packets that arrive with one bit flipped, behind the back of the checksums.
    pub corrupt: Share,
    /// The share of packets that arrive twice: the copy, flipped bit included, leaves right
    /// behind the packet and takes no transmission time.
    pub duplicate: Share,
    /// The share of packets that skip delay and jitter: they leave as soon as they are
    /// transmitted, and so overtake whatever is on the wire (netem's `reorder`).
    pub reorder: Share,
}

/// What happens to packets that wait for transmission. Whatever it is, one that does not fit the
/// queue is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// All are sent, in order.
    #[default]
    DropTail,
    /// Those at the head are dropped at times when packets have stood too long (RFC 8289).
    CoDel(CoDel),
}

/// How much may wait for transmission, the frame being sent included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes; of the frame being sent, those that are not on the wire yet.
    Bytes(ByteSize),
    /// Packets.
    Packets(u32),
}

/// What a home access router commonly holds.
impl Default for QueueLimit {
    fn default() -> Self {
        Self::Bytes(ByteSize(256 * 1024))
    }
}

impl QueueLimit {
    /// The bytes it holds of frames of `length` bytes.
    pub fn bytes_of(self, length: u32) -> ByteSize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(packets) => ByteSize(u64::from(packets) * u64::from(length)),
        }
    }
}

/// How long `length` bytes take at `rate`, rounded to the nanosecond.
pub fn transmission_time(length: u32, rate: BitRate) -> Span {
    let rate = u128::from(rate.0.max(1));
    let nanos = (u128::from(length) * 8_000_000_000 + rate / 2) / rate;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
