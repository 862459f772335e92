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
pub mod diagnosed;
pub mod excerpt;
pub mod exported;
pub mod flows;
pub mod format;
pub mod gallery;
pub mod generated;
pub mod hops;
pub mod interference;
pub mod lab;
pub mod lazy;
pub mod media;
pub mod origin;
pub mod p50;
pub mod ping;
pub mod plan;
pub mod reflected;
pub mod rows;
pub mod rr;
pub mod schema;
pub mod sections;
pub mod stored;
pub mod syn_answers;
pub mod table;
pub mod throughput;
pub mod trace;
pub mod version;
pub mod when;

pub use format::Format;
