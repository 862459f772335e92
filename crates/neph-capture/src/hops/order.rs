//! The order in which packets passed a point, and which packets were reordered on the path to the next.
//!
//! Owns that order: it is that of the timestamps, as packets of several processors are slightly out of order
//! in a capture. If time falls by more, a clock was set back, or captures were concatenated. The packets
//! after the fall passed later, whatever their timestamps.

use super::CapturePoint;
use super::followed::Followed;
use super::packet::Packets;
use crate::directions::Direction;

/// Most nanoseconds by which a packet follows one with a later timestamp in a capture.
const MAX_DISORDER_NANOS: i64 = 10_000_000;

/// Puts the packets of each point in the order in which they passed it.
pub(super) fn sort_by_timestamp(packets: &Packets, points: &mut [CapturePoint]) {
    for (point, capture_point) in points.iter_mut().enumerate() {
        sort_between_clock_resets(&mut capture_point.order, |number| {
            packets.passed_at(number, point).unwrap_or(i64::MIN)
        });
    }
}

/// Keeps the order of packets with one timestamp.
fn sort_between_clock_resets(mut order: &mut [u32], timestamp_of: impl Fn(u32) -> i64) {
    if order.is_sorted_by_key(|number| timestamp_of(*number)) {
        return;
    }
    while !order.is_empty() {
        let (steady, later) = order.split_at_mut(length_until_set_back(order, &timestamp_of));
        steady.sort_by_key(|number| timestamp_of(*number));
        order = later;
    }
}

/// Number of packets before time falls: at least one.
fn length_until_set_back(order: &[u32], timestamp_of: impl Fn(u32) -> i64) -> usize {
    let mut latest = i64::MIN;
    let mut timestamps = order.iter().map(|number| timestamp_of(*number));
    let fall_position = timestamps.position(|at| {
        let has_fallen = latest.saturating_sub(at) > MAX_DISORDER_NANOS;
        latest = latest.max(at);
        has_fallen
    });
    fall_position.unwrap_or(order.len())
}

/// For a flow, the latest departure among the packets that arrived.
#[derive(Debug, Default, Clone, Copy)]
struct LatestDeparture {
    /// Time of the latest arrival.
    at: Option<i64>,
    /// Latest departure among packets that arrived before that time.
    before: u32,
    /// Latest departure of all.
    latest: u32,
}

impl LatestDeparture {
    /// Adds an arrival. Returns whether a packet that departed later arrived before it (RFC 4737). Packets
    /// with one time of departure or of arrival are not reordered.
    fn add_arrival(&mut self, at: i64, index: u32) -> bool {
        if self.at != Some(at) {
            (self.at, self.before) = (Some(at), self.latest);
        }
        self.latest = self.latest.max(index);
        index < self.before
    }
}

/// For each packet, a bit per segment that it left after a packet that its flow sent later.
pub(super) fn out_of_order(followed: &Followed) -> Vec<u8> {
    let packets = &followed.packets;
    let mut out_of_order = vec![0; packets.by_number.len()];
    for segment in 0..followed.segments() {
        for (direction, from, to) in [
            (Direction::Forward, segment, segment + 1),
            (Direction::Reverse, segment + 1, segment),
        ] {
            let departure_indices = departure_indices(followed, from);
            let mut latest_departures =
                vec![LatestDeparture::default(); followed.flows.by_number.len()];
            for number in followed.packets_in_order(to) {
                let times = packets
                    .passed_at(number, from)
                    .zip(packets.passed_at(number, to));
                let Some((_, at)) = times.filter(|_| followed.direction(number) == Some(direction))
                else {
                    continue;
                };
                let latest_departure = &mut latest_departures[packets.get(number).flow as usize];
                if latest_departure.add_arrival(at, departure_indices[number as usize]) {
                    out_of_order[number as usize] |= 1 << segment;
                }
            }
        }
    }
    out_of_order
}

/// For each packet its place among those of a point. Equal for equal timestamps.
fn departure_indices(followed: &Followed, point: usize) -> Vec<u32> {
    let mut indices = vec![0; followed.packets.by_number.len()];
    let (mut next_index, mut previous_at) = (0, None);
    for number in followed.packets_in_order(point) {
        let at = followed.packets.passed_at(number, point);
        next_index += u32::from(at != previous_at);
        previous_at = at;
        indices[number as usize] = next_index;
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_sorted_by_timestamp_between_clock_resets() {
        const MILLI: i64 = 1_000_000;
        let stamps = [5, 7, 6, 6, 40, 39, 2, 1, 3].map(|at| at * MILLI);
        let mut order: Vec<u32> = (0..9).collect();
        sort_between_clock_resets(&mut order, |number| stamps[number as usize]);
        assert_eq!(order, [0, 2, 3, 1, 5, 4, 7, 6, 8]);
    }

    #[test]
    fn packets_with_equal_times_are_not_reordered() {
        let mut latest_departure = LatestDeparture::default();
        let arrivals = [(1, 2), (1, 1), (2, 1), (3, 2), (3, 4), (3, 3), (4, 3)];
        let is_reordered = arrivals.map(|(at, index)| latest_departure.add_arrival(at, index));
        assert_eq!(
            is_reordered,
            [false, false, true, false, false, false, true]
        );
    }
}
