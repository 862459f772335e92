//! A circuit: a task between two ends.

/// A task between two ends, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Circuit {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Circuit {
    /// Its ends, the lesser first.
    pub(super) fn ends(self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }

    pub(super) const fn other(self, end: usize) -> usize {
        if self.from == end { self.to } else { self.from }
    }
}
