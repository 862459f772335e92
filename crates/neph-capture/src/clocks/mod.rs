//! What the packets of two captures, or the messages of two machines, say of their clocks.
//!
//! Owns the offset's course, its drift and steps, and which captures cannot be compared. The fit itself is
//! `neph-stats`'.

pub mod active_time;
pub mod added;
pub mod book;
pub mod course;
pub mod drift;
pub mod formula;
pub mod pair;
pub mod peer_clock;
pub mod read_offsets;
pub mod words;

use neph_stats::ClockNature;

/// Clocks whose rates wander by so many parts per million, or by as much as is usual.
pub fn nature(wander: Option<f64>) -> ClockNature {
    let usual = ClockNature::default();
    ClockNature {
        wander: wander.map_or(usual.wander, |ppm| ppm * 1e-6),
        ..usual
    }
}
