//! Many flows of one source on one thread: what they are asked to do and what they tell.

mod spec;

pub use spec::{FleetReport, FleetSpec, FleetTally};
