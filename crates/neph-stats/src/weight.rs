//! How much a level weighs among all: by the flows that are there, and by those that came lately. Knows
//! no level.

/// Fewer flows than these have too little company to ask for it.
const FEW: u32 = 16;

/// How many flows are and lately were somewhere.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    /// Flows that are there.
    pub(crate) now: u32,
    /// Flows that came there.
    pub(crate) came: u32,
    /// The same, forgotten by and by.
    pub(crate) lately: f64,
}

impl Weight {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            now: self.now.saturating_add(other.now),
            came: self.came.saturating_add(other.came),
            lately: self.lately + other.lately,
        }
    }

    /// Which share of all this is, now or lately.
    pub(crate) fn share(&self, all: &Self) -> f64 {
        let now = f64::from(self.now) / f64::from(all.now.max(1));
        now.max(self.lately / all.lately.max(1.0))
    }

    /// At least 2, and one in a hundred. Where few flows have a level, company cannot be asked for: a
    /// flow that lasted at a level is enough, if only its own past knows it.
    pub(crate) fn enough(&self, all: &Self) -> bool {
        let least = if all.now < FEW { 1 } else { 2 };
        self.now.max(self.came) >= least && self.share(all) >= 0.01
    }
}
