//! Totals of all packets: each segment's delays by direction and protocol, and its share of round trips.
//!
//! Owns the sums. Delays are kept for sorting, 8 bytes each, after the memory for reading is free.

use crate::Direction;
use neph_model::OneWay;
use neph_stats::{Sorted, quantile};

use super::passages::{PROTOCOLS, Passages, PathEnd, protocol};

/// One segment, one direction, one protocol.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delays {
    pub segment: usize,
    pub is_back: bool,
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
    pub least: i64,
    pub most: i64,
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
            (self.least, self.most) = (nanos, nanos);
        }
        self.n += 1;
        self.total += i128::from(nanos);
        self.least = self.least.min(nanos);
        self.most = self.most.max(nanos);
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
    pub fn part(&self, segment: usize, is_back: bool) -> Option<i128> {
        let (known, round_trip_sum) = self.forward_sums[segment];
        let forward_part = (known * self.parts[segment]).checked_div(round_trip_sum)?;
        Some(if is_back {
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
        let protocol = protocol(row.passage.flow.protocol);
        for (segment, delay) in row.delays.iter().enumerate() {
            let index = index_of(segment, direction, protocol);
            let of = &mut per_segment[index];
            let is_both =
                row.passage.passed_at(segment).is_some() && row.passage.passed_at(segment + 1).is_some();
            of.passed += u64::from(is_both);
            of.reordered += u64::from(row.passage.is_reordered(segment));
            of.lost += u64::from(row.end == PathEnd::Lost(segment));
            if let Some(delay) = delay {
                of.add(*delay);
                values[index].push(delay.delay.nanos() as f64);
            }
        }
    }
    for (at, (of, mut values)) in per_segment.iter_mut().zip(values).enumerate() {
        let kind = at % PROTOCOLS.len();
        (of.segment, of.protocol) = (at / PROTOCOLS.len() / 2, kind);
        of.is_back = at / PROTOCOLS.len() % 2 == 1;
        let direction = if of.is_back {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let is_meant = |number| protocol(number) == kind;
        of.copies = passages.followed.copies(of.segment, direction, is_meant);
        let percentile = |sorted: Sorted<'_>, p| {
            let value = quantile(sorted, 0, p).ok()?.value().number()?;
            Some(value.round() as i64)
        };
        if let Ok(sorted) = Sorted::sort(&mut values) {
            (of.p50, of.p99) = (percentile(sorted, 0.5), percentile(sorted, 0.99));
        }
    }
    per_segment.retain(|of| of.passed > 0 || of.lost > 0 || of.copies > 0);
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
        let back = passages.followed.passage(round_trip_pair.reverse);
        let marks: Option<Vec<(i64, i64)>> = (0..=last)
            .map(|point| forward.passed_at(point).zip(back.passed_at(point)))
            .collect();
        let Some(marks) = marks else { continue };
        // A step of the clock while a packet was in flight is not part of its round trip.
        let mut clocks = passages.clocks.iter().zip(&marks);
        let is_set =
            clocks.any(|(clock, (forward_at, back))| clock.is_set_between(*forward_at, *back));
        let mut times = marks.iter().enumerate();
        if is_set || times.any(|(point, times)| passages.followed.is_set_back(point, *times)) {
            continue;
        }
        // Each point's round trip uses its own clock: no difference is between two clocks.
        let around: Vec<i128> = marks
            .iter()
            .map(|(forward_mark, back)| i128::from(*back) - i128::from(*forward_mark))
            .collect();
        let of = &mut by_protocol[protocol(forward.flow.protocol)];
        of.n += 1;
        of.total += around[0];
        for (at, part) in of.parts.iter_mut().enumerate() {
            *part += around[at] - around.get(at + 1).copied().unwrap_or(0);
        }
        for (segment, (known, round_trip_sum)) in of.forward_sums.iter_mut().enumerate() {
            if let Some(one_way) = passages.delay(&forward, Direction::Forward, segment) {
                *known += i128::from(one_way.delay.nanos());
                *round_trip_sum += around[segment] - around[segment + 1];
            }
        }
    }
    by_protocol.retain(|of| of.n > 0);
    by_protocol
}
