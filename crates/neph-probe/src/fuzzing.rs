//! Client and reflector side of a connection, a fleet and a trace without sockets, for the fuzz targets in
//! the repository's `fuzz/`.
//!
//! Not part of the crate's interface. Always compiled, so that changes of the state machines cannot break it
//! unnoticed.

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
