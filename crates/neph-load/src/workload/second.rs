//! A second, or another interval, of a load, all threads of a generator together.

use super::tally::Tally;

/// A second of a load, all threads together.
#[derive(Clone, Debug)]
pub struct WorkloadSecond {
    /// From 0 on.
    pub index: u32,
    /// Requests that ended in it.
    pub tally: Tally,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Requests that waited for a connection at its end.
    pub waiting: u64,
    /// CPU time of the busiest thread, as a share of a core.
    pub thread_cpu: f64,
    /// It belongs to the warm-up.
    pub is_warmup: bool,
    /// The generator was too late: the second does not count as generated.
    pub is_void: bool,
}
