//! From a fleet's messages to what they say of paths: base propagation latency, path changes,
//! classes of latency, unfairness, and which source ports are best.
//!
//! Owns the calculations, streaming, with memory bounded by flows, changes and time bins and not by
//! messages. Measures nothing, stores nothing, draws nothing; the statistics are `neph-stats`.

mod routes;
mod view;

pub use routes::diamond;
pub use view::{
    Class, Direction, Evidence, Fairness, FleetView, FlowHistory, FlowTally, PathChange, Segment,
    Spectrum, SpectrumBin,
};
