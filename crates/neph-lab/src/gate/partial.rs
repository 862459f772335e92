//! A partial shape: one level of a topology file, or a temporary change.

use neph_model::{BitRate, Span};

use super::shape::{Discipline, QueueLimit, Shape, Wire};
use super::{Jitter, Loss, Share};

/// The specified parts of a direction's shape; the others stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialShape {
    /// The wire behind the transmitter.
    pub wire: PartialWire,
    /// [`Shape::rate`]; it cannot be removed.
    pub rate: Option<BitRate>,
    /// [`Shape::queue`].
    pub queue: Option<QueueLimit>,
    /// [`Shape::discipline`].
    pub discipline: Option<Discipline>,
    /// [`Shape::mtu`]; it cannot be removed.
    pub mtu: Option<u32>,
}

/// The specified parts of a wire; the others stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialWire {
    /// [`Wire::delay`].
    pub delay: Option<Span>,
    /// [`Wire::jitter`].
    pub jitter: Option<Jitter>,
    /// [`Wire::loss`].
    pub loss: Option<Loss>,
    /// [`Wire::corrupt`].
    pub corrupt: Option<Share>,
    /// [`Wire::duplicate`].
    pub duplicate: Option<Share>,
    /// [`Wire::reorder`].
    pub reorder: Option<Share>,
}

impl PartialShape {
    /// Changes the specified parts of `shape`.
    pub(crate) fn apply(&self, shape: &mut Shape) {
        self.wire.apply(&mut shape.wire);
        shape.rate = self.rate.or(shape.rate);
        shape.queue = self.queue.unwrap_or(shape.queue);
        shape.discipline = self.discipline.unwrap_or(shape.discipline);
        shape.mtu = self.mtu.or(shape.mtu);
    }
}

impl PartialWire {
    /// Changes the specified parts of `wire`.
    pub(crate) fn apply(&self, wire: &mut Wire) {
        wire.delay = self.delay.unwrap_or(wire.delay);
        if let Some(jitter) = &self.jitter {
            wire.jitter = jitter.clone();
        }
        wire.loss = self.loss.unwrap_or(wire.loss);
        wire.corrupt = self.corrupt.unwrap_or(wire.corrupt);
        wire.duplicate = self.duplicate.unwrap_or(wire.duplicate);
        wire.reorder = self.reorder.unwrap_or(wire.reorder);
    }
}
