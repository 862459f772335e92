//! The controller's clock, for leases and start times of agents.

use neph_model::Wall;
use neph_sys::clock;

/// Wall-clock time.
pub(crate) fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}
