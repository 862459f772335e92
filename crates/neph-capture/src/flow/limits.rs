//! How much a table of flows may take.

use neph_model::Span;

/// What a table may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Flows at once: one more ends the one that was silent the longest.
    pub flows: usize,
    /// A flow that is silent for longer is over.
    pub idle: Span,
    /// Bytes of segments and time stamps that await their answers, of all flows. From half of it on
    /// each flow follows 256 segments of a window, beyond it 8, and counts those that it does not.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 65_536,
            idle: Span::from_secs(300),
            waiting: 16 << 20,
        }
    }
}
