//! Owns the finding about one flow of a fleet.

use crate::level_detection::LevelDetection;

/// A finding about one flow of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetDetection {
    /// The flow: its number as the caller counts.
    pub flow: u32,
    /// How many flows had this number before it: what is found out late may be of one that is over.
    pub nth: u32,
    /// What was found.
    pub detection: LevelDetection,
}
