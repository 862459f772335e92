//! The weight of a level among all: by its current and recent flows. Knows no level.

/// With fewer flows than these, a level need not have several flows.
const FEW: u32 = 16;

/// Numbers of current and recent flows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    /// Current flows.
    pub(crate) now: u32,
    /// Flows that came there.
    pub(crate) came: u32,
    /// The same, with gradual forgetting.
    pub(crate) recent: f64,
}

impl Weight {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            now: self.now.saturating_add(other.now),
            came: self.came.saturating_add(other.came),
            recent: self.recent + other.recent,
        }
    }

    /// Its share of all, now or recently.
    pub(crate) fn share(&self, all: &Self) -> f64 {
        let now = f64::from(self.now) / f64::from(all.now.max(1));
        now.max(self.recent / all.recent.max(1.0))
    }

    /// At least 2, and 1 %. If few flows have a level, one flow that lasted at a level is enough, even if
    /// only its own past shows it.
    pub(crate) fn has_enough_flows(&self, all: &Self) -> bool {
        let min_flows = if all.now < FEW { 1 } else { 2 };
        self.now.max(self.came) >= min_flows && self.share(all) >= 0.01
    }
}
