//! The mean offset of exchanges with four timestamps, over all time or near a moment.

use neph_stats::{ClockFit, FourTimestamps, MeanOffset};

use crate::MatchedCaptures;
use crate::clocks::peer_exchanges::FigureOffsets;

/// Offsets of single exchanges by the formula of four timestamps.
#[derive(Debug, Default)]
pub struct FourTimestampOffsets {
    /// Mean of the offsets.
    pub mean: MeanOffset,
    /// Offset of each exchange, as many as a figure shows.
    pub offsets: FigureOffsets,
    /// Shortest round trip, in nanoseconds.
    pub shortest_round_trip_nanos: Option<i64>,
}

impl FourTimestampOffsets {
    /// Computes the offsets of these exchanges.
    pub fn from_exchanges(exchanges: &[FourTimestamps]) -> Self {
        let mut estimate = Self::default();
        for exchange in exchanges {
            estimate.mean.push(exchange.offset());
            estimate.offsets.push(exchange.sent, exchange.offset());
            let round_trip = exchange.round_trip();
            let shortest = estimate
                .shortest_round_trip_nanos
                .map_or(round_trip, |min| min.min(round_trip));
            estimate.shortest_round_trip_nanos = Some(shortest);
        }
        estimate
    }
}

/// The moments halfway between two fits: before each one the earlier fit is nearer.
pub fn midpoints_to_next(fits: &[ClockFit]) -> impl Iterator<Item = i64> {
    let midpoints = fits.windows(2).map(|pair| pair[0].at.midpoint(pair[1].at));
    midpoints.chain([i64::MAX])
}

/// Moments at which packets passed the first point, ascending.
pub fn passage_times(captures: &MatchedCaptures) -> Vec<i64> {
    let mut times: Vec<i64> = captures
        .crossings
        .iter()
        .map(|crossing| crossing.first_at)
        .collect();
    times.sort_unstable();
    times
}

/// Splits off the leading elements that are early.
pub fn split_off_leading<'a, T>(remaining: &mut &'a [T], is_early: impl Fn(&T) -> bool) -> &'a [T] {
    let (early, later) = remaining.split_at(remaining.partition_point(is_early));
    *remaining = later;
    early
}
