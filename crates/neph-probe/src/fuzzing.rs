//! Both halves of a connection without sockets, for the fuzz targets in the repository's `fuzz/`.
//!
//! Not part of the crate's interface. Compiled always, so that no change of the state machines can
//! leave it behind.

mod answer;
mod ask;

pub use answer::{Answered, answer};
pub use ask::{Peer, ask};
