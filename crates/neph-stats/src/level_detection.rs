//! What is reported of a flow's base latency. Knows no rule by which it was found.

/// The kind of a finding about a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Its first base latency.
    First,
    /// Its path changed: the base latency became another.
    Change,
    /// The base reported before was wrong: it was measured during congestion, or with too few samples. The
    /// base since then is this one.
    Correction,
}

/// A base latency without the drift of all flows, and how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelDetection {
    /// The kind of the finding.
    pub finding: Finding,
    /// When the first sample at the new level was sent, in nanoseconds of the caller's clock.
    pub at: i64,
    /// When the sample was sent that made it certain.
    pub certain: i64,
    /// The base before, as known at its end; `None` for the first.
    pub before: Option<i64>,
    /// The base since `at`, as known when it was reported.
    pub after: i64,
}
