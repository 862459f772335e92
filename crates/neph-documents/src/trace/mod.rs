//! `neph trace`: the routes of flows, where they split and where they join.

pub mod document;
mod paths;
mod remarks;
mod replies;
mod text;
mod theory;

pub use document::{HopRow, TraceDocument, TraceLine, write_csv};
pub use paths::PathRow;
pub use remarks::TraceConditions;
pub use text::text;
