//! Totals of all packets: each segment's delays by direction and protocol, and its share of round trips.
//!
//! Owns the sums. Delays are kept for sorting, 8 bytes each, after the memory for reading is free.

use crate::Direction;
use neph_model::OneWay;
use neph_stats::{Sorted, quantile};

use super::passages::{PROTOCOLS, Passages, PathEnd, protocol_index};

/// One segment, one direction, one protocol.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delays {
    pub segment: usize,
    pub is_reverse: bool,
    pub protocol: usize,
    /// Packets that passed both points while the clocks were known.
    pub n: u64,
    /// Packets that passed both points, with or without known clocks.
    pub passed: u64,
    pub lost: u64,
    pub reordered: u64,
    /// Duplicates that the network made, without the first copy.
    pub copies: u64,
    /// In nanoseconds.
    total: i128,
    pub min: i64,
    pub max: i64,
    pub p50: Option<i64>,
    pub p99: Option<i64>,
    /// The largest error bound of a packet's delay.
    pub bound: i64,
}

impl Delays {
    /// The mean, in nanoseconds.
    pub fn mean(&self) -> Option<i64> {
        let mean = self.total.checked_div(i128::from(self.n))?;
        i64::try_from(mean).ok()
    }

    fn add(&mut self, delay: OneWay) {
        let (nanos, bound) = (delay.delay.nanos(), delay.bound.nanos());
        if self.n == 0 {
            (self.min, self.max) = (nanos, nanos);
        }
        self.n += 1;
        self.total += i128::from(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.bound = self.bound.max(bound);
    }
}

/// Parts of the round trips of one protocol.
#[derive(Debug, Clone, Default)]
pub struct RoundTrips {
    pub protocol: usize,
    pub n: u64,
    /// Sum of all round trips, in nanoseconds.
    pub total: i128,
    /// Parts of each segment, forward plus reverse, and of everything after the last point. Their sum is
    /// `total`.
    pub parts: Vec<i128>,
    /// Parts of each segment, forward alone and in both directions, of the round trips whose clocks are
    /// known.
    forward_sums: Vec<(i128, i128)>,
}

impl RoundTrips {
    /// A segment's part of `total` in one direction; both directions together are its part. `None` where the
    /// clocks are not known.
    pub fn part(&self, segment: usize, is_reverse: bool) -> Option<i128> {
        let (forward_sum, round_trip_sum) = self.forward_sums[segment];
        let forward_part = (forward_sum * self.parts[segment]).checked_div(round_trip_sum)?;
        Some(if is_reverse {
            self.parts[segment] - forward_part
        } else {
            forward_part
        })
    }
}

/// Each segment's delays in the order of the path, forward before reverse.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "statistics are in floats, of delays below 104 days"
)]
pub fn delays(passages: &Passages) -> Vec<Delays> {
    let segments = passages.names.len().saturating_sub(1);
    let index_of = |segment: usize, direction: Direction, protocol: usize| {
        (segment * 2 + direction as usize) * PROTOCOLS.len() + protocol
    };
    let mut per_segment = vec![Delays::default(); segments * 2 * PROTOCOLS.len()];
    let mut values = vec![Vec::new(); per_segment.len()];
    for row in passages.rows() {
        let direction = row.direction;
        let protocol = protocol_index(row.passage.flow.protocol);
        for (segment, delay) in row.delays.iter().enumerate() {
            let index = index_of(segment, direction, protocol);
            let delays = &mut per_segment[index];
            let has_passed_both = row.passage.passed_at(segment).is_some()
                && row.passage.passed_at(segment + 1).is_some();
            delays.passed += u64::from(has_passed_both);
            delays.reordered += u64::from(row.passage.is_reordered(segment));
            delays.lost += u64::from(row.end == PathEnd::Lost(segment));
            if let Some(delay) = delay {
                delays.add(*delay);
                values[index].push(delay.delay.nanos() as f64);
            }
        }
    }
    for (index, (delays, mut values)) in per_segment.iter_mut().zip(values).enumerate() {
        let protocol = index % PROTOCOLS.len();
        (delays.segment, delays.protocol) = (index / PROTOCOLS.len() / 2, protocol);
        delays.is_reverse = index / PROTOCOLS.len() % 2 == 1;
        let direction = if delays.is_reverse {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let has_protocol = |number| protocol_index(number) == protocol;
        delays.copies = passages
            .followed
            .copies(delays.segment, direction, has_protocol);
        let percentile = |sorted: Sorted<'_>, p| {
            let value = quantile(sorted, 0, p).ok()?.value().number()?;
            Some(value.round() as i64)
        };
        if let Ok(sorted) = Sorted::sort(&mut values) {
            (delays.p50, delays.p99) = (percentile(sorted, 0.5), percentile(sorted, 0.99));
        }
    }
    per_segment.retain(|delays| delays.passed > 0 || delays.lost > 0 || delays.copies > 0);
    per_segment
}

/// Round trips by protocol, of packets seen at every point in both directions while no clock was set.
pub fn round_trips(passages: &Passages) -> Vec<RoundTrips> {
    let last = passages.names.len().saturating_sub(1);
    let mut by_protocol: Vec<RoundTrips> = (0..PROTOCOLS.len())
        .map(|protocol| RoundTrips {
            protocol,
            parts: vec![0; last + 1],
            forward_sums: vec![(0, 0); last],
            ..RoundTrips::default()
        })
        .collect();
    for round_trip_pair in &passages.round_trip_pairs {
        let forward = passages.followed.passage(round_trip_pair.forward);
        let reverse = passages.followed.passage(round_trip_pair.reverse);
        let times_by_point: Option<Vec<(i64, i64)>> = (0..=last)
            .map(|point| forward.passed_at(point).zip(reverse.passed_at(point)))
            .collect();
        let Some(times_by_point) = times_by_point else {
            continue;
        };
        // A step of the clock while a packet was in flight is not part of its round trip.
        let mut clocks = passages.clocks.iter().zip(&times_by_point);
        let is_set = clocks.any(|(clock, (forward_at, reverse_at))| {
            clock.is_set_between(*forward_at, *reverse_at)
        });
        let mut times = times_by_point.iter().enumerate();
        if is_set || times.any(|(point, times)| passages.followed.is_set_back(point, *times)) {
            continue;
        }
        // Each point's round trip uses its own clock: no difference is between two clocks.
        let round_trip_by_point: Vec<i128> = times_by_point
            .iter()
            .map(|(forward_at, reverse_at)| i128::from(*reverse_at) - i128::from(*forward_at))
            .collect();
        let round_trips = &mut by_protocol[protocol_index(forward.flow.protocol)];
        round_trips.n += 1;
        round_trips.total += round_trip_by_point[0];
        for (point, part) in round_trips.parts.iter_mut().enumerate() {
            *part += round_trip_by_point[point]
                - round_trip_by_point.get(point + 1).copied().unwrap_or(0);
        }
        for (segment, (forward_sum, round_trip_sum)) in
            round_trips.forward_sums.iter_mut().enumerate()
        {
            if let Some(one_way) = passages.delay(&forward, Direction::Forward, segment) {
                *forward_sum += i128::from(one_way.delay.nanos());
                *round_trip_sum += round_trip_by_point[segment] - round_trip_by_point[segment + 1];
            }
        }
    }
    by_protocol.retain(|round_trips| round_trips.n > 0);
    by_protocol
}
