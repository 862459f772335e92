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
mod build_view;
mod changes;
mod classes;
mod compact_rtt;
mod completion;
mod counts;
mod detectors;
mod digest;
mod direction;
mod dissect;
mod dissected;
mod flow;
mod flow_quantiles;
mod flow_tally;
pub mod follow;
mod hidden;
#[cfg(test)]
mod histories;
mod horizon;
mod known;
mod latency;
mod latency_bins;
mod loss_by_base;
mod measure;
mod medians;
mod observed_time;
mod order;
mod outage;
mod pair;
mod persistence;
mod recent_outcomes;
mod routes;
mod settings;
mod share;
mod skew;
mod spectrum;
mod stay;
mod succession;
mod sweep;
mod unexplained;
mod view;
mod witness;
#[cfg(test)]
mod world;

pub use advice::{
    Advice, AdviceEvidence, AdvisedPort, BestOf, CAUTION, LowestClassLoss, PortAdvice,
};
pub use advise::add_advice;
pub use completion::{Completion, alternate_ports, completions, completions_of};
pub use detectors::{DetectedChange, DetectedChanges, Detector, DetectorRun};
pub use digest::{Digest, PathEvent};
pub use direction::Direction;
pub use dissect::Dissector;
pub use dissected::{Dissected, DissectedOutcome, DissectedSample};
pub use flow_quantiles::{FlowQuantile, OverBins};
pub use flow_tally::FlowTally;
pub use horizon::{AdvisedVersusRandom, Horizon};
pub use latency::Latency;
pub use measure::{Measure, NoValue};
pub use neph_stats::StatsError;
pub use pair::{
    Bimodality, ClassMoves, Curve, CurvePoint, Hidden, Inflation, PairView, ShareBin, SharedDrift,
};
pub use recent_outcomes::LastMessages;
pub use routes::build_diamond;
pub use settings::{Detection, Settings};
pub use share::Share;
pub use view::{
    Class, ComparedRoutes, Evidence, FleetView, FlowHistory, FlowLatencyBin, PathChange, Segment,
    Spectrum, SpectrumBin,
};
