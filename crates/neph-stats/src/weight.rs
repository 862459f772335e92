//! The weight of a level among all: by its current and recent flows. Knows no level.

/// With fewer flows than these, a level need not have several flows.
const SMALL_FLEET_FLOWS: u32 = 16;

/// Numbers of current and recent flows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    /// Current flows.
    pub(crate) current_flows: u32,
    /// Flows that arrived there.
    pub(crate) arrived_flows: u32,
    /// The same, decayed over time.
    pub(crate) recent_arrivals: f64,
}

impl Weight {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            current_flows: self.current_flows.saturating_add(other.current_flows),
            arrived_flows: self.arrived_flows.saturating_add(other.arrived_flows),
            recent_arrivals: self.recent_arrivals + other.recent_arrivals,
        }
    }

    /// Its share of all, now or recently.
    pub(crate) fn share(&self, total: &Self) -> f64 {
        let current_share = f64::from(self.current_flows) / f64::from(total.current_flows.max(1));
        current_share.max(self.recent_arrivals / total.recent_arrivals.max(1.0))
    }

    /// At least 2, and 1 %. If few flows have a level, one flow that lasted at a level is enough, even if
    /// only its own past shows it.
    pub(crate) fn has_enough_flows(&self, total: &Self) -> bool {
        let min_flows = if total.current_flows < SMALL_FLEET_FLOWS {
            1
        } else {
            2
        };
        self.current_flows.max(self.arrived_flows) >= min_flows && self.share(total) >= 0.01
    }
}
