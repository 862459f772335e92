//! The controller's clock: what leases and the moments of agents are given by.

use neph_model::Wall;
use neph_sys::clock;

/// The time of day.
pub(crate) fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}
