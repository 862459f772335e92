//! Queueing models of a service under load, and what follows from them.
//!
//! Owns formulas, their fit to measured levels, the knee and the number of servers for a goal. All functions are
//! pure. Rates are per second, times in seconds.

pub mod bounds;
pub mod closed;
pub mod fit;
pub mod knee;
pub mod level;
pub mod levels;
pub mod mva;
pub mod open;
pub mod scalability;
pub mod sizing;
pub mod source_rates;
mod states;
