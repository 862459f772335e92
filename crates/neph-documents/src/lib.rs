//! Results of commands as documents, and their forms: text, JSON, NDJSON and CSV.
//!
//! A document is a struct with documented fields; its JSON Schema (docs/schema/) is generated from
//! it. Owns the structs and the text made of them. Measures nothing, reads no store, knows no
//! command line and prints nothing.

pub mod agents;
pub mod alarm;
pub mod captures;
pub mod cell;
pub mod clock;
pub mod diagnosis;
pub mod excerpt;
pub mod export_rows;
pub mod flows;
pub mod format;
pub mod gallery;
pub mod generated_load;
pub mod hops;
pub mod interference;
pub mod lab;
pub mod lazy_list;
pub mod load;
pub mod media;
pub mod origin;
pub mod p50;
pub mod ping;
pub mod plan;
pub mod reflector;
pub mod rows;
pub mod rr;
pub mod schema;
pub mod sections;
pub mod store_content;
pub mod syn_answers;
pub mod table;
pub mod throughput;
pub mod trace;
pub mod version;
pub mod wall_time;

pub use format::Format;
