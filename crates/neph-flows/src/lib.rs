//! From a fleet's messages to what they say of paths: base propagation latency, path changes,
//! classes of latency, unfairness, and which source ports are best.
//!
//! Owns the calculations, streaming, with memory bounded by flows, changes and time bins and not by
//! messages. Measures nothing, stores nothing, draws nothing; the statistics are `neph-stats`.

mod dissect;
mod pair;
mod settings;
mod view;

pub use dissect::{Dissected, DissectedOutcome, DissectedSample, Dissector};
pub use pair::{Bimodality, Curve, CurvePoint, Inflation, Moved, PairView, Share, ShareBin};
pub use settings::{Detection, Settings};
pub use view::{
    Class, Direction, Evidence, Fairness, FleetView, FlowHistory, FlowTally, PathChange, Segment,
    Spectrum, SpectrumBin,
};
