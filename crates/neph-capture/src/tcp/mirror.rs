//! Whether a segment answers what another side sent, where nothing else says that they belong together.

use super::marks::Mark;
use super::{Connection, Segment, Side};
use crate::sequence::Serial;

/// Numbers that lie further apart are of other connections: of two at random, one pair in 128 is nearer,
/// and of both numbers one in 16,384.
const NEAR: u32 = 1 << 24;

impl Connection {
    /// Whether `segment`, the first that `side` sends, has the numbers of an answer to what the other
    /// side sent.
    pub(crate) fn is_answered_by(&self, side: Side, segment: &Segment) -> bool {
        let other = match side {
            Side::Client => &self.server,
            Side::Server => &self.client,
        };
        let Some((next, ack)) = other.mark(Mark::Next).zip(segment.ack) else {
            return false;
        };
        let is_near = |one: Serial, another: Serial| one.since(another).unsigned_abs() <= NEAR;
        match other.mark(Mark::Said) {
            Some(said) => is_near(next, ack) && is_near(segment.seq, said),
            None => ack == next,
        }
    }
}
