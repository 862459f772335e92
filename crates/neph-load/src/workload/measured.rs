//! The result of a load.

use neph_model::{Span, Wall};

use super::tally::Tally;
use super::validity::Validity;

/// A load that was generated.
#[derive(Clone, Debug)]
pub struct WorkloadMeasured {
    /// When it started.
    pub started: Wall,
    /// From the start to the last request, shorter than requested after ctrl-C.
    pub lasted: Span,
    /// The measured part of it.
    pub measured: Span,
    /// Requests whose intended time lies in the measured part.
    pub tally: Tally,
    /// Whether the generator did what was asked.
    pub validity: Validity,
    /// Maximum number of connections of this generator.
    pub connection_limit: u64,
    /// Number of threads.
    pub threads: u32,
    /// It was stopped before its end.
    pub is_stopped: bool,
}
