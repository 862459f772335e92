//! From a fleet's messages to what they say of paths: base propagation latency, path changes,
//! classes of latency, unfairness, and which source ports are best.
//!
//! Owns the calculations, streaming, with memory bounded by flows, changes and time bins and not by
//! messages. Measures nothing, stores nothing, draws nothing; the statistics are `neph-stats`.

mod advice;
mod advise;
mod backtest;
mod base;
mod blocks;
mod changes;
mod classes;
mod completion;
mod counts;
mod detectors;
mod digest;
mod direction;
mod dissect;
mod dissected;
mod fairness;
mod flow;
mod flow_tally;
pub mod follow;
mod hidden;
#[cfg(test)]
mod histories;
mod horizon;
mod known;
mod lately;
mod latency;
mod look;
mod loss_by_base;
mod measure;
mod medians;
mod order;
mod outage;
mod over_flows;
mod pair;
mod persistence;
mod routes;
mod settings;
mod share;
mod skew;
mod spectrum;
mod stay;
mod succession;
mod sweep;
mod trip;
mod unexplained;
mod view;
mod watched;
mod witness;
#[cfg(test)]
mod world;

pub use advice::{Advice, AdvisedPort, BestOf, CAUTION, Counsel, Guide, LowLoss};
pub use advise::advise;
pub use completion::{Completion, completions, completions_of, turns};
pub use detectors::{AllDetected, Detected, Detecting, Detector};
pub use digest::{Digest, PathEvent};
pub use direction::Direction;
pub use dissect::Dissector;
pub use dissected::{Dissected, DissectedOutcome, DissectedSample};
pub use flow_tally::FlowTally;
pub use horizon::{Against, Horizon};
pub use lately::LastMessages;
pub use latency::Latency;
pub use measure::{Measure, NoValue};
pub use neph_stats::StatsError;
pub use over_flows::{FlowQuantile, OverBins};
pub use pair::{
    Bimodality, Curve, CurvePoint, Hidden, Inflation, Moved, PairView, ShareBin, SharedDrift,
};
pub use routes::diamond;
pub use settings::{Detection, Settings};
pub use share::Share;
pub use view::{
    Class, Compared, Evidence, Fairness, FleetView, FlowHistory, PathChange, Segment, Spectrum,
    SpectrumBin,
};
