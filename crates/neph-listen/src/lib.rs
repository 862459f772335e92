//! Captures packets on interfaces of this host and of others, and writes them to files.
//!
//! Owns the capture methods (a packet ring, or copies by BPF programs), the counters, the idle
//! priority of readers, and capture files that contain complete records at any time. Does not own
//! the analysis of packets (see `neph-capture`).

mod capture_file;
mod capture_interface;
mod error;
mod idle_priority;
mod listening;
mod packet_filter;
pub mod recording;
mod source;
mod writing;

pub use capture_file::{CaptureFile, OUT};
pub use capture_interface::CaptureInterface;
pub use error::ListenError;
pub use idle_priority::IdlePriority;
pub use listening::{ANY, CaptureCounters, CaptureMethod, Listening};
pub use packet_filter::PacketFilter;
pub use writing::Writing;
