//! `neph clock`: offset and drift of a peer's clock, line by line and as a summary.

pub mod document;
mod row;
mod summary;
mod writer;

pub use document::{ClockDocument, ClockLine, StepDocument, SummaryDocument};
pub use row::Row;
pub use summary::{Clocks, LabelledStep, Means, Summary};
pub use writer::{ClockWriter, Methods};
