//! Which values of two levels are held against each other.

use std::collections::BTreeMap;

use neph_stats::{Level, PairedShift, StatsError, distinguishes, shift_of_levels};

/// An experiment's value in each block.
pub(crate) type ByBlock = BTreeMap<u32, Level>;

/// The values of a measure that are held against each other: a level's and the first level's.
pub(crate) enum Samples {
    /// Block by block, where any block has both.
    Blocks(Vec<(Level, Level)>),
    /// Else all of one and all of the other. What lies between is the levels and the time: no test
    /// can keep the two from each other.
    Apart(Vec<Level>, Vec<Level>),
}

impl Samples {
    pub(crate) fn of(other: &ByBlock, first: &ByBlock) -> Self {
        let pairs = other.iter();
        let pairs = pairs.filter_map(|(block, level)| Some((*level, *first.get(block)?)));
        let pairs: Vec<(Level, Level)> = pairs.collect();
        if pairs.is_empty() {
            let values = |levels: &ByBlock| levels.values().copied().collect();
            Self::Apart(values(other), values(first))
        } else {
            Self::Blocks(pairs)
        }
    }

    /// Whether there is something to compare, and no number in it.
    pub(crate) fn are_all_lost(&self) -> bool {
        match self {
            Self::Blocks(pairs) => !pairs.iter().any(|block| distinguishes(*block)),
            Self::Apart(others, firsts) => {
                let mut levels = others.iter().chain(firsts);
                !others.is_empty()
                    && !firsts.is_empty()
                    && levels.all(|level| *level == Level::Censored)
            }
        }
    }

    /// Those of which the test is made.
    pub(crate) fn sides(&self) -> (Vec<Level>, Vec<Level>) {
        match self {
            Self::Blocks(pairs) => {
                let pairs = pairs.iter().copied();
                pairs.filter(|block| distinguishes(*block)).unzip()
            }
            Self::Apart(others, firsts) => (others.clone(), firsts.clone()),
        }
    }

    /// How far the level lies above the first one, with what a test rests on where both were measured in
    /// the same blocks.
    pub(crate) fn shift(&self) -> Result<(f64, Option<PairedShift>), StatsError> {
        match self {
            Self::Blocks(pairs) => {
                let shift = PairedShift::of_blocks(pairs)?;
                Ok((shift.estimate(), Some(shift)))
            }
            Self::Apart(others, firsts) => {
                let test = shift_of_levels(others, firsts)?;
                Ok((test.shift.estimate, None))
            }
        }
    }
}
