//! The content of a store: `neph list` and `neph show`.

mod campaign;
mod experiment;
pub mod experiment_rows;
mod fleet;
mod lists;
mod pings;
mod quantities;

pub use campaign::{CampaignDocument, CampaignFacts, CampaignParts};
pub use experiment::{ExperimentDocument, ExperimentParts, TracedPaths};
pub use experiment_rows::ReducedFacts;
pub use fleet::{ClassTransferRow, RoutesFacts, TracedFacts};
pub use lists::{CampaignRow, ExperimentRow, TidyRow, share};
pub use pings::PingsRow;
pub use quantities::QuantityRow;

/// The start of an id that is long enough to be unique.
fn id_prefix(id: &str, length: usize) -> String {
    id[..length.min(id.len())].to_owned()
}
