//! A shape of which only some is said: one level of a topology file, or a change for a while.

use neph_model::{BitRate, Span};

use super::shape::{Discipline, QueueLimit, Shape, Wire};
use super::{Jitter, Loss, Share};

/// What is said about a direction of a link; the rest is as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// Behind the transmitter.
    pub wire: PartialWire,
    /// [`Shape::rate`]; there is no way to say that there is none.
    pub rate: Option<BitRate>,
    /// [`Shape::queue`].
    pub queue: Option<QueueLimit>,
    /// [`Shape::discipline`].
    pub discipline: Option<Discipline>,
    /// [`Shape::mtu`]; there is no way to say that there is none.
    pub mtu: Option<u32>,
}

/// What is said about a wire; the rest is as it was.
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

impl Partial {
    /// Changes `shape` to what is said.
    pub(crate) fn apply(&self, shape: &mut Shape) {
        self.wire.apply(&mut shape.wire);
        shape.rate = self.rate.or(shape.rate);
        shape.queue = self.queue.unwrap_or(shape.queue);
        shape.discipline = self.discipline.unwrap_or(shape.discipline);
        shape.mtu = self.mtu.or(shape.mtu);
    }
}

impl PartialWire {
    /// Changes `wire` to what is said.
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
