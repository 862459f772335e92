//! `neph lab`: running labs, their status, the verification of their links, and the records of
//! packets.

mod flow_paths;
mod records;
mod status;
mod summary;
mod tally;
mod verification;

pub use flow_paths::{FlowPaths, FlowSegmentRow, SegmentSource};
pub use records::RecordRow;
pub use status::{LabRow, LabStatusDocument, PredictionRow, SiteRow, StepRow};
pub use summary::{RecordedFile, summary};
pub use tally::Tally;
pub use verification::{GuestRate, VerifiedLocation, VerifiedRow};

/// The directions of a link, as a topology names them.
const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// The name of a direction.
const fn direction_name(number: u8) -> &'static str {
    DIRECTIONS[(number & 1) as usize]
}
