//! `neph plan`, `neph check` and `neph run`: what a plan will do, and what its reader should know.

mod decidable;
mod durations;
mod notes;
mod preview;

pub use durations::time;
pub use notes::notes;
pub use preview::preview;
