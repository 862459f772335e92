//! `neph trace`: the routes of flows, and the paths on which they part and meet.

pub mod document;
mod paths;
mod remarks;
mod replies;
mod text;
mod theory;

pub use document::{HopRow, TraceDocument, TraceLine, write_csv};
pub use paths::PathRow;
pub use remarks::Asked;
pub use text::text;
