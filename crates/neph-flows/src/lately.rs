//! How a flow's last messages fared. Its whole tally does not tell that it went silent just now.

use serde::Serialize;

/// How many of a flow's last messages were lost: what its whole tally does not tell of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastMessages {
    /// Not replied to in time.
    pub lost: u32,
    /// Of how many: those that were sent, 63 at most.
    pub of: u32,
}

/// The last 63 messages, a bit each, newest last, after a 1 that marks where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lately(u64);

/// Where the mark stays when there are more.
const FULL: u64 = 1 << 63;

impl Default for Lately {
    fn default() -> Self {
        Self(1)
    }
}

impl Lately {
    /// The next message was lost, or replied to.
    pub(crate) const fn push(&mut self, is_lost: bool) {
        self.0 = self.0 << 1 | self.0 & FULL | is_lost as u64;
    }

    /// How many there are, and how many of them were lost.
    pub(crate) const fn told(self) -> LastMessages {
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
        fn the_last_63_are_counted(fates in prop::collection::vec(any::<bool>(), 0..200)) {
            let mut lately = Lately::default();
            for is_lost in &fates {
                lately.push(*is_lost);
            }
            let last = &fates[fates.len().saturating_sub(63)..];
            let lost = last.iter().filter(|is_lost| **is_lost).count();
            let told = lately.told();
            prop_assert_eq!((told.lost as usize, told.of as usize), (lost, last.len()));
        }
    }
}
