//! The lab in which experiments are measured: its topologies, reflectors and loads.

mod error;
mod seasonal_lab;
mod stressing;

pub use error::LabSetupError;
pub use seasonal_lab::{LabPlan, SeasonalLab, SiteReflector};
