//! Emulated networks: sites in network namespaces, links that keep their word, the record of what
//! each link really did, and an end that leaves nothing behind.
//!
//! Owns topologies, links, verification and the undo journal. Does not measure applications: that
//! is the probes' work, and this crate is the truth they are held against.

mod gate;
mod place;
mod route;
mod topology;

pub use gate::{Fate, Gate, Jitter, Moment, Shape, Share, transmission_time};
pub use place::{Place, PlacedError};
pub use topology::{Link, Prefix, Site, Topology};
