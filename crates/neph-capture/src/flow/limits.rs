//! Limits of a table of flows.

use neph_model::Span;

/// Limits of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of flows; beyond it the longest silent one is evicted.
    pub max_flows: usize,
    /// A flow that is silent for longer is over.
    pub idle_timeout: Span,
    /// Bytes of segments and timestamps that await their answers, of all flows. Above half of it each flow
    /// follows 256 segments of a window, above it 8. The others are counted.
    pub max_pending_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_flows: 65_536,
            idle_timeout: Span::from_secs(300),
            max_pending_bytes: 16 << 20,
        }
    }
}
