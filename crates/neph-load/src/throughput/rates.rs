//! Rates and shares of counts.

use neph_model::{BitRate, Span};

use crate::transfer::rate_of;

/// Rate of bytes between two moments.
pub(super) fn rate(bytes: u64, from_ns: u64, to_ns: u64) -> BitRate {
    rate_of(bytes, nanos(to_ns.saturating_sub(from_ns)))
}

/// Nanoseconds as a time.
pub(super) fn nanos(count: u64) -> Span {
    Span::from_nanos(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A part as a share of the whole; 0 if the whole is 0.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn ratio(part: u64, total: u64) -> f64 {
    if total == 0 {
        return 0.0;
    }
    part as f64 / total as f64
}
