//! How many segments of a window are followed.

/// How much one side may remember of what awaits an answer. Of larger windows a part is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentBudget {
    /// 4,096 segments: 96 KB.
    Ample,
    /// 256 of them.
    Tight,
    /// 8 of them.
    Scarce,
}

impl SegmentBudget {
    pub(super) const fn max_segments(self) -> usize {
        match self {
            Self::Ample => 4_096,
            Self::Tight => 256,
            Self::Scarce => 8,
        }
    }
}
