//! Listening to interfaces, on this host or others, and writing down what passed.
//!
//! Owns how packets come (a packet ring, or copies by BPF programs), what was counted, when to stand
//! aside for those who are watched, and capture files that hold whole records at every moment. What the
//! packets mean is `neph-capture`'s.

mod capture_file;
mod capture_interface;
mod error;
mod idle_priority;
mod listening;
mod packet_choice;
pub mod recording;
mod source;
mod writing;

pub use capture_file::{CaptureFile, OUT};
pub use capture_interface::CaptureInterface;
pub use error::ListenError;
pub use idle_priority::IdlePriority;
pub use listening::{ANY, CaptureMethod, Listening, Seen};
pub use packet_choice::PacketChoice;
pub use writing::Writing;
