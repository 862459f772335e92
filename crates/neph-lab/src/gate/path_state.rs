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
    number: u8,
    pub(super) wire: Wire,
    last_due: Moment,
    loss_state: LossState,
    /// Entries taken from a trace.
    trace_entries_used: usize,
}

impl PathState {
    /// A wire that nothing has passed yet, of the path with this index.
    pub(super) fn new(number: u8, wire: Wire) -> Self {
        Self {
            number,
            wire,
            last_due: Moment::DISTANT_PAST,
            loss_state: LossState::default(),
            trace_entries_used: 0,
        }
    }

    /// What becomes of a packet whose last bit is on the wire at `sent`.
    pub(super) fn transmit(&mut self, sent: Moment, random: &mut Random) -> PacketOutcome {
        if let Some(cause) = self.loss_state.next(&self.wire.loss, random) {
            return PacketOutcome::Dropped(cause, Some(self.number));
        }
        let treatment = Treatment {
            corrupt: random.hits(self.wire.corrupt).then(|| random.number()),
            is_duplicated: random.hits(self.wire.duplicate),
            is_early: random.hits(self.wire.reorder),
        };
        let due = if treatment.is_early {
            sent
        } else {
            let deviation = self.wire.jitter.draw(random, &mut self.trace_entries_used);
            let delay = (self.wire.delay + deviation).max(Span::ZERO);
            self.last_due = self.last_due.max(sent + delay);
            self.last_due
        };
        PacketOutcome::Leaves(Departure {
            due,
            path: self.number,
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
