//! The delays of small packets, and their distribution with jitter.

use neph_model::Span;

use super::exchange::PacketTimes;
use super::replay::RequestedLink;
use super::{DELAY_TOLERANCE, PROBE_BYTES};

/// Distance of two samples of one distribution that 99 % do not exceed, times the root of (n + m) / n m
/// (Kolmogorov 1933, Smirnov 1948).
const KOLMOGOROV_99: f64 = 1.628;

/// Factor by which a measured sample may exceed the largest distance of twenty draws. One correct link in a
/// hundred does (by simulation of jitter that makes packets wait for each other).
const BEYOND_DRAWS: f64 = 1.25;

/// One-way delays of small packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayCheck {
    /// The requested delays, including transmission and waits for each other.
    pub expected: Quantiles,
    /// The measured delays; `None` if nothing arrived.
    pub measured: Option<Quantiles>,
    /// The comparison of distributions; `None` without jitter.
    pub jitter: Option<JitterCheck>,
    /// Whether the median is within 50 us of the requested one; with jitter, whether the distribution is
    /// within tolerance.
    pub ok: bool,
}

/// The median and p99, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of the packets took at most this long.
    pub median: Span,
    /// 99 % of the packets took at most this long.
    pub p99: Span,
}

/// The greatest distance between two distribution functions, after a shift of up to 50 us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JitterCheck {
    /// Between 0 and 1.
    pub distance: f64,
    /// 99 of 100 samples of the requested distribution stay below this.
    pub allowed: f64,
}

impl JitterCheck {
    /// Whether the jitter is consistent with the requested one.
    pub fn is_ok(self) -> bool {
        self.distance <= self.allowed
    }
}

/// Checks the delays of the observed packets.
pub(super) fn check(packets: &[PacketTimes], course: &RequestedLink<'_>) -> DelayCheck {
    let departures: Vec<i64> = packets
        .iter()
        .filter_map(|packet_times| packet_times.departure)
        .collect();
    let draws = course.delays(&departures, PROBE_BYTES);
    let mut expected = draws.concat();
    expected.sort_unstable();
    let mut measured: Vec<i64> = packets
        .iter()
        .filter_map(PacketTimes::delay)
        .map(Span::nanos)
        .collect();
    measured.sort_unstable();
    let (Some(expected_quantiles), Some(measured_quantiles)) =
        (quantiles(&expected), quantiles(&measured))
    else {
        let none = Quantiles {
            median: course.wire().delay,
            p99: course.wire().delay,
        };
        // Nothing arrived: correct only if everything was to be lost.
        return DelayCheck {
            expected: quantiles(&expected).unwrap_or(none),
            measured: quantiles(&measured),
            jitter: None,
            ok: !departures.is_empty() && expected.is_empty() && measured.is_empty(),
        };
    };
    let jitter = (!course.is_certain()).then(|| compare(&measured, &expected, &draws));
    let deviation = (measured_quantiles.median - expected_quantiles.median).abs();
    DelayCheck {
        expected: expected_quantiles,
        measured: Some(measured_quantiles),
        jitter,
        ok: jitter.map_or(deviation <= DELAY_TOLERANCE, JitterCheck::is_ok),
    }
}

fn quantiles(sorted: &[i64]) -> Option<Quantiles> {
    let nearest_rank = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted
            .get(rank.saturating_sub(1))
            .map(|nanos| Span::from_nanos(*nanos))
    };
    Some(Quantiles {
        median: nearest_rank(50)?,
        p99: nearest_rank(99)?,
    })
}

/// Compares sorted, non-empty samples. A host adds some microseconds to each delay, so the measured
/// distribution may be shifted within the tolerance. Packets that wait for each other are not independent, so
/// the limit is at least the distance of the draws themselves.
#[expect(clippy::cast_precision_loss, reason = "counts of packets")]
fn compare(measured: &[i64], expected: &[i64], draws: &[Vec<i64>]) -> JitterCheck {
    let (n, m) = (measured.len() as f64, expected.len() as f64);
    let own_distances = draws.iter().map(|draw| distance(draw, expected, 0));
    let own_distance = own_distances.fold(0.0, f64::max);
    let independent = KOLMOGOROV_99 * ((n + m) / (n * m)).sqrt();
    JitterCheck {
        distance: distance(measured, expected, DELAY_TOLERANCE.nanos()),
        allowed: independent.max(BEYOND_DRAWS * own_distance),
    }
}

/// The greatest distance of two distribution functions, one of which may be shifted.
#[expect(clippy::cast_precision_loss, reason = "counts of packets")]
fn distance(sample: &[i64], other: &[i64], shift: i64) -> f64 {
    let (n, m) = (sample.len() as f64, other.len() as f64);
    let mut distance: f64 = 0.0;
    for (rank, value) in sample.iter().enumerate() {
        let below = other.partition_point(|value_below| *value_below < value - shift) as f64 / m;
        let up_to = other.partition_point(|value_below| *value_below <= value + shift) as f64 / m;
        let here = (rank + 1) as f64 / n;
        let before = rank as f64 / n;
        distance = distance.max(here - up_to).max(below - before);
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::super::replay::requested;
    use super::*;
    use crate::gate::{Jitter, Shape};

    /// Packets every 10 ms with these delays.
    fn observe(delays: impl IntoIterator<Item = i64>) -> Vec<PacketTimes> {
        let packet_times = |(number, delay): (i64, i64)| PacketTimes {
            departure: Some(number * 10_000_000),
            arrival: Some(number * 10_000_000 + delay),
        };
        (0..).zip(delays).map(packet_times).collect()
    }

    fn five_millis(jitter: Jitter) -> Shape {
        let mut shape = Shape::default();
        shape.wire.delay = Span::from_millis(5);
        shape.wire.jitter = jitter;
        shape
    }

    #[test]
    fn a_median_may_exceed_its_target_only_by_the_tolerance() {
        let shape = five_millis(Jitter::None);
        let fine = check(
            &observe([5_010_000, 5_010_000, 9_000_000]),
            &requested(&shape),
        );
        assert!(fine.ok && fine.jitter.is_none(), "{fine:?}");
        assert_eq!(fine.expected.p99, Span::from_millis(5));
        assert_eq!(
            fine.measured.map(|is| is.p99),
            Some(Span::from_millis(9)),
            "told, not judged"
        );
        assert!(
            !check(
                &observe([5_060_000, 5_060_000, 5_000_000]),
                &requested(&shape)
            )
            .ok
        );
        assert!(
            !check(&[PacketTimes::default()], &requested(&shape)).ok,
            "nothing came"
        );
    }

    /// Jitter wider than the interval of packets: they wait for each other.
    #[test]
    fn a_right_link_is_refused_once_in_a_hundred_however_wide_its_jitter() {
        let mut refused = [0; 3];
        let jitters = [
            Jitter::Uniform(Span::from_millis(30)),
            Jitter::Pareto(Span::from_millis(10)),
            Jitter::Normal(Span::from_micros(500)),
        ];
        for (refused, jitter) in refused.iter_mut().zip(jitters) {
            let shape = five_millis(jitter);
            let departures: Vec<i64> = (0..200).map(|number| number * 10_000_000).collect();
            for draw in 100..300 {
                let arrivals = requested(&shape).replay(&departures, PROBE_BYTES, draw);
                let observations =
                    departures
                        .iter()
                        .zip(arrivals)
                        .map(|(departure, arrival)| PacketTimes {
                            departure: Some(*departure),
                            arrival,
                        });
                let packet_times: Vec<PacketTimes> = observations.collect();
                *refused += u32::from(!check(&packet_times, &requested(&shape)).ok);
            }
        }
        // Of 200; twice 1 % is not significant.
        assert!(refused.iter().all(|refused| *refused <= 6), "{refused:?}");
    }

    #[test]
    fn jitter_of_another_width_or_distribution_fails_the_check() {
        let even = |half: i64| (0..500).map(move |step| 5_000_000 + half * (step - 250) / 250);
        let shape = five_millis(Jitter::Uniform(Span::from_millis(2)));
        // Drawn in an order without reordering: 10 ms apart.
        let right = check(&observe(even(2_000_000)), &requested(&shape));
        assert!(right.ok, "{right:?}");
        let shifted = check(
            &observe(even(2_000_000).map(|took| took + 40_000)),
            &requested(&shape),
        );
        assert!(shifted.ok, "within the tolerance: {shifted:?}");
        for wrong in [1_500_000, 2_600_000, 0] {
            let check = check(&observe(even(wrong)), &requested(&shape));
            assert!(!check.ok, "{wrong}: {check:?}");
        }
        let normal = five_millis(Jitter::Normal(Span::from_micros(1_155)));
        let other = check(&observe(even(2_000_000)), &requested(&normal));
        let jitter = other.jitter.expect("there is jitter");
        assert!(jitter.distance > 0.04, "{jitter:?}");
    }
}
