//! The verdict on two scenarios. Owns the words; the rule is `family.rs`.

/// The verdict on a candidate, compared with its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Significantly different by more than what matters, in the wanted direction.
    Better,
    /// Significantly different by more than what matters, in the other direction.
    Worse,
    /// Significantly different by less than what matters.
    Equivalent,
    /// Not significant: more experiments are needed, or a larger smallest difference.
    Inconclusive,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Smaller values, as for a latency.
    Lower,
    /// Larger values, as for a throughput.
    Higher,
}
