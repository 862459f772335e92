//! The times at which requests of an open loop arrive: the same seed gives the same times.
//!
//! A Poisson process with a changing rate is one with rate 1 whose time is stretched. So the expected number
//! of arrivals between two of them has an exponential distribution with mean 1.

use std::f64::consts::TAU;

use neph_model::{ArrivalSpacing, Arrivals, RateCurve, RequestRate, Span};
use neph_stats::Random;

use super::time_sampler::exponential;

/// Arrival times since the start of the load, ascending. Ends where the rate stays zero.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalTimes {
    arrivals: Arrivals,
    random: Random,
    /// Number of the next arrival.
    number: u64,
    /// Seconds.
    at: f64,
    /// Number of the piece of the curve that has `at`.
    piece: u32,
}

/// A part of a curve with one rate.
struct Piece {
    rate: f64,
    /// Its end in seconds; infinite for the last one.
    end: f64,
}

impl ArrivalTimes {
    pub(crate) fn new(arrivals: &Arrivals, seed: u64) -> Self {
        Self {
            arrivals: arrivals.clone(),
            random: Random::new(seed),
            number: 0,
            at: 0.0,
            piece: 0,
        }
    }

    /// The time at which this many more arrivals are expected.
    fn after(&mut self, expected: f64) -> Option<f64> {
        if let RateCurve::Diurnal { low, high, period } = self.arrivals.rate {
            let cosine = Cosine::new(low, high, period);
            return Some(cosine.after(self.at, expected));
        }
        let (mut at, mut left) = (self.at, expected);
        loop {
            let piece = piece(&self.arrivals.rate, self.piece);
            let room = piece.rate * (piece.end - at);
            if piece.rate > 0.0 && left <= room {
                return Some(at + left / piece.rate);
            }
            if piece.end.is_infinite() {
                return None;
            }
            (left, at) = (left - room.max(0.0), piece.end);
            self.piece += 1;
        }
    }
}

impl Iterator for ArrivalTimes {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let number = self.number;
        self.number += 1;
        let is_constant = self.arrivals.spacing == ArrivalSpacing::Constant;
        if let RateCurve::Constant { rate } = self.arrivals.rate
            && is_constant
        {
            // Exact, however long the load.
            let nanos = u128::from(number) * 1_000_000_000_000 / u128::from(rate.milli().max(1));
            return i64::try_from(nanos).ok().map(Span::from_nanos);
        }
        let expected = match (is_constant, number) {
            (true, 0) => 0.0,
            (true, _) => 1.0,
            (false, _) => exponential(&mut self.random),
        };
        self.at = self.after(expected)?;
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        Some(Span::from_nanos((self.at * 1e9).round() as i64))
    }
}

/// The part of the curve with this number.
fn piece(curve: &RateCurve, number: u32) -> Piece {
    let index = number as usize;
    let count = f64::from(number);
    match curve {
        RateCurve::Constant { rate } => Piece {
            rate: rate.per_second(),
            end: f64::INFINITY,
        },
        RateCurve::Bursts { rate, on, off } => {
            let (on, off) = (on.secs_f64(), off.secs_f64());
            let cycle = (count / 2.0).floor() * (on + off);
            if number.is_multiple_of(2) {
                Piece {
                    rate: rate.per_second(),
                    end: cycle + on,
                }
            } else {
                Piece {
                    rate: 0.0,
                    end: cycle + on + off,
                }
            }
        }
        RateCurve::Steps { rates, every } => {
            let last = rates.len().saturating_sub(1);
            let rate = rates.get(index.min(last)).copied().unwrap_or_default();
            let end = if index >= last {
                f64::INFINITY
            } else {
                (count + 1.0) * every.secs_f64()
            };
            Piece {
                rate: rate.per_second(),
                end,
            }
        }
        RateCurve::Points { points } => {
            let point = points.get(index).or_else(|| points.last());
            let next = points.get(index + 1);
            Piece {
                rate: point.map_or(0.0, |point| point.rate.per_second()),
                end: next.map_or(f64::INFINITY, |next| next.from.secs_f64()),
            }
        }
        // Has no pieces.
        RateCurve::Diurnal { .. } => Piece {
            rate: 0.0,
            end: f64::INFINITY,
        },
    }
}

/// A rate that is a cosine: `middle - amplitude * cos(2 pi t / period)`.
struct Cosine {
    middle: f64,
    amplitude: f64,
    period: f64,
}

impl Cosine {
    fn new(low: RequestRate, high: RequestRate, period: Span) -> Self {
        let (low, high) = (low.per_second(), high.per_second());
        Self {
            middle: low.midpoint(high),
            amplitude: (high - low) / 2.0,
            period: period.secs_f64(),
        }
    }

    /// Expected number of arrivals before this second.
    fn until(&self, at: f64) -> f64 {
        let wave = self.amplitude * self.period / TAU;
        self.middle * at - wave * (TAU * at / self.period).sin()
    }

    /// The second at which this many more arrivals than at `from` are expected, by bisection.
    fn after(&self, from: f64, expected: f64) -> f64 {
        let wanted = self.until(from) + expected;
        // Each period has the same number of arrivals.
        let periods = (expected / (self.middle * self.period)).ceil() + 1.0;
        let (mut low, mut high) = (from, from + periods * self.period);
        for _ in 0..100 {
            let middle = low.midpoint(high);
            if middle <= low || middle >= high {
                break;
            }
            if self.until(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use neph_model::RatePoint;

    use super::*;

    fn times(text: &str, count: usize) -> Vec<f64> {
        let arrivals: Arrivals = text.parse().expect(text);
        let times = ArrivalTimes::new(&arrivals, 7).take(count);
        times.map(Span::secs_f64).collect()
    }

    #[test]
    fn constant_distances_are_exact_and_begin_at_zero() {
        assert_eq!(times("4/s", 4), [0.0, 0.25, 0.5, 0.75]);
        let arrivals: Arrivals = "3/s".parse().expect("a rate");
        let late = ArrivalTimes::new(&arrivals, 1).nth(3_000_000);
        assert_eq!(late, Some(Span::from_secs(1_000_000)));
    }

    #[test]
    fn bursts_pause_and_steps_change_the_rate() {
        assert_eq!(
            times("bursts 2/s on=1s off=4s", 5),
            [0.0, 0.5, 1.0, 5.5, 6.0]
        );
        assert_eq!(
            times("steps 1/s,4/s every=2s", 6),
            [0.0, 1.0, 2.0, 2.25, 2.5, 2.75]
        );
    }

    #[test]
    fn arrivals_end_where_the_rate_stays_zero() {
        let point = |from, milli| RatePoint {
            from: Span::from_secs(from),
            rate: RequestRate::from_milli(milli),
        };
        let arrivals = Arrivals {
            spacing: ArrivalSpacing::Constant,
            rate: RateCurve::Points {
                points: [point(0, 1_000), point(2, 0)].into(),
            },
        };
        let times: Vec<Span> = ArrivalTimes::new(&arrivals, 1).collect();
        assert_eq!(times, [0, 1, 2].map(Span::from_secs));
    }

    #[test]
    fn a_poisson_process_has_the_mean_and_the_variation_of_its_distances() {
        let times = times("poisson 1000/s", 100_001);
        let distances: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = distances.iter().sum::<f64>() / 1e5;
        let squares: f64 = distances.iter().map(|one| (one - mean).powi(2)).sum();
        assert!((mean * 1_000.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((squares / 1e5 / (mean * mean) - 1.0).abs() < 0.02);
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a count of arrivals")]
    fn a_diurnal_rate_has_its_minimum_at_the_start_and_its_mean_over_a_period() {
        for text in [
            "diurnal 0/s..200/s period=100s",
            "poisson diurnal 0/s..200/s period=100s",
        ] {
            let times = times(text, 30_000);
            let within = |from: f64, to: f64| {
                times.iter().filter(|at| (from..to).contains(*at)).count() as f64
            };
            assert!((within(0.0, 100.0) / 10_000.0 - 1.0).abs() < 0.05, "{text}");
            // 100 t - 100 * 100 / 2 pi * sin(2 pi t / 100) is 65 after 5 s, and 1965 from 45 to 55 s.
            assert!(within(0.0, 5.0) < 100.0, "{text}");
            assert!((within(45.0, 55.0) / 1_984.0 - 1.0).abs() < 0.08, "{text}");
        }
    }
}
