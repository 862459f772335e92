//! Generated traffic and work: CPUs that hash, TCP that is bulk or requests in turn, UDP in frames as a
//! video has them.
//!
//! Owns the loads, whether they were held, and when they began to work. Says nothing to people: who asks
//! for a load shows what it did.

mod beginning;
mod conversation;
mod cpu;
mod crowd;
mod duty;
mod error;
mod flow;
mod pace;
mod room;
mod stream;
mod video;

pub use beginning::{Beginning, WORKS};
pub use conversation::{Carried, Subject};
pub use cpu::{CpuLoad, Worked};
pub use crowd::{Crowd, Place, Work};
pub use duty::HELD;
pub use error::LoadError;
pub use flow::{Bulk, Turns, converse_all, received_rate};
pub use room::Room;
pub use stream::{StreamLoad, Streamed};
