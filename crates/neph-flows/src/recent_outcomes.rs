//! Outcomes of a flow's last messages. The whole tally does not show that it has just gone silent.

use serde::Serialize;

/// Number of lost messages among a flow's last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastMessages {
    /// Without a reply in time.
    pub lost: u32,
    /// Number of sent messages that are counted, at most 63.
    pub of: u32,
}

/// The last 63 messages, a bit each, newest last, after a 1 that marks the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentOutcomes(u64);

/// The position of the start bit with 63 messages.
const START_BIT_OF_63: u64 = 1 << 63;

impl Default for RecentOutcomes {
    fn default() -> Self {
        Self(1)
    }
}

impl RecentOutcomes {
    /// Adds the next message: lost, or replied to.
    pub(crate) const fn push(&mut self, is_lost: bool) {
        self.0 = self.0 << 1 | self.0 & START_BIT_OF_63 | is_lost as u64;
    }

    /// Number of messages, and of lost ones.
    pub(crate) const fn to_last_messages(self) -> LastMessages {
        LastMessages {
            lost: self.0.count_ones() - 1,
            of: self.0.ilog2(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_last_63_outcomes_are_counted(losses in prop::collection::vec(any::<bool>(), 0..200)) {
            let mut recent = RecentOutcomes::default();
            for is_lost in &losses {
                recent.push(*is_lost);
            }
            let last = &losses[losses.len().saturating_sub(63)..];
            let lost = last.iter().filter(|is_lost| **is_lost).count();
            let last_messages = recent.to_last_messages();
            prop_assert_eq!((last_messages.lost as usize, last_messages.of as usize), (lost, last.len()));
        }
    }
}
