//! Quantiles over the flows of a bin of time, and their medians over the bins that have enough flows. A value
//! that a lost flow decides is above every number.
//!
//! `fairness.rs` calculates the quantiles of a bin.

use neph_stats::{Level, median_of_levels};

use crate::latency::Latency;
use crate::view::FlowLatencyBin;

/// The position of a latency among a bin's flows, in the order of [`FlowLatencyBin::latency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowQuantile {
    /// The lowest flow.
    Lowest,
    /// The median.
    P50,
    /// 5 % of the flows are above it.
    P95,
    /// 1 % of the flows are above it.
    P99,
    /// The highest flow.
    Highest,
}

impl FlowQuantile {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Lowest, Self::P50, Self::P95, Self::P99, Self::Highest];

    /// All but the lowest and the highest.
    pub const PERCENTILES: [Self; 3] = [Self::P50, Self::P95, Self::P99];

    /// The name on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lowest => "lowest",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Highest => "highest",
        }
    }

    /// Minimum number of flows in a bin; with fewer it is only the slowest flow.
    pub const fn needs(self) -> u32 {
        match self {
            Self::Lowest | Self::Highest => 1,
            Self::P50 => 6,
            Self::P95 => 59,
            Self::P99 => 299,
        }
    }

    /// The share of flows below it.
    pub(crate) const fn share(self) -> f64 {
        match self {
            Self::Lowest => 0.0,
            Self::P50 => 0.5,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::Highest => 1.0,
        }
    }
}

impl FlowLatencyBin {
    /// The latency at this position, even if the bin has too few flows for it.
    pub const fn at(&self, quantile: FlowQuantile) -> Latency {
        self.latency[quantile as usize]
    }

    /// Whether the bin has enough flows.
    pub const fn has_enough(&self, quantile: FlowQuantile) -> bool {
        self.flows >= quantile.needs()
    }

    /// `upper` divided by `lower`. `None` with too few flows for either, or if `lower` is lost and `upper` is
    /// not.
    fn ratio(&self, upper: FlowQuantile, lower: FlowQuantile) -> Option<Level> {
        if self.flows < 2 || !self.has_enough(upper) || !self.has_enough(lower) {
            return None;
        }
        let Latency::Took(upper_latency) = self.at(upper) else {
            return Some(Level::Censored);
        };
        let lower_latency = self
            .at(lower)
            .took()
            .filter(|lower_latency| lower_latency.nanos() > 0)?;
        #[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
        Some(Level::At(
            upper_latency.nanos() as f64 / lower_latency.nanos() as f64,
        ))
    }
}

/// A median over bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverBins {
    /// The median; censored if bins with a lost value decide it.
    pub level: Level,
    /// Number of bins.
    pub bins: usize,
}

impl OverBins {
    fn of(levels: &[Level]) -> Option<Self> {
        Some(Self {
            level: median_of_levels(levels.iter().copied()).ok()?,
            bins: levels.len(),
        })
    }

    /// The latency `quantile` in nanoseconds; `None` if no bin has enough flows.
    pub fn median(bins: &[FlowLatencyBin], quantile: FlowQuantile) -> Option<Self> {
        let sufficient_bins = bins.iter().filter(|bin| bin.has_enough(quantile));
        let levels = sufficient_bins.map(|bin| match bin.at(quantile) {
            #[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
            Latency::Took(time) => Level::At(time.nanos() as f64),
            Latency::Lost => Level::Censored,
        });
        Self::of(&levels.collect::<Vec<Level>>())
    }

    /// Ratio of `upper` to `lower`; `None` if no bin has both.
    pub fn ratio(
        bins: &[FlowLatencyBin],
        upper: FlowQuantile,
        lower: FlowQuantile,
    ) -> Option<Self> {
        let levels = bins.iter().filter_map(|bin| bin.ratio(upper, lower));
        Self::of(&levels.collect::<Vec<Level>>())
    }

    /// How far `upper` lies above `lower`, as a share of it; `None` if no bin has both.
    pub fn gap(bins: &[FlowLatencyBin], upper: FlowQuantile, lower: FlowQuantile) -> Option<Self> {
        let ratio = Self::ratio(bins, upper, lower)?;
        let level = match ratio.level {
            Level::At(ratio) => Level::At(ratio - 1.0),
            Level::Censored => Level::Censored,
        };
        Some(Self { level, ..ratio })
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Instant, Span};
    use neph_stats::quantile_needs;

    use super::*;

    /// A bin with this number of flows and these latencies in milliseconds; 0 is a lost one.
    fn bin(flows: u32, latency: [i64; 5]) -> FlowLatencyBin {
        let to_latency = |millis| match millis {
            0 => Latency::Lost,
            millis => Latency::Took(Span::from_millis(millis)),
        };
        FlowLatencyBin {
            from: Instant::from_nanos(0),
            flows,
            lost: 0,
            latency: latency.map(to_latency),
            changes: Some(0),
            base: None,
        }
    }

    #[test]
    fn a_quantile_needs_the_flows_of_its_confidence_interval() {
        for quantile in FlowQuantile::PERCENTILES {
            let needs = quantile_needs(quantile.share());
            assert_eq!(needs, Ok(quantile.needs() as usize), "{quantile:?}");
        }
        let names = FlowQuantile::ALL.map(FlowQuantile::name);
        assert_eq!(names, ["lowest", "p50", "p95", "p99", "highest"]);
    }

    #[test]
    fn the_median_over_bins_skips_bins_with_too_few_flows() {
        let mut bins = [20, 24, 28]
            .map(|p95| bin(59, [8, 10, p95, 30, 30]))
            .to_vec();
        bins.extend([bin(58, [8, 10, 90, 90, 90]); 4]);
        let median_p95 = |bins: &[FlowLatencyBin]| OverBins::median(bins, FlowQuantile::P95);
        let expected = |level, bins| Some(OverBins { level, bins });
        assert_eq!(median_p95(&bins), expected(Level::At(24e6), 3));
        assert_eq!(median_p95(&bins[3..]), None);
        // 20, 24, 28 ms and two that were lost: the third. With a fourth, between a number and a lost one.
        bins.extend([bin(60, [8, 10, 0, 0, 0]); 2]);
        assert_eq!(median_p95(&bins), expected(Level::At(28e6), 5));
        bins.push(bin(60, [8, 10, 0, 0, 0]));
        assert_eq!(median_p95(&bins), expected(Level::Censored, 6));
    }

    #[test]
    fn the_ratio_compares_an_upper_with_a_lower_quantile() {
        use FlowQuantile::{Highest, Lowest, P50, P95};
        let bins = [
            bin(5, [8, 10, 12, 12, 12]),
            bin(1, [7, 7, 7, 7, 7]),
            bin(5, [8, 0, 0, 0, 0]),
            bin(5, [8, 10, 16, 16, 16]),
        ];
        let expected = |level, bins| Some(OverBins { level, bins });
        // 12 / 8 and 16 / 8, and a bin that lost it: the middle of the three.
        assert_eq!(
            OverBins::ratio(&bins, Highest, Lowest),
            expected(Level::At(2.0), 3)
        );
        assert_eq!(
            OverBins::gap(&bins, Highest, Lowest),
            expected(Level::At(1.0), 3)
        );
        assert_eq!(OverBins::gap(&bins, Highest, P50), None, "it takes six");
        assert_eq!(OverBins::gap(&bins, P95, P50), None);
    }
}
