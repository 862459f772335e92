//! The quantity of an experiment that is compared between two seasons, such as low and high load, or any two
//! sets of experiments.
//!
//! The unit is the experiment, not the flow or the message: flows of one experiment share the state of the
//! network. `neph-stats` does the comparison.

use neph_stats::Level;

use crate::flow_quantiles::{FlowQuantile, OverBins};
use crate::view::{FleetView, FlowLatencyBin};

/// The quantile over flows that is compared with their median.
const SLOW_FLOWS_QUANTILE: FlowQuantile = FlowQuantile::P95;

/// A quantity of one experiment and pair, for comparisons between seasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Path changes per flow and hour of observable time.
    Changes,
    /// Highest over lowest latency class.
    Inflation,
    /// p95 over flows above p50 over flows, as a share of p50; median over bins.
    Unfairness,
}

/// Why an experiment has no value of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// Too few flows in every bin of time.
    TooFewFlows {
        /// The minimum number.
        needs: u32,
    },
    /// There was nothing to compare.
    Unseen,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Changes, Self::Inflation, Self::Unfairness];

    /// The name on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changes => "path changes per flow and hour",
            Self::Inflation => "latency inflation",
            Self::Unfairness => "unfairness (p95 over p50)",
        }
    }

    /// Minimum number of flows.
    pub const fn needs(self) -> u32 {
        match self {
            Self::Changes | Self::Inflation => 1,
            Self::Unfairness => SLOW_FLOWS_QUANTILE.needs(),
        }
    }

    /// Its value in one experiment for one endpoint.
    ///
    /// # Errors
    /// The reason, if it has no value.
    pub fn of(self, view: &FleetView, endpoint: usize) -> Result<Level, NoValue> {
        let pair = view.pairs.get(endpoint).ok_or(NoValue::Unseen)?;
        let value = match self {
            Self::Changes => pair.changes_per_flow_hour(),
            Self::Inflation => pair.inflation.map(|inflation| inflation.ratio),
            Self::Unfairness => {
                let bins = view.latency_bins.get(endpoint).ok_or(NoValue::Unseen)?;
                return compute_unfairness(bins);
            }
        };
        value.map(Level::At).ok_or(NoValue::Unseen)
    }
}

/// Over bins with enough flows; a bin whose p95 falls on a lost flow counts above all others.
fn compute_unfairness(bins: &[FlowLatencyBin]) -> Result<Level, NoValue> {
    if !bins.iter().any(|bin| bin.has_enough(SLOW_FLOWS_QUANTILE)) {
        let needs = SLOW_FLOWS_QUANTILE.needs();
        return Err(NoValue::TooFewFlows { needs });
    }
    let gap = OverBins::gap(bins, SLOW_FLOWS_QUANTILE, FlowQuantile::P50).ok_or(NoValue::Unseen)?;
    Ok(gap.level)
}

#[cfg(test)]
mod tests {
    use neph_model::{Instant, Span};

    use super::*;
    use crate::latency::Latency;

    fn bin(flows: u32, latency: [i64; 3]) -> FlowLatencyBin {
        let [p50, p95, p99] = latency.map(|millis| Latency::Took(Span::from_millis(millis)));
        FlowLatencyBin {
            from: Instant::from_nanos(0),
            flows,
            lost: 0,
            latency: [p50, p50, p95, p99, p99],
            changes: Some(0),
            base: None,
        }
    }

    #[test]
    fn unfairness_needs_the_flows_of_p95_and_counts_losses() {
        let few_flows = [bin(58, [10, 30, 30])];
        assert_eq!(
            compute_unfairness(&few_flows),
            Err(NoValue::TooFewFlows { needs: 59 })
        );
        let mut bins = [10, 12, 14].map(|p95| bin(59, [10, p95, 30])).to_vec();
        // Bins with too few flows, for example at the end of a measurement, do not count.
        bins.push(bin(5, [10, 90, 90]));
        assert_eq!(compute_unfairness(&bins), Ok(Level::At(12.0 / 10.0 - 1.0)));
        let mut lost = bin(59, [10, 10, 10]);
        lost.latency[2] = Latency::Lost;
        bins.extend([lost; 2]);
        assert_eq!(compute_unfairness(&bins), Ok(Level::At(14.0 / 10.0 - 1.0)));
        bins.extend([lost; 2]);
        assert_eq!(compute_unfairness(&bins), Ok(Level::Censored));
    }
}
