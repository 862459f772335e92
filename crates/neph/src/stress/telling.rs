//! Rates of traffic, as they are shown.

use neph_model::{BitRate, Span};

use crate::sheet::Cell;

/// Bytes within a time as a rate; none within no time.
pub(super) fn received_rate(bytes: u64, lasted: Span) -> BitRate {
    let nanos = u128::try_from(lasted.nanos()).unwrap_or(0);
    let rate = (u128::from(bytes) * 8 * 1_000_000_000)
        .checked_div(nanos)
        .unwrap_or(0);
    BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
}

pub(super) fn rate(rate: BitRate) -> Cell {
    Cell::new(rate.to_string(), rate.bits_per_second())
}
