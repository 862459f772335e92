//! Exports experiments to formats of other programs. Streams: one batch of messages is in memory at
//! a time. `docs/schema.md` describes the formats.

mod csv;
mod fleet;
mod jsonl;
mod latency_tester;
mod latency_tester_folder;
mod matrices;
mod parquet;
mod rows;
mod stages;

#[cfg(test)]
mod tests;

pub use csv::export_csv;
pub use fleet::{export_fleet_csv, export_fleet_jsonl, export_fleet_parquet};
pub use jsonl::export_jsonl;
pub use latency_tester::export_latency_tester_csv;
pub use latency_tester_folder::export_latency_tester_folder;
pub use parquet::export_parquet;
