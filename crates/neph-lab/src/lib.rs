//! Emulated networks: sites in network namespaces, links that keep their word, the record of what
//! each link really did, and an end that leaves nothing behind.
//!
//! Owns topologies, links, verification and the undo journal. Does not measure applications: that
//! is the probes' work, and this crate is the truth they are held against.

mod counters;
mod engine;
mod gate;
mod journal;
mod lab;
mod links;
mod plan;
mod program;
mod route;
mod segment;
mod settings;
mod topology;
mod truth;
mod verify;
mod waiting;

pub use counters::{Direction, DirectionCount, Footing, LATE, LinkCounters, tolerance};
pub use engine::{Ending, Engine, EngineConfig, EngineError, Pace, TruthConfig};
pub use gate::{Fate, Gate, Jitter, Moment, Shape, Share, transmission_time};
pub use journal::UndoError;
pub use lab::{Lab, LabError, LabListing, Recording, UpOptions};
pub use program::ProgramError;
pub use topology::{Link, Prefix, Role, Routing, Site, Topology};
pub use truth::{Identity, Passing, Record, TruthError, TruthFile, Verdict};
pub use verify::{Check, LinkCheck, LossCheck, verify, verify_against, verify_link};
