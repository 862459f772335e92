//! `neph flows`: path changes as they are detected, and the summary of a fleet.

mod advice;
pub mod csv;
mod dip;
pub mod document;
pub mod event;
pub mod lines;
mod moves;
pub mod pair;
pub mod port_advice;
mod result;
pub mod share;
mod summary;
pub mod tally;
pub mod transfers;
mod unfair;
mod writer;

pub use document::{FlowDocument, FlowsDocument, FlowsSummary};
pub use event::{ChangeDocument, FlowsEvent};
pub use pair::PairDocument;
pub use result::{FlowsResult, Status};
pub use summary::text;
pub use transfers::EndpointTransfers;
pub use writer::{FlowsWriter, status_interval};
