//! Counts to floats and back. The only place of this crate where numbers are cast.

use std::cmp::Ordering;

#[expect(
    clippy::cast_precision_loss,
    reason = "counts in memory stay far below 2^53"
)]
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

/// A difference of nanosecond stamps as a float; exact up to 104 days.
#[expect(
    clippy::cast_precision_loss,
    reason = "differences stay below 2^53 ns, which is 104 days"
)]
pub(crate) fn real_nanos(nanos: i64) -> f64 {
    nanos as f64
}

/// The whole part of a number that is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers pass ranks and bucket numbers; the cast saturates at 0 and at usize::MAX"
)]
pub(crate) fn whole(x: f64) -> usize {
    x as usize
}

/// Whether two finite numbers tie; 0 and -0 do.
pub(crate) fn tied(a: f64, b: f64) -> bool {
    a.partial_cmp(&b) == Some(Ordering::Equal)
}
