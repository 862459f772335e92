//! Pure maths on slices: quantiles, intervals, rank tests, and the shapes that figures
//! are drawn from.
//!
//! This crate owns the arithmetic of a comparison. It knows no Nephoscope type, reads no clock and
//! no file, and draws nothing. The caller chooses the unit of the values and gets results in the
//! same unit. Whatever a sample is too small to say is refused as [`StatsError::TooFew`]; a lost
//! message counts as a value above every reply ([`Level::Censored`]), never as a missing row.
//!
//! All intervals are for a confidence of [`CONFIDENCE`].

#![cfg_attr(
    test,
    expect(
        clippy::float_cmp,
        reason = "where tests compare floats the results are exact"
    )
)]

mod base_latency;
mod baseline_drift;
mod beginning;
mod boxplot;
mod candidate;
mod casts;
mod changepoints;
mod classes;
mod clock;
mod clustered;
mod congestion;
mod current_level;
mod density;
mod describe;
mod dip;
mod distribution;
mod ecdf;
mod envelope;
mod error;
mod family;
mod fleet_base;
mod fleet_detection;
mod flow_level;
mod histogram;
mod holm;
mod interval;
mod jitter_shape;
mod level_detection;
mod level_shift;
mod levels;
mod mannwhitney;
mod minimum;
mod multipath;
mod paired;
mod pairs;
mod path_choice;
mod power;
mod precision;
mod proportion;
mod quantile;
mod random;
mod ranks;
mod recent;
mod regularity;
mod running_summary;
mod shift;
mod sketches;
mod sorted;
mod special;
mod survival;
mod time_intervals;
mod variation;
mod verdict;
mod warmup;
mod weight;

pub use base_latency::{BaseLatency, BaseShift, Detection};
pub use boxplot::{BoxPlot, Outliers, Whiskers, boxplot};
pub use changepoints::{ChangePenalty, LevelSegment, change_points, change_sample, window_minima};
pub use classes::{LevelClass, Weighted, class_of, classes};
pub use clock::{
    ClockCourse, ClockCut, ClockFit, ClockNature, ClockStep, FourTimestamps, MeanOffset,
    OffsetLimit, OffsetLimits, RetainedLimits, clock_course, clock_course_between, clock_fit,
};
pub use clustered::{
    GROUPS_NEEDED, Group, GroupedQuantile, GroupedShare, QuantileInterval, grouped_quantile,
    grouped_share,
};
pub use congestion::{CommonShift, Congestion, MIN_FLOWS, Reading as FlowsReading};
pub use current_level::SETTLED_SAMPLES;
pub use describe::{Description, FiveNumbers, describe};
pub use dip::{DipNull, dip};
pub use distribution::{
    binomial_above, binomial_up_to, chi_square_above, normal_above, normal_quantile, student_above,
    student_quantile,
};
pub use ecdf::{EcdfPoint, TAIL_POINTS, ecdf};
pub use envelope::{Envelope, Grid, Point, Reading, envelope};
pub use error::StatsError;
pub use family::{Claim, Decision, blocks_needed, decide, simultaneous};
pub use fleet_base::{FleetBase, FleetDetectionSettings};
pub use fleet_detection::FleetDetection;
pub use histogram::{BucketCount, Histogram};
pub use holm::holm;
pub use interval::{CONFIDENCE, ConfidenceInterval};
pub use level_detection::{Finding, LevelDetection};
pub use level_shift::{LevelShift, distinguishes, median_of_levels, shift_of_levels};
pub use mannwhitney::mann_whitney;
pub use minimum::{Minimum, minimum};
pub use multipath::flows_to_rule_out;
pub use paired::PairedShift;
pub use power::{PowerTarget, blocks_for};
pub use precision::Precision;
pub use proportion::{Proportion, proportion, share_interval};
pub use quantile::{
    Level, Quantile, median, quantile, quantile_needs, rough_level, rough_quantile,
};
pub use random::Random;
pub use ranks::{Ranks, ranks};
pub use regularity::{Regularity, SendTime, Skew, regularity, skews};
pub use running_summary::RunningSummary;
pub use shift::{Basis, Shift, ShiftTest};
pub use sketches::{Layout, Selection, Sketches};
pub use sorted::Sorted;
pub use special::{incomplete_beta, incomplete_gamma_above};
pub use survival::{Lifetime, Survival, SurvivalStep, survival};
pub use variation::{Transit, interarrival_jitter, ipdv, pdv};
pub use verdict::{Verdict, Wanted};
pub use warmup::warmup_length;
