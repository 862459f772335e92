//! Why a lab is not up with all that it should have.

use neph_lab::LabError;

use crate::site_reflector::ReflectorError;

/// A lab, or a reflector in it, could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum LabSetupError {
    /// The lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A reflector names a site that the lab does not have.
    #[error("{0}")]
    Site(LabError),
    /// A reflector could not be started.
    #[error(transparent)]
    Reflector(#[from] ReflectorError),
}
