//! The clocks at one moment, as a row of what is written.

use neph_model::Span;
use neph_stats::ClockFit;
use serde_json::{Value, json};

use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::words;

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Since the beginning.
    pub(super) since: Span,
    /// Of the raw clocks, or of the captures'.
    pub(super) fit: ClockFit,
    /// At this moment, where anything is known of it.
    pub(super) drift: Option<Drift>,
    /// Of the clocks on the wall, and its bound, in nanoseconds.
    pub(super) wall: Option<(i64, i64)>,
    /// By the formula, so far, in nanoseconds.
    pub(super) mean: Option<i64>,
    /// The shortest so far, in nanoseconds.
    pub(super) round_trip: Option<i64>,
    /// Exchanges so far, or packets.
    pub(super) n: u64,
    /// None of them since the line before: what is told is of the last one, with the doubt that has
    /// grown since.
    pub(super) is_old: bool,
}

impl Row {
    /// What is compared first: clocks on the wall, where there are others too.
    pub(super) fn offset(&self) -> (i64, i64) {
        self.wall.unwrap_or((self.fit.offset, self.fit.bound))
    }

    pub(super) fn json(&self) -> Value {
        let mut value = json!({ "kind": "offset", "since_ns": self.since.nanos() });
        let fit = json!({
            "offset_ns": self.fit.offset,
            "bound_ns": self.fit.bound,
            "rate_ppm": self.drift.map(|drift| words::ppm(drift.rate)),
            "rate_bound_ppm": self.drift.map(|drift| drift.bound * 1e6),
        });
        if let Some((offset, bound)) = self.wall {
            value["wall"] = json!({ "offset_ns": offset, "bound_ns": bound });
            value["raw"] = fit;
        } else {
            value["clocks"] = fit;
        }
        value["round_trip_min_ns"] = self.round_trip.into();
        value["n"] = self.n.into();
        value
    }

    pub(super) fn line(&self) -> Value {
        let mut value = self.json();
        value["nothing_new"] = self.is_old.into();
        value
    }
}
