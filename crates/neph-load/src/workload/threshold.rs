//! A condition on the result of a load, under which it counts as failed: `p99 > 50ms`.

use std::fmt;
use std::str::FromStr;

use neph_model::{RequestRate, Span};

use super::tally::Tally;
use crate::durations::DurationQuantile;

/// A condition that a result must not fulfil.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    subject: Subject,
    is_above: bool,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// A quantile of response times, in thousandths.
    ResponseQuantile(u32),
    ResponseMean,
    ResponseMax,
    /// Requests without success, share of all.
    Errors,
    /// Successful responses per second.
    Rate,
}

/// What a threshold finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdResult {
    /// The condition is not fulfilled.
    Held,
    /// It is fulfilled; the measured value as text.
    Exceeded(String),
    /// There are too few requests to decide.
    Unknown(String),
}

impl Threshold {
    /// Compares it with the counts of a load that was measured for `measured`.
    #[expect(clippy::cast_precision_loss, reason = "counts of requests")]
    pub fn check(&self, tally: &Tally, measured: Span) -> ThresholdResult {
        let time = |time: Option<Span>| match time {
            Some(time) => self.compare(time.secs_f64(), time.to_string()),
            None => ThresholdResult::Unknown("no successful response".to_owned()),
        };
        let seconds = measured.secs_f64();
        match self.subject {
            Subject::ResponseMean => time(tally.response.mean()),
            Subject::ResponseMax => time(tally.response.max()),
            Subject::ResponseQuantile(permille) => match tally.response_quantile(permille) {
                DurationQuantile::At(at) => time(Some(at)),
                // An unsuccessful request is slower than every limit.
                DurationQuantile::Lost => {
                    self.compare(f64::INFINITY, "a request without success".to_owned())
                }
                DurationQuantile::Needs(needed) => {
                    ThresholdResult::Unknown(format!("it needs {needed} requests"))
                }
            },
            Subject::Errors if tally.ended() == 0 => {
                ThresholdResult::Unknown("no request ended".to_owned())
            }
            Subject::Errors => {
                let share = tally.unsuccessful() as f64 / tally.ended() as f64;
                self.compare(share, format!("{:.3} %", share * 100.0))
            }
            Subject::Rate if seconds <= 0.0 => {
                ThresholdResult::Unknown("nothing was measured".to_owned())
            }
            Subject::Rate => {
                let rate = tally.successes() as f64 / seconds;
                self.compare(rate, format!("{rate:.1}/s"))
            }
        }
    }

    fn compare(&self, value: f64, text: String) -> ThresholdResult {
        let is_exceeded = if self.is_above {
            value > self.limit
        } else {
            value < self.limit
        };
        if is_exceeded {
            ThresholdResult::Exceeded(text)
        } else {
            ThresholdResult::Held
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// A text that is no threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no condition: write for example 'p99 > 50ms', 'mean > 5ms', 'max > 1s', 'errors > 1%' or \
     'rate < 500/s'; percentiles are p50, p90, p95, p99 and p99.9"
)]
pub struct NoThreshold(String);

impl FromStr for Threshold {
    type Err = NoThreshold;

    fn from_str(text: &str) -> Result<Self, NoThreshold> {
        parse(text).ok_or_else(|| NoThreshold(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Threshold> {
    let (subject, rest) = text.split_once(['<', '>'])?;
    let is_above = text.as_bytes().get(subject.len()) == Some(&b'>');
    let (subject, limit) = (subject.trim(), rest.trim());
    let time = || {
        let time = Span::from_compact(&limit.replace(' ', ""))?;
        (time >= Span::ZERO).then(|| time.secs_f64())
    };
    let (kind, value) = match subject {
        "p50" => (Subject::ResponseQuantile(500), time()?),
        "p90" => (Subject::ResponseQuantile(900), time()?),
        "p95" => (Subject::ResponseQuantile(950), time()?),
        "p99" => (Subject::ResponseQuantile(990), time()?),
        "p99.9" => (Subject::ResponseQuantile(999), time()?),
        "mean" => (Subject::ResponseMean, time()?),
        "max" => (Subject::ResponseMax, time()?),
        "errors" => {
            let percent: f64 = limit.strip_suffix('%')?.trim().parse().ok()?;
            let share = Some(percent / 100.0).filter(|share| (0.0..=1.0).contains(share));
            (Subject::Errors, share?)
        }
        "rate" => {
            let rate: RequestRate = limit.parse().ok()?;
            (Subject::Rate, rate.per_second())
        }
        _ => return None,
    };
    Some(Threshold {
        text: format!("{subject} {} {limit}", if is_above { '>' } else { '<' }),
        subject: kind,
        is_above,
        limit: value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::failure::RequestFailure;

    fn tally() -> Tally {
        let mut tally = Tally::default();
        for millis in 1..=300 {
            tally.response.add(millis * 1_000_000);
        }
        tally.failures.insert(RequestFailure::TimedOut, 1);
        tally
    }

    fn check(text: &str) -> ThresholdResult {
        let threshold: Threshold = text.parse().expect(text);
        threshold.check(&tally(), Span::from_secs(10))
    }

    #[test]
    fn a_threshold_compares_in_its_direction() {
        assert!(matches!(check("p50 > 100ms"), ThresholdResult::Exceeded(_)));
        assert_eq!(check("p50>200 ms"), ThresholdResult::Held);
        assert_eq!(check("max > 1s"), ThresholdResult::Held);
        let exceeded = |text: &str| ThresholdResult::Exceeded(text.to_owned());
        assert_eq!(check("errors > 0.1%"), exceeded("0.332 %"));
        assert_eq!(check("rate < 31/s"), exceeded("30.0/s"));
        assert_eq!(check("rate < 30/s"), ThresholdResult::Held);
        assert!(matches!(check("p99.9 > 1s"), ThresholdResult::Unknown(_)));
    }

    #[test]
    fn a_wrong_threshold_is_refused_with_examples() {
        for wrong in [
            "",
            "p99",
            "p99 = 5ms",
            "p98 > 5ms",
            "p99 > 5",
            "errors > 200%",
            "rate < 5",
        ] {
            let error = wrong.parse::<Threshold>().expect_err(wrong);
            assert!(error.to_string().contains("'p99 > 50ms'"), "{error}");
        }
    }
}
