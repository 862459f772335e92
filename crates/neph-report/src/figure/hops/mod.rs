//! What every hop adds to packets, between the capture points that they passed: figures of plain data.
//! Not part of a campaign: commands that follow packets over several points draw them.

mod captured;
mod cdf;
mod colours;
mod names;
mod rows;
mod segment_series;
mod segments;
mod waterfall;

use neph_capture::Direction;
use neph_model::Span;

pub use captured::passages;

use super::Figure;

/// What a packet carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopsProtocol {
    /// ICMP or `ICMPv6`.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Anything else.
    Other,
}

/// What is known of a packet between two neighbouring points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopsDelay {
    /// Both points saw it.
    Known {
        /// From the one point to the other, in nanoseconds; below 0 by no more than the bound.
        delay: i64,
        /// Its error bound in both directions, in nanoseconds; 0 or more.
        bound: i64,
    },
    /// The point that it came to first saw it, the other did not and was looking.
    Lost,
    /// It never came to this segment, or a point was not looking.
    Unknown,
}

/// A packet's timestamps, as the times between them.
#[derive(Clone, Copy, Debug)]
pub struct HopsPacket<'a> {
    /// When the first of its points saw it, in nanoseconds since any moment that all packets share.
    pub first_seen: i64,
    /// The direction of the packet.
    pub direction: Direction,
    /// What it carried.
    pub protocol: HopsProtocol,
    /// One for each segment, in the order of the points whichever way it went.
    pub segments: &'a [HopsDelay],
    /// From its first timestamp until the answer was back there, in nanoseconds, if known.
    pub round_trip: Option<i64>,
}

/// Packets that were followed over two to eight capture points.
#[derive(Clone, Copy, Debug)]
pub struct HopsDrawing<'a> {
    /// The points' names in the order in which packets there pass them.
    pub points: &'a [String],
    /// The packets, in any order, each with one segment less than there are points.
    pub packets: &'a [HopsPacket<'a>],
}

/// Draws all figures of hops: segments over time, their distributions, and the slowest packets one by
/// one. None without two points and a packet of which a segment is known or lost.
pub fn hops(drawing: &HopsDrawing<'_>) -> Vec<Figure> {
    if !drawing.has_segments() {
        return Vec::new();
    }
    let drawn = [segments::draw, cdf::draw, waterfall::draw];
    drawn.iter().flat_map(|draw| draw(drawing)).collect()
}

/// In the order of their panels.
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Reverse];

impl HopsProtocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Icmp => "ICMP",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Other => "other",
        }
    }
}

impl<'a> HopsPacket<'a> {
    /// From its first point to its last; `None` unless every point saw it.
    fn total(&self) -> Option<i64> {
        (self.segments.iter()).try_fold(0_i64, |sum, delay| match delay {
            HopsDelay::Known { delay, .. } => Some(sum.saturating_add(*delay)),
            HopsDelay::Lost | HopsDelay::Unknown => None,
        })
    }

    /// The segment in which it was lost.
    fn lost_segment(&self) -> Option<usize> {
        let is_lost = |delay: &HopsDelay| matches!(delay, HopsDelay::Lost);
        self.segments.iter().position(is_lost)
    }

    /// The segments with their places, in the order in which it passed them.
    fn segments_in_order(&self) -> impl Iterator<Item = (usize, HopsDelay)> + use<'a> {
        let (segments, direction) = (self.segments, self.direction);
        let last = segments.len();
        (0..last).map(move |step| {
            let segment = match direction {
                Direction::Forward => step,
                Direction::Reverse => last - 1 - step,
            };
            (segment, segments[segment])
        })
    }
}

impl<'a> HopsDrawing<'a> {
    fn has_segments(&self) -> bool {
        let is_known = |delay: &HopsDelay| !matches!(delay, HopsDelay::Unknown);
        self.points.len() > 1
            && self
                .packets
                .iter()
                .any(|packet| packet.segments.iter().any(is_known))
    }

    /// How many segments there are.
    fn segment_count(&self) -> usize {
        self.points.len().saturating_sub(1)
    }

    /// The packets of a direction.
    fn packets_in(&self, direction: Direction) -> impl Iterator<Item = &'a HopsPacket<'a>> {
        self.packets
            .iter()
            .filter(move |packet| packet.direction == direction)
    }

    /// The largest bound of each segment, in milliseconds; 0 where no delay is known.
    fn max_bounds(&self) -> Vec<f64> {
        let mut max_bounds = vec![0; self.segment_count()];
        for packet in self.packets {
            for (max_bound, delay) in max_bounds.iter_mut().zip(packet.segments) {
                if let HopsDelay::Known { bound, .. } = delay {
                    *max_bound = (*max_bound).max(*bound);
                }
            }
        }
        max_bounds.into_iter().map(millis).collect()
    }
}

/// Whether the error bound is larger than the delay.
const fn is_bound_larger(delay: i64, bound: i64) -> bool {
    delay.saturating_abs() < bound
}

/// Nanoseconds as milliseconds.
fn millis(nanos: i64) -> f64 {
    Span::from_nanos(nanos).millis_f64()
}
