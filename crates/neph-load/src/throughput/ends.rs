//! The two ends of one direction of a test.

use neph_wire::throughput::Intervals;

/// The two ends of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectionEnds<'a> {
    pub(super) sender: &'a Intervals,
    pub(super) receiver: &'a Intervals,
}
