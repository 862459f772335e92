//! A packet's way past several points: when it passed each, which clock stamped it there, and what became
//! of those that were not seen further on.
//!
//! Owns passages and their times. Does not own what is shown of them.

pub mod alarms;
pub mod clocks;
pub mod offsets;
pub mod passages;
pub mod point;
pub mod selection;
pub mod shares;
pub mod unmatched;
pub mod windows;
