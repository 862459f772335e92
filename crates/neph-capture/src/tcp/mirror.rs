//! Whether a segment answers what another side sent, where only sequence numbers can show it.

use super::numbers::Number;
use super::{Connection, Segment, Side};
use crate::sequence::Serial;

/// Numbers further apart belong to other connections. Of random pairs, one in 128 is nearer in one number,
/// and one in 16,384 in both.
const MAX_DISTANCE: u32 = 1 << 24;

impl Connection {
    /// Whether `segment`, the first that `side` sends, has the numbers of an answer to what the other side
    /// sent.
    pub(crate) fn is_answered_by(&self, side: Side, segment: &Segment) -> bool {
        let other = match side {
            Side::Client => &self.server,
            Side::Server => &self.client,
        };
        let Some((next, ack)) = other.number(Number::Next).zip(segment.ack) else {
            return false;
        };
        let is_near =
            |serial: Serial, another: Serial| serial.since(another).unsigned_abs() <= MAX_DISTANCE;
        match other.number(Number::LatestAck) {
            Some(latest_ack) => is_near(next, ack) && is_near(segment.seq, latest_ack),
            None => ack == next,
        }
    }
}
