//! Outcomes of one flow's messages, in half of the memory of a [`FlowTally`]: 32 bits suffice for one flow.

use crate::flow_tally::FlowTally;

/// The counters of a [`FlowTally`], in its order; each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts([u32; FlowTally::COUNTERS]);

impl Counts {
    /// Adds the outcome of a message.
    pub(crate) fn add(&mut self, tally: &FlowTally) {
        let mut tally = *tally;
        for (counter, increment) in self.0.iter_mut().zip(tally.counters()) {
            *counter = counter.saturating_add(u32::try_from(*increment).unwrap_or(u32::MAX));
        }
    }

    /// The counters as a [`FlowTally`].
    pub(crate) fn to_tally(self) -> FlowTally {
        let mut tally = FlowTally::default();
        for (counter, count) in tally.counters().into_iter().zip(self.0) {
            *counter = count.into();
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_counters_keep_their_names() {
        let mut message = FlowTally::default();
        for (counter, number) in message.counters().into_iter().zip(1..) {
            *counter = number;
        }
        let mut counts = Counts::default();
        counts.add(&message);
        assert_eq!(counts.to_tally(), message);
        counts.add(&message);
        assert_eq!(counts.to_tally().reordered, 2 * message.reordered);
    }

    #[test]
    fn counters_saturate() {
        let maximum = FlowTally {
            replies: u32::MAX.into(),
            ..FlowTally::default()
        };
        let mut counts = Counts::default();
        counts.add(&maximum);
        counts.add(&maximum);
        assert_eq!(counts.to_tally(), maximum);
    }
}
