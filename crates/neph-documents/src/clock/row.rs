//! The clocks at one moment, as a row of what is written.

use neph_model::Span;
use neph_stats::ClockFit;

use neph_capture::clocks::drift::Drift;

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Since the beginning.
    pub since: Span,
    /// Of the raw clocks, or of the captures'.
    pub fit: ClockFit,
    /// At this moment, where anything is known of it.
    pub drift: Option<Drift>,
    /// Of the clocks on the wall, and its bound, in nanoseconds.
    pub wall: Option<(i64, i64)>,
    /// By the formula, so far, in nanoseconds.
    pub mean: Option<i64>,
    /// The shortest so far, in nanoseconds.
    pub round_trip: Option<i64>,
    /// Exchanges so far, or packets.
    pub n: u64,
    /// No exchange since the line before: the values are of the last one, with the error bound that has
    /// grown since.
    pub is_old: bool,
}

impl Row {
    /// What is compared first: clocks on the wall, where there are others too.
    pub fn offset(&self) -> (i64, i64) {
        self.wall.unwrap_or((self.fit.offset, self.fit.bound))
    }
}
