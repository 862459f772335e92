//! The verdict on two scenarios. Owns the words; the rule is `family.rs`.

/// What may be said about a candidate beside its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Shown to differ by more than what matters, in the wanted direction.
    Better,
    /// Shown to differ by more than what matters, in the other direction.
    Worse,
    /// Shown to differ by less than what matters.
    Equivalent,
    /// Neither can be said: more experiments are needed, or a coarser minimum effect.
    Inconclusive,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Smaller values, as of a latency.
    Lower,
    /// Larger values, as of a throughput.
    Higher,
}
