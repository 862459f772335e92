//! Which values of two levels are compared.

use std::collections::BTreeMap;

use neph_stats::{Level, PairedShift, StatsError, distinguishes, shift_of_levels};

/// An experiment's value in each block.
pub(crate) type ByBlock = BTreeMap<u32, Level>;

/// The values of a measure that are compared: a level's and the first level's.
pub(crate) enum Samples {
    /// Block by block, if any block has both.
    Paired(Vec<(Level, Level)>),
    /// Else all values of both. No test can separate the effect of the level from that of the time.
    Unpaired(Vec<Level>, Vec<Level>),
}

impl Samples {
    pub(crate) fn of(other: &ByBlock, first: &ByBlock) -> Self {
        let pairs = other.iter();
        let pairs = pairs.filter_map(|(block, level)| Some((*level, *first.get(block)?)));
        let pairs: Vec<(Level, Level)> = pairs.collect();
        if pairs.is_empty() {
            let values = |levels: &ByBlock| levels.values().copied().collect();
            Self::Unpaired(values(other), values(first))
        } else {
            Self::Paired(pairs)
        }
    }

    /// Whether there are values to compare, but lost flows decide all of them.
    pub(crate) fn are_all_lost(&self) -> bool {
        match self {
            Self::Paired(pairs) => !pairs.iter().any(|block| distinguishes(*block)),
            Self::Unpaired(others, firsts) => {
                let mut levels = others.iter().chain(firsts);
                !others.is_empty()
                    && !firsts.is_empty()
                    && levels.all(|level| *level == Level::Censored)
            }
        }
    }

    /// The values that the test uses.
    pub(crate) fn sides(&self) -> (Vec<Level>, Vec<Level>) {
        match self {
            Self::Paired(pairs) => {
                let pairs = pairs.iter().copied();
                pairs.filter(|block| distinguishes(*block)).unzip()
            }
            Self::Unpaired(others, firsts) => (others.clone(), firsts.clone()),
        }
    }

    /// How far the level lies above the first one; with the paired shift for a test if both were measured
    /// in the same blocks.
    pub(crate) fn shift(&self) -> Result<(f64, Option<PairedShift>), StatsError> {
        match self {
            Self::Paired(pairs) => {
                let shift = PairedShift::of_blocks(pairs)?;
                Ok((shift.estimate(), Some(shift)))
            }
            Self::Unpaired(others, firsts) => {
                let test = shift_of_levels(others, firsts)?;
                Ok((test.shift.estimate, None))
            }
        }
    }
}
