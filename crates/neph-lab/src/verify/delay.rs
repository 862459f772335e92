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
const DISTANCE_MARGIN: f64 = 1.25;

/// One-way delays of small packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayCheck {
    /// The requested delays, including transmission and waits for each other.
    pub expected: DelayQuantiles,
    /// The measured delays; `None` if nothing arrived.
    pub measured: Option<DelayQuantiles>,
    /// The comparison of distributions; `None` without jitter.
    pub jitter: Option<JitterCheck>,
    /// Whether the median is within 50 us of the requested one; with jitter, whether the distribution is
    /// within tolerance.
    pub is_ok: bool,
}

/// The median and p99, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayQuantiles {
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
pub(super) fn check(packets: &[PacketTimes], requested_link: &RequestedLink<'_>) -> DelayCheck {
    let departures: Vec<i64> = packets
        .iter()
        .filter_map(|packet_times| packet_times.departure)
        .collect();
    let draws = requested_link.delays(&departures, PROBE_BYTES);
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
        let configured = DelayQuantiles {
            median: requested_link.wire().delay,
            p99: requested_link.wire().delay,
        };
        // Nothing arrived: correct only if everything was to be lost.
        return DelayCheck {
            expected: quantiles(&expected).unwrap_or(configured),
            measured: quantiles(&measured),
            jitter: None,
            is_ok: !departures.is_empty() && expected.is_empty() && measured.is_empty(),
        };
    };
    let jitter = (!requested_link.is_deterministic())
        .then(|| compare_distributions(&measured, &expected, &draws));
    let deviation = (measured_quantiles.median - expected_quantiles.median).abs();
    DelayCheck {
        expected: expected_quantiles,
        measured: Some(measured_quantiles),
        jitter,
        is_ok: jitter.map_or(deviation <= DELAY_TOLERANCE, JitterCheck::is_ok),
    }
}

fn quantiles(sorted: &[i64]) -> Option<DelayQuantiles> {
    let nearest_rank = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted
            .get(rank.saturating_sub(1))
            .map(|nanos| Span::from_nanos(*nanos))
    };
    Some(DelayQuantiles {
        median: nearest_rank(50)?,
        p99: nearest_rank(99)?,
    })
}

/// Compares sorted, non-empty samples. A host adds some microseconds to each delay, so the measured
/// distribution may be shifted within the tolerance. Packets that wait for each other are not independent, so
/// the limit is at least the distance of the draws themselves.
#[expect(clippy::cast_precision_loss, reason = "counts of packets")]
fn compare_distributions(measured: &[i64], expected: &[i64], draws: &[Vec<i64>]) -> JitterCheck {
    let (n, m) = (measured.len() as f64, expected.len() as f64);
    let draw_distances = draws.iter().map(|draw| distance(draw, expected, 0));
    let max_draw_distance = draw_distances.fold(0.0, f64::max);
    let max_independent_distance = KOLMOGOROV_99 * ((n + m) / (n * m)).sqrt();
    JitterCheck {
        distance: distance(measured, expected, DELAY_TOLERANCE.nanos()),
        allowed: max_independent_distance.max(DISTANCE_MARGIN * max_draw_distance),
    }
}

/// The greatest distance of two distribution functions, one of which may be shifted.
#[expect(clippy::cast_precision_loss, reason = "counts of packets")]
fn distance(sample: &[i64], other: &[i64], shift: i64) -> f64 {
    let (n, m) = (sample.len() as f64, other.len() as f64);
    let mut distance: f64 = 0.0;
    for (rank, value) in sample.iter().enumerate() {
        let other_below =
            other.partition_point(|other_value| *other_value < value - shift) as f64 / m;
        let other_up_to =
            other.partition_point(|other_value| *other_value <= value + shift) as f64 / m;
        let sample_up_to = (rank + 1) as f64 / n;
        let sample_below = rank as f64 / n;
        distance = distance
            .max(sample_up_to - other_up_to)
            .max(other_below - sample_below);
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::super::replay::requested;
    use super::*;
    use crate::gate::{Jitter, Shape};

    /// Packets every 10 ms with these delays.
    fn packets_with_delays(delays: impl IntoIterator<Item = i64>) -> Vec<PacketTimes> {
        let packet_times = |(number, delay): (i64, i64)| PacketTimes {
            departure: Some(number * 10_000_000),
            arrival: Some(number * 10_000_000 + delay),
        };
        (0..).zip(delays).map(packet_times).collect()
    }

    fn shape_with_jitter(jitter: Jitter) -> Shape {
        let mut shape = Shape::default();
        shape.wire.delay = Span::from_millis(5);
        shape.wire.jitter = jitter;
        shape
    }

    #[test]
    fn a_median_may_exceed_its_target_only_by_the_tolerance() {
        let shape = shape_with_jitter(Jitter::None);
        let passed = check(
            &packets_with_delays([5_010_000, 5_010_000, 9_000_000]),
            &requested(&shape),
        );
        assert!(passed.is_ok && passed.jitter.is_none(), "{passed:?}");
        assert_eq!(passed.expected.p99, Span::from_millis(5));
        assert_eq!(
            passed.measured.map(|quantiles| quantiles.p99),
            Some(Span::from_millis(9)),
            "reported without a verdict"
        );
        assert!(
            !check(
                &packets_with_delays([5_060_000, 5_060_000, 5_000_000]),
                &requested(&shape)
            )
            .is_ok
        );
        assert!(
            !check(&[PacketTimes::default()], &requested(&shape)).is_ok,
            "nothing arrived"
        );
    }

    /// Jitter wider than the interval of packets: they wait for each other.
    #[test]
    fn a_correct_link_fails_about_one_check_in_a_hundred_with_any_jitter() {
        let mut failed_counts = [0; 3];
        let jitters = [
            Jitter::Uniform(Span::from_millis(30)),
            Jitter::Pareto(Span::from_millis(10)),
            Jitter::Normal(Span::from_micros(500)),
        ];
        for (failed_count, jitter) in failed_counts.iter_mut().zip(jitters) {
            let shape = shape_with_jitter(jitter);
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
                *failed_count += u32::from(!check(&packet_times, &requested(&shape)).is_ok);
            }
        }
        // Of 200; twice 1 % is not significant.
        assert!(
            failed_counts.iter().all(|count| *count <= 6),
            "{failed_counts:?}"
        );
    }

    #[test]
    fn jitter_of_another_width_or_distribution_fails_the_check() {
        let uniform_delays =
            |half: i64| (0..500).map(move |step| 5_000_000 + half * (step - 250) / 250);
        let shape = shape_with_jitter(Jitter::Uniform(Span::from_millis(2)));
        // Drawn in an order without reordering: 10 ms apart.
        let correct = check(
            &packets_with_delays(uniform_delays(2_000_000)),
            &requested(&shape),
        );
        assert!(correct.is_ok, "{correct:?}");
        let shifted = check(
            &packets_with_delays(uniform_delays(2_000_000).map(|delay| delay + 40_000)),
            &requested(&shape),
        );
        assert!(shifted.is_ok, "within the tolerance: {shifted:?}");
        for wrong in [1_500_000, 2_600_000, 0] {
            let check = check(
                &packets_with_delays(uniform_delays(wrong)),
                &requested(&shape),
            );
            assert!(!check.is_ok, "{wrong}: {check:?}");
        }
        let normal = shape_with_jitter(Jitter::Normal(Span::from_micros(1_155)));
        let other = check(
            &packets_with_delays(uniform_delays(2_000_000)),
            &requested(&normal),
        );
        let jitter = other.jitter.expect("there is jitter");
        assert!(jitter.distance > 0.04, "{jitter:?}");
    }
}
