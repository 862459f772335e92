//! The lab in which experiments are measured: its topologies, reflectors and loads.

mod error;
mod ground;
mod stressing;

pub use error::GroundError;
pub use ground::{LabGround, LabPlan, SiteReflector};
