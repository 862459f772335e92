//! Conversion between counts and floats. The only place of this crate with numeric casts.

use std::cmp::Ordering;

#[expect(
    clippy::cast_precision_loss,
    reason = "counts in memory stay far below 2^53"
)]
pub(crate) fn usize_to_f64(count: usize) -> f64 {
    count as f64
}

/// A difference of nanosecond timestamps as a float; exact up to 104 days.
#[expect(
    clippy::cast_precision_loss,
    reason = "differences stay below 2^53 ns, which is 104 days"
)]
pub(crate) fn nanos_to_f64(nanos: i64) -> f64 {
    nanos as f64
}

/// A number of nanoseconds as an integer; saturates.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn round_to_i64(x: f64) -> i64 {
    x.round() as i64
}

/// A difference, limited to 2 s in both directions.
pub(crate) fn clamp_to_i32(nanos: i64) -> i32 {
    let limit = |limit: i32| i64::from(limit);
    let clamped = nanos.clamp(limit(i32::MIN), limit(i32::MAX));
    i32::try_from(clamped).unwrap_or(i32::MAX)
}

/// In single precision, for values that are stored many times.
#[expect(clippy::cast_possible_truncation, reason = "seven digits are enough")]
pub(crate) fn to_f32(x: f64) -> f32 {
    x as f32
}

/// The whole part of a number that is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers pass ranks and bucket numbers; the cast saturates at 0 and at usize::MAX"
)]
pub(crate) fn to_usize(x: f64) -> usize {
    x as usize
}

/// Whether two finite numbers tie; 0 and -0 do.
pub(crate) fn tied(a: f64, b: f64) -> bool {
    a.partial_cmp(&b) == Some(Ordering::Equal)
}
