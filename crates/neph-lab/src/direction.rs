//! Owns the two directions of a link.

/// The direction of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the link's `a` to its `b`.
    AToB,
    /// From the link's `b` to its `a`.
    BToA,
}

impl Direction {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::AToB, Self::BToA];

    /// 0 or 1.
    pub const fn index(self) -> usize {
        match self {
            Self::AToB => 0,
            Self::BToA => 1,
        }
    }
}
