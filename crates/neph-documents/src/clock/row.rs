//! The clocks at one moment, as a row of the output.

use neph_model::Span;
use neph_stats::ClockFit;

use neph_capture::clocks::drift::Drift;

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Time since the start.
    pub since_start: Span,
    /// Offset of the raw clocks, or of the captures' clocks.
    pub fit: ClockFit,
    /// The drift at this moment, if known.
    pub drift: Option<Drift>,
    /// Offset of the wall clocks and its error bound, in nanoseconds.
    pub wall: Option<(i64, i64)>,
    /// Mean of four timestamps until now, in nanoseconds.
    pub mean: Option<i64>,
    /// Minimum round trip until now, in nanoseconds.
    pub round_trip: Option<i64>,
    /// Number of exchanges until now; of captures, packets.
    pub n: u64,
    /// Whether there was no exchange since the previous line: the values are the last ones, with a
    /// larger error bound.
    pub is_repeated: bool,
}

impl Row {
    /// The offset of the wall clocks if they are compared, else that of the raw clocks; with its
    /// error bound.
    pub fn offset(&self) -> (i64, i64) {
        self.wall.unwrap_or((self.fit.offset, self.fit.bound))
    }
}
