//! The clocks of two captures from their packets, or of two hosts from their messages.
//!
//! Owns the course of the offset, its drift and steps, and which captures cannot be compared. Does not own
//! the fit (neph-stats).

pub mod active_time;
pub mod course;
pub mod drift;
pub mod formula;
pub mod pair;
pub mod peer_clock;
pub mod peer_exchanges;
pub mod read_offsets;
pub mod steady_time_conversion;
pub mod value_format;

use neph_stats::ClockNature;

/// The nature of clocks with this wander, in ppm, or with the usual one.
pub fn nature(wander: Option<f64>) -> ClockNature {
    let usual = ClockNature::default();
    ClockNature {
        wander: wander.map_or(usual.wander, |ppm| ppm * 1e-6),
        ..usual
    }
}
