//! How one flow's messages fared, in half the room of what is told: nobody sends four thousand
//! million messages on one flow.

use crate::flow_tally::FlowTally;

/// The counters of a [`FlowTally`], in its order; each stays at the most that it can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts([u32; FlowTally::COUNTERS]);

impl Counts {
    /// Adds what a message brought.
    pub(crate) fn add(&mut self, found: &FlowTally) {
        let mut found = *found;
        for (own, more) in self.0.iter_mut().zip(found.counters()) {
            *own = own.saturating_add(u32::try_from(*more).unwrap_or(u32::MAX));
        }
    }

    /// The same for whoever reads it.
    pub(crate) fn told(self) -> FlowTally {
        let mut told = FlowTally::default();
        for (counter, own) in told.counters().into_iter().zip(self.0) {
            *counter = own.into();
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_told_under_the_same_name() {
        let mut message = FlowTally::default();
        for (counter, number) in message.counters().into_iter().zip(1..) {
            *counter = number;
        }
        let mut counts = Counts::default();
        counts.add(&message);
        assert_eq!(counts.told(), message);
        counts.add(&message);
        assert_eq!(counts.told().reordered, 2 * message.reordered);
    }

    #[test]
    fn a_counter_that_is_full_stays_so() {
        let most = FlowTally {
            replies: u32::MAX.into(),
            ..FlowTally::default()
        };
        let mut counts = Counts::default();
        counts.add(&most);
        counts.add(&most);
        assert_eq!(counts.told(), most);
    }
}
