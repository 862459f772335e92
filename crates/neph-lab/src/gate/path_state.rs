//! A wire with what passed it already: keeps its packets in order and remembers its bursts.

use neph_model::Span;

use super::loss::LossState;
use super::outcome::{Departure, PacketOutcome, Treatment};
use super::random::Random;
use super::shape::Wire;
use super::{Jitter, Moment, Share};

/// One wire's state.
#[derive(Clone, Debug)]
pub(super) struct PathState {
    /// The path's index.
    index: u8,
    pub(super) wire: Wire,
    last_due: Moment,
    loss_state: LossState,
    /// Entries taken from a trace.
    trace_entries_used: usize,
}

impl PathState {
    /// A wire that nothing has passed yet, of the path with this index.
    pub(super) fn new(index: u8, wire: Wire) -> Self {
        Self {
            index,
            wire,
            last_due: Moment::DISTANT_PAST,
            loss_state: LossState::default(),
            trace_entries_used: 0,
        }
    }

    /// What becomes of a packet whose last bit is on the wire at `transmission_end`.
    pub(super) fn transmit(
        &mut self,
        transmission_end: Moment,
        random: &mut Random,
    ) -> PacketOutcome {
        if let Some(cause) = self.loss_state.next_loss(&self.wire.loss, random) {
            return PacketOutcome::Dropped(cause, Some(self.index));
        }
        let treatment = Treatment {
            corrupt: random
                .bernoulli(self.wire.corrupt)
                .then(|| random.next_u64()),
            is_duplicated: random.bernoulli(self.wire.duplicate),
            is_early: random.bernoulli(self.wire.reorder),
        };
        let due = if treatment.is_early {
            transmission_end
        } else {
            let deviation = self.wire.jitter.draw(random, &mut self.trace_entries_used);
            let delay = (self.wire.delay + deviation).max(Span::ZERO);
            self.last_due = self.last_due.max(transmission_end + delay);
            self.last_due
        };
        PacketOutcome::Forwarded(Departure {
            due,
            path: self.index,
            treatment,
        })
    }

    /// The next packet takes the first entry of a trace.
    pub(super) fn rewind(&mut self) {
        self.trace_entries_used = 0;
    }

    /// What no packet can pass faster than.
    pub(super) fn min_delay(&self) -> Span {
        if self.wire.reorder > Share::NONE {
            return Span::ZERO;
        }
        match self.wire.jitter {
            Jitter::None | Jitter::Pareto(_) | Jitter::Trace(_) => self.wire.delay,
            Jitter::Uniform(bound) => (self.wire.delay - bound).max(Span::ZERO),
            Jitter::Normal(_) => Span::ZERO,
        }
    }
}
