//! This host's time of day, which starts that are agreed and times in results are given by.

use neph_model::Wall;
use neph_sys::clock;

/// The time of day.
pub(crate) fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}
