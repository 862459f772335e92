//! Stores measurements: a catalog of campaigns and experiments, and messages in columns.
//!
//! Owns the [`Store`] contract and its implementations ([`STORES`], by URL scheme). Owns the export
//! formats, the import of a Latency Tester's output folder, and files that appear only when
//! complete. Computes no statistics and does not know plans. `docs/schema.md` describes every table
//! and column.

mod access;
mod catalog;
mod columns;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod embedded;
mod error;
mod export;
pub mod find;
mod fleet;
mod import;
mod open;
#[cfg(test)]
#[path = "../../neph-journal/src/records_for_tests.rs"]
mod records_for_tests;
#[cfg(test)]
mod samples_for_tests;
mod sent_within;
mod store;
#[cfg(test)]
mod tests;
mod wall_clock;
mod workspace;

pub use access::Access;
pub use columns::SCHEMA_VERSION as MESSAGE_SCHEMA_VERSION;
pub use error::StoreError;
pub use export::{
    export_csv, export_fleet_csv, export_fleet_jsonl, export_fleet_parquet, export_jsonl,
    export_latency_tester_csv, export_latency_tester_folder, export_parquet,
};
pub use import::{
    ImportReport, ImportedEndpoint, ImportedExperiment, ImportedSettings, LatencyTesterOutput,
    Problem, import_latency_tester,
};
pub use neph_journal::most_journalled;
pub use open::{OpenStore, STORES, StoreKind, open};
pub use sent_within::SentWithin;
pub use store::{
    FleetVisitor, IntakeResult, Journalled, MessageVisitor, Reduction, RouteVisitor, Store,
};
pub use wall_clock::WallClock;
