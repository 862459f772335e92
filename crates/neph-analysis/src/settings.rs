//! Display settings: everything that can be changed without a new measurement.
//!
//! The plotting settings of the Latency Tester (thesis, 4.4) and some of neph. They change figures only:
//! tables and findings use all measurements of the chosen blocks. Margins of equivalence are no display
//! settings: the plan states them before the measurement.

use std::collections::BTreeSet;

use neph_model::{Span, UtcOffset};

use crate::Layer;

/// Whether the panels of one group share their scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Equalization {
    /// The same scale in all panels of a group, for comparison.
    #[default]
    Shared,
    /// A scale of its own for each panel, which shows most of it.
    Separate,
}

/// How a cumulative distribution is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// The share of messages up to a latency, on a linear axis.
    #[default]
    Linear,
    /// The share of messages above a latency, on a logarithmic axis: shows the slowest ones.
    Logarithmic,
}

/// The start of a message's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// The scheduled send time: what a user waits, without coordinated omission.
    #[default]
    Response,
    /// The actual send time.
    Service,
}

impl Basis {
    /// The name on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response time",
            Self::Service => "service time",
        }
    }
}

/// Largest difference between medians of equivalent endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Margin {
    /// The endpoints by name; empty: all.
    pub endpoints: Vec<String>,
    /// The layer of the medians: the response time, or the RTT of the network.
    pub layer: Layer,
    /// The smallest difference that matters, above zero.
    pub width: Span,
}

impl Margin {
    /// Whether it applies to the endpoint of that name.
    pub(crate) fn includes(&self, endpoint: &str) -> bool {
        self.endpoints.is_empty() || self.endpoints.iter().any(|name| name == endpoint)
    }
}

/// All plot settings. The default shows everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotSettings {
    /// How many percentiles box plots and distributions leave out at each end, from 0 to below 50.
    pub percentiles_to_remove: f64,
    /// Whether panels share their scale.
    pub equalization: Equalization,
    /// Start of latency axes; `None`: chosen from the data.
    pub rtt_min: Option<Span>,
    /// End of latency axes; `None`: chosen from the data. Values outside are counted at the margin.
    pub rtt_max: Option<Span>,
    /// Percentile of the lower whisker, 0 to 25; if it or the upper one is `None`, 1.5 interquartile ranges.
    pub whisker_min: Option<f64>,
    /// Percentile of the upper whisker, 75 to 100.
    pub whisker_max: Option<f64>,
    /// The blocks to show, counted from 1 as in figures; `None`: all.
    pub blocks_to_plot: Option<BTreeSet<u32>>,
    /// How distributions are drawn.
    pub tail: Tail,
    /// The time that figures of whole messages show.
    pub basis: Basis,
    /// Names of the figures to draw (see `FIGURES` of neph-report); `None`: all.
    pub figures: Option<BTreeSet<String>>,
    /// The offset from UTC at which times of day are shown.
    pub utc_offset: UtcOffset,
    /// The margins of equivalence in the plan.
    pub margins: Vec<Margin>,
    /// The baseline of comparisons: an endpoint or a value of a parameter; `None`: the plan's first.
    pub baseline: Option<String>,
}

impl PlotSettings {
    /// Whether an experiment's block (counted from 0) is shown.
    pub fn shows_block(&self, block: u32) -> bool {
        self.blocks_to_plot
            .as_ref()
            .is_none_or(|blocks| blocks.contains(&block.saturating_add(1)))
    }

    /// Whether the figure of that name is drawn.
    pub fn shows_figure(&self, name: &str) -> bool {
        self.figures
            .as_ref()
            .is_none_or(|names| names.contains(name))
    }

    /// The range of the whiskers.
    pub fn whiskers(&self) -> neph_stats::Whiskers {
        if self.whisker_min.is_none() && self.whisker_max.is_none() {
            return neph_stats::Whiskers::TUKEY;
        }
        neph_stats::Whiskers::Percentiles {
            low: (self.whisker_min.unwrap_or(0.0) / 100.0).clamp(0.0, 0.25),
            high: (self.whisker_max.unwrap_or(100.0) / 100.0).clamp(0.75, 1.0),
        }
    }

    /// The whiskers as text, for a caption.
    pub fn whiskers_text(&self) -> String {
        match self.whiskers() {
            neph_stats::Whiskers::Ranges(ranges) => {
                format!("to the last value within {ranges} interquartile ranges of the box")
            }
            neph_stats::Whiskers::Percentiles { low, high } => {
                format!(
                    "from the {} to the {} percentile",
                    low * 100.0,
                    high * 100.0
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_from_1_as_in_figures() {
        let settings = PlotSettings {
            blocks_to_plot: Some([1, 3].into()),
            ..PlotSettings::default()
        };
        assert_eq!(
            [0, 1, 2].map(|block| settings.shows_block(block)),
            [true, false, true]
        );
        assert!(PlotSettings::default().shows_block(7));
    }
}
