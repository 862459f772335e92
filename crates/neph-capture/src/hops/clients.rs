//! Which of two ends is the client, where the packets do not show it: datagrams, and all without numbers.
//!
//! Owns the rules, the most reliable first. The client sends first, if the capture began earlier. Servers
//! have low ports, clients high ones. The server answers sooner than the client asks next, each by the clock
//! of the nearest point. Else the first sender that was seen is the client.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::followed::Followed;
use super::packet::{FiveTuple, NO_NUMBER, PacketKind};
use crate::directions::Direction;

/// A capture that runs this long before a flow's first packet has not missed it, in nanoseconds.
const MIN_LEAD_NANOS: i64 = 1_000_000_000;
/// Response times of an end that are examined, at most.
const MAX_RESPONSE_TIMES: usize = 101;
/// A time is clearly shorter if it is this many times shorter.
const CLEAR_RATIO: i64 = 2;
/// From this port on, ports are ephemeral (Linux: 32768 to 60999; IANA: from 49152 on). Below the second
/// constant are those of system services.
const FIRST_EPHEMERAL_PORT: u16 = 32_768;
const FIRST_USER_PORT: u16 = 1_024;

/// Packets of a flow and of its reverse, at the two ends of the path.
#[derive(Debug, Default)]
struct Exchange {
    /// The first packet at the last point: time and direction.
    first: Option<(i64, Direction)>,
    /// The latest packet at the first point and at the last.
    latest: [Option<(i64, Direction)>; 2],
    /// Times from receiving to sending: of the near end, and of the far end.
    response_times: [Vec<i64>; 2],
}

impl Followed {
    /// Numbers of the forward flows whose client is at the far end.
    pub(super) fn flows_with_far_client(&self) -> HashSet<u32, RandomState> {
        let mut exchanges: HashMap<u32, Exchange, RandomState> = HashMap::default();
        let last = self.segments();
        for (end, point) in [0, last].into_iter().enumerate() {
            for number in self.packets_in_order(point) {
                let packet = self.packets.get(number);
                if packet.kind != PacketKind::Other {
                    continue;
                }
                let (Some(direction), Some(at)) = (
                    self.direction(number),
                    self.packets.passed_at(number, point),
                ) else {
                    continue;
                };
                let forward_flow = self.forward_flow(packet, direction);
                if forward_flow != NO_NUMBER {
                    exchanges
                        .entry(forward_flow)
                        .or_default()
                        .add_packet(end, at, direction);
                }
            }
        }
        let capture_start = self.points[last].packet_extent.map_or(0, |(from, _)| from);
        let has_far_client = |(flow, exchange): &(u32, Exchange)| {
            let (flow, _) = self.flows.by_number[*flow as usize];
            exchange.request_direction(flow, capture_start) == Direction::Reverse
        };
        let far_client_flows = exchanges.into_iter().filter(has_far_client);
        far_client_flows.map(|(flow, _)| flow).collect()
    }
}

impl Exchange {
    /// Adds a packet at the near end (0) or the far end (1).
    fn add_packet(&mut self, end: usize, at: i64, direction: Direction) {
        let sent_direction = if end == 0 {
            Direction::Forward
        } else {
            Direction::Reverse
        };
        if end == 1 {
            self.first.get_or_insert((at, direction));
        }
        let previous = self.latest[end].replace((at, direction));
        if direction == sent_direction
            && let Some((received_at, previous_direction)) = previous
            && previous_direction != direction
            && self.response_times[end].len() < MAX_RESPONSE_TIMES
        {
            self.response_times[end].push(at.saturating_sub(received_at));
        }
    }

    /// The direction of questions.
    fn request_direction(&self, flow: FiveTuple, capture_start: i64) -> Direction {
        let first = self
            .first
            .map_or(Direction::Forward, |(_, direction)| direction);
        if self
            .first
            .is_some_and(|(at, _)| at.saturating_sub(capture_start) > MIN_LEAD_NANOS)
        {
            return first;
        }
        if let Some(direction) = request_direction_by_ports(flow) {
            return direction;
        }
        let [near_median, far_median] = self.response_times.each_ref().map(|times| median(times));
        match near_median.zip(far_median) {
            Some((near_median, far_median))
                if near_median.saturating_mul(CLEAR_RATIO) < far_median =>
            {
                Direction::Reverse
            }
            Some((near_median, far_median))
                if far_median.saturating_mul(CLEAR_RATIO) < near_median =>
            {
                Direction::Forward
            }
            _ => first,
        }
    }
}

/// The direction of questions in a forward flow, if its ports show it.
pub(super) fn request_direction_by_ports(flow: FiveTuple) -> Option<Direction> {
    let (near_port, far_port) = (flow.source.port(), flow.destination.port());
    [FIRST_USER_PORT, FIRST_EPHEMERAL_PORT]
        .into_iter()
        .find_map(|min| match (near_port < min, far_port < min) {
            (true, false) => Some(Direction::Reverse),
            (false, true) => Some(Direction::Forward),
            _ => None,
        })
}

fn median(response_times: &[i64]) -> Option<i64> {
    let mut response_times = response_times.to_vec();
    response_times.sort_unstable();
    response_times.get(response_times.len() / 2).copied()
}
