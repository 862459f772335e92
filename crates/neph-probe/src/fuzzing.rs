//! Both halves of a connection, a fleet and a trace without sockets, for the fuzz targets in the
//! repository's `fuzz/`.
//!
//! Not part of the crate's interface. Compiled always, so that no change of the state machines can
//! leave it behind.

mod answer;
mod ask;
mod fleet;
mod stamp;
mod steps;
mod trace;

pub use answer::{Answered, answer};
pub use ask::{Peer, ask};
pub use fleet::{fleet, reported_by_peer};
pub use stamp::stamp;
pub use trace::trace;
