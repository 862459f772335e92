//! Packets followed over capture points, whose delays, losses and bounds are known: a queue in the
//! first segment through the second third of the time, a burst of loss in the last one, and in between
//! segments on one clock and on two.

use neph_capture::Direction;
use neph_report::{HopsDelay, HopsDrawing, HopsPacket, HopsProtocol};
use neph_stats::Random;

const NAMES: [&str; 8] = [
    "client", "access", "router", "host", "bridge", "tap", "guest", "proxy",
];
/// Usual delay and bound of each segment, in nanoseconds.
const SEGMENTS: [(f64, i64); 7] = [
    (900_000.0, 8_000),
    (120_000.0, 8_000),
    (2_100_000.0, 30_000),
    (18_000.0, 250),
    (9_000.0, 250),
    (45_000.0, 61_000),
    (300_000.0, 250),
];
/// How long it all is, in nanoseconds.
const DURATION: i64 = 120_000_000_000;

/// What to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathModel {
    /// 2 to 8.
    pub(crate) points: usize,
    pub(crate) packets: usize,
    /// Whether anything is lost.
    pub(crate) has_loss: bool,
}

/// What was made.
#[derive(Clone, Debug)]
pub(crate) struct FollowedPackets {
    points: Vec<String>,
    packets: Vec<(i64, Direction, HopsProtocol, Option<i64>)>,
    delays: Vec<HopsDelay>,
}

impl PathModel {
    pub(crate) fn generate(self) -> FollowedPackets {
        let mut random = Random::new(5);
        let mut generated = FollowedPackets {
            points: NAMES[..self.points]
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            packets: Vec::new(),
            delays: Vec::new(),
        };
        let packets = i64::try_from(self.packets).unwrap();
        for number in 0..packets {
            let since = number * DURATION / packets.max(1);
            let direction = if number % 2 == 0 {
                Direction::Forward
            } else {
                Direction::Reverse
            };
            let protocol = match number % 10 {
                0 | 1 => HopsProtocol::Icmp,
                2..=7 => HopsProtocol::Tcp,
                _ => HopsProtocol::Udp,
            };
            let delays = self.delays(since, direction, &mut random);
            let total: Option<i64> = delays.iter().map(known_delay).sum();
            let is_icmp_request = direction == Direction::Forward && protocol == HopsProtocol::Icmp;
            let round_trip = total
                .filter(|_| is_icmp_request)
                .map(|total| total + 1_400_000);
            generated
                .packets
                .push((since, direction, protocol, round_trip));
            generated.delays.extend(delays);
        }
        generated
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "some milliseconds in nanoseconds"
    )]
    fn delays(self, since: i64, direction: Direction, random: &mut Random) -> Vec<HopsDelay> {
        let count = self.points - 1;
        let mut delays = vec![HopsDelay::Unknown; count];
        for step in 0..count {
            let segment = if direction == Direction::Forward {
                step
            } else {
                count - 1 - step
            };
            if self.has_loss && random.unit() < loss(since, segment, count) {
                delays[segment] = HopsDelay::Lost;
                break;
            }
            let (usual_delay, bound) = SEGMENTS[segment];
            let tail = -random.unit().max(1e-9).ln();
            let queue = if segment == 0 && direction == Direction::Forward {
                queue(since)
            } else {
                0.0
            };
            let error = (random.unit() - 0.5) * bound as f64;
            let delay = (usual_delay * (0.8 + 0.2 * tail) + queue + error) as i64;
            delays[segment] = HopsDelay::Known { delay, bound };
        }
        delays
    }
}

fn known_delay(delay: &HopsDelay) -> Option<i64> {
    match delay {
        HopsDelay::Known { delay, .. } => Some(*delay),
        _ => None,
    }
}

/// A few all the time, and in the last segment a burst.
#[expect(clippy::cast_precision_loss, reason = "two minutes in nanoseconds")]
fn loss(since: i64, segment: usize, count: usize) -> f64 {
    let share = since as f64 / DURATION as f64;
    let burst = segment + 1 == count && (0.7..0.73).contains(&share);
    if burst { 0.3 } else { 0.002 }
}

/// Fills and drains through the second third.
#[expect(clippy::cast_precision_loss, reason = "two minutes in nanoseconds")]
fn queue(since: i64) -> f64 {
    let share = since as f64 / DURATION as f64;
    (1.0 - ((share - 0.5) * 6.0).abs()).max(0.0) * 4_000_000.0
}

impl FollowedPackets {
    /// Hands the drawing to `see`.
    pub(crate) fn with_drawing<T>(&self, draw: impl FnOnce(&HopsDrawing<'_>) -> T) -> T {
        let by_packet = self.delays.chunks(self.points.len() - 1);
        let packets: Vec<HopsPacket<'_>> = self
            .packets
            .iter()
            .zip(by_packet)
            .map(
                |((since, direction, protocol, round_trip), segments)| HopsPacket {
                    first_seen: *since,
                    direction: *direction,
                    protocol: *protocol,
                    segments,
                    round_trip: *round_trip,
                },
            )
            .collect();
        draw(&HopsDrawing {
            points: &self.points,
            packets: &packets,
        })
    }
}
