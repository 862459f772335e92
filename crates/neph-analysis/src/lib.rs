//! Analysis of measurements: findings, diagnoses, comparisons and tables.
//!
//! Owns the content of a report: findings, root causes with their evidence, and the numbers of every table.
//! Draws nothing and stores nothing; the tests are those of `neph-stats`. All functions are pure functions of
//! a [`CampaignData`] and [`PlotSettings`], except [`load()`].

pub mod circuits;
pub mod clock_time;
pub mod data;
pub mod diagnosis;
pub mod directions;
pub mod discarded_changes;
pub mod findings;
pub mod fleet;
pub mod gallery;
pub mod latencies;
pub mod layer;
pub mod load;
pub mod load_rates;
pub mod means;
pub mod numbers;
pub mod quantities;
pub mod queueing;
pub mod settings;
pub mod table;
pub mod text;
pub mod view;

pub use data::{CampaignData, Exchange, ExperimentData, FlowData, read_fleet};
pub use diagnosis::{
    Confidence, Diagnoses, Diagnosis, Evidence, Level, NotEvaluated, Note, Observation, RULES,
    Rule, diagnose,
};
pub use findings::{
    Finding, FindingKind, MIN_SHARE, blocks_to_compare, comparisons, findings, spread,
};
pub use layer::Layer;
pub use load::{Include, LoadError, fleet_view, load};
pub use load_rates::LoadCourse;
pub use quantities::{QuantityCourse, QuantitySummary};
pub use settings::{Basis, Equalization, Margin, PlotSettings, Tail};
pub use table::{Cell, Column, LossCell, QuantileCell, SummaryRow, Table, Unit, summary, tables};
