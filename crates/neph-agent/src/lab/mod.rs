//! The lab in which experiments are measured: its topologies, reflectors and loads.

mod error;
mod lab_ground;
mod stressing;

pub use error::GroundError;
pub use lab_ground::{LabGround, LabPlan, SiteReflector};
