//! The distribution of a time that is drawn again and again: think times, service times.
//!
//! Owns the distributions, their text form and their moments. Draws nothing: that is in neph-load.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// A distribution of times. No time is below zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TimeDistribution {
    /// Always the same.
    Constant {
        /// The time.
        #[serde(rename = "time_ns")]
        time: Span,
    },
    /// Each time of a range is equally likely.
    Uniform {
        /// Minimum.
        #[serde(rename = "from_ns")]
        from: Span,
        /// Maximum.
        #[serde(rename = "to_ns")]
        to: Span,
    },
    /// Exponential: the remaining time does not depend on the time that has passed.
    Exponential {
        /// Mean.
        #[serde(rename = "mean_ns")]
        mean: Span,
    },
    /// Lognormal: the logarithm of the time has a normal distribution.
    Lognormal {
        /// Mean of the time.
        #[serde(rename = "mean_ns")]
        mean: Span,
        /// Standard deviation of the time.
        #[serde(rename = "deviation_ns")]
        deviation: Span,
    },
    /// Normal; a draw below zero counts as zero. `GaussianRandomTimer` of `JMeter`.
    Normal {
        /// Mean before negative draws are replaced.
        #[serde(rename = "mean_ns")]
        mean: Span,
        /// Standard deviation before negative draws are replaced.
        #[serde(rename = "deviation_ns")]
        deviation: Span,
    },
    /// A fixed time plus a Poisson-distributed number of milliseconds. `PoissonRandomTimer` of `JMeter`. It
    /// is not exponential: at 20 ms its standard deviation is 4.5 ms.
    JmeterPoisson {
        /// Mean of the random part, whole milliseconds.
        #[serde(rename = "mean_ns")]
        mean: Span,
        /// The fixed part.
        #[serde(rename = "offset_ns")]
        offset: Span,
    },
    /// Each of these times is equally likely.
    Samples {
        /// The times, at least one.
        #[serde(rename = "times_ns")]
        times: Vec<Span>,
    },
}

impl TimeDistribution {
    /// No time at all.
    pub const NONE: Self = Self::Constant { time: Span::ZERO };

    /// Whether every draw is zero.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The mean. Of a normal distribution, that before negative draws are replaced.
    pub fn mean(&self) -> Span {
        match self {
            Self::Constant { time } => *time,
            Self::Uniform { from, to } => Span::from_nanos(from.nanos().midpoint(to.nanos())),
            Self::Exponential { mean }
            | Self::Lognormal { mean, .. }
            | Self::Normal { mean, .. } => *mean,
            Self::JmeterPoisson { mean, offset } => *mean + *offset,
            Self::Samples { times } => {
                let sum: i128 = times.iter().map(|time| i128::from(time.nanos())).sum();
                let mean = sum / i128::try_from(times.len().max(1)).unwrap_or(1);
                Span::from_nanos(i64::try_from(mean).unwrap_or(i64::MAX))
            }
        }
    }

    /// The squared coefficient of variation: variance divided by the square of the mean. 0 for a constant,
    /// 1 for an exponential distribution; 0 if the mean is 0.
    pub fn squared_variation(&self) -> f64 {
        let mean = self.mean().secs_f64();
        if mean <= 0.0 {
            return 0.0;
        }
        let variance = match self {
            Self::Constant { .. } => 0.0,
            Self::Uniform { from, to } => (*to - *from).secs_f64().powi(2) / 12.0,
            Self::Exponential { .. } => mean * mean,
            Self::Lognormal { deviation, .. } | Self::Normal { deviation, .. } => {
                deviation.secs_f64().powi(2)
            }
            Self::JmeterPoisson { mean, .. } => mean.secs_f64() / 1_000.0,
            Self::Samples { times } => {
                let squares = times.iter().map(|time| (time.secs_f64() - mean).powi(2));
                #[expect(clippy::cast_precision_loss, reason = "a count of values in a file")]
                let count = times.len().max(1) as f64;
                squares.sum::<f64>() / count
            }
        };
        variance / (mean * mean)
    }
}

/// As it is written behind an option. A distribution of samples has no such form.
impl fmt::Display for TimeDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Constant { time } if *time == Span::ZERO => "none".to_owned(),
            Self::Constant { time } => time.compact(),
            Self::Uniform { from, to } => format!("uniform {}..{}", from.compact(), to.compact()),
            Self::Exponential { mean } => format!("exp {}", mean.compact()),
            Self::Lognormal { mean, deviation } => {
                format!("lognormal {} sd={}", mean.compact(), deviation.compact())
            }
            Self::Normal { mean, deviation } => {
                format!("normal {} sd={}", mean.compact(), deviation.compact())
            }
            Self::JmeterPoisson { mean, offset } if *offset == Span::ZERO => {
                format!("jmeter-poisson {}", mean.compact())
            }
            Self::JmeterPoisson { mean, offset } => {
                format!(
                    "jmeter-poisson {} offset={}",
                    mean.compact(),
                    offset.compact()
                )
            }
            Self::Samples { times } => format!("{} times of a file", times.len()),
        };
        f.pad(&text)
    }
}

/// A text that is no distribution of times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no distribution of times: {remedy}")]
pub struct NoTimeDistribution {
    text: String,
    remedy: &'static str,
}

const FORMS: &str = "write none, a time (20ms), 'uniform 10ms..30ms', 'exp 20ms', \
    'lognormal 20ms sd=10ms', 'normal 20ms sd=5ms' or 'jmeter-poisson 20ms'";

impl FromStr for TimeDistribution {
    type Err = NoTimeDistribution;

    fn from_str(text: &str) -> Result<Self, NoTimeDistribution> {
        let wrong = |remedy| NoTimeDistribution {
            text: text.to_owned(),
            remedy,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = match words[..] {
            ["none"] => Some(Self::NONE),
            [time] => time_of(time).map(|time| Self::Constant { time }),
            ["constant", time] => time_of(time).map(|time| Self::Constant { time }),
            ["uniform", range] => uniform(range),
            ["exp" | "exponential", mean] => time_of(mean).map(|mean| Self::Exponential { mean }),
            ["lognormal", mean, deviation] => with_deviation(mean, deviation)
                .map(|(mean, deviation)| Self::Lognormal { mean, deviation }),
            ["normal", mean, deviation] => with_deviation(mean, deviation)
                .map(|(mean, deviation)| Self::Normal { mean, deviation }),
            ["jmeter-poisson", mean] => jmeter_poisson(mean, "offset=0s"),
            ["jmeter-poisson", mean, offset] => jmeter_poisson(mean, offset),
            _ => None,
        };
        let found = found.ok_or_else(|| wrong(FORMS))?;
        match &found {
            Self::Uniform { from, to } if from > to => {
                Err(wrong("the smaller time comes first: 'uniform 10ms..30ms'"))
            }
            Self::Lognormal { mean, .. } if *mean == Span::ZERO => {
                Err(wrong("the mean must be above zero"))
            }
            Self::JmeterPoisson { mean, .. } if mean.nanos() % 1_000_000 != 0 => Err(wrong(
                "the mean of jmeter-poisson is a whole number of milliseconds",
            )),
            _ => Ok(found),
        }
    }
}

/// A time from zero to a day.
fn time_of(text: &str) -> Option<Span> {
    const MAX: Span = Span::from_secs(86_400);
    let time = Span::from_compact(text)?;
    (Span::ZERO..=MAX).contains(&time).then_some(time)
}

fn uniform(range: &str) -> Option<TimeDistribution> {
    let (from, to) = range.split_once("..")?;
    Some(TimeDistribution::Uniform {
        from: time_of(from)?,
        to: time_of(to)?,
    })
}

fn with_deviation(mean: &str, deviation: &str) -> Option<(Span, Span)> {
    let deviation = time_of(deviation.strip_prefix("sd=")?)?;
    Some((time_of(mean)?, deviation))
}

fn jmeter_poisson(mean: &str, offset: &str) -> Option<TimeDistribution> {
    Some(TimeDistribution::JmeterPoisson {
        mean: time_of(mean)?,
        offset: time_of(offset.strip_prefix("offset=")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_roundtrip_as_text_and_as_json() {
        for text in [
            "none",
            "20ms",
            "1.5s",
            "uniform 10ms..30ms",
            "exp 63ms",
            "lognormal 20ms sd=10ms",
            "normal 300ms sd=100ms",
            "jmeter-poisson 20ms",
            "jmeter-poisson 20ms offset=5ms",
        ] {
            let parsed: TimeDistribution = text.parse().expect(text);
            assert_eq!(parsed.to_string(), text);
            let json = serde_json::to_string(&parsed).expect("it is data");
            assert_eq!(serde_json::from_str(&json).ok(), Some(parsed), "{json}");
        }
        assert_eq!("0".parse(), Ok(TimeDistribution::NONE));
        assert_eq!("constant 5us".parse::<TimeDistribution>(), "5us".parse());
    }

    #[test]
    fn a_wrong_distribution_is_refused_with_a_remedy() {
        for (text, remedy) in [
            ("", "write none"),
            ("20", "a time (20ms)"),
            ("-5ms", "write none"),
            ("25h", "write none"),
            ("exp", "'exp 20ms'"),
            ("uniform 30ms..10ms", "the smaller time comes first"),
            ("lognormal 20ms", "sd=10ms"),
            ("lognormal 0s sd=1ms", "above zero"),
            ("jmeter-poisson 2.5ms", "whole number of milliseconds"),
        ] {
            let error = text.parse::<TimeDistribution>().expect_err(text);
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }

    #[test]
    fn moments_match_the_formulas() {
        let of = |text: &str| {
            let parsed: TimeDistribution = text.parse().expect(text);
            (parsed.mean().millis_f64(), parsed.squared_variation())
        };
        let near = |(mean, variation): (f64, f64), expected: (f64, f64)| {
            assert!((mean - expected.0).abs() < 1e-9, "{mean}");
            assert!((variation - expected.1).abs() < 1e-9, "{variation}");
        };
        near(of("20ms"), (20.0, 0.0));
        near(of("none"), (0.0, 0.0));
        near(of("exp 20ms"), (20.0, 1.0));
        near(of("uniform 0s..12ms"), (6.0, 12.0 / 36.0));
        near(of("lognormal 20ms sd=10ms"), (20.0, 0.25));
        // Variance of 20 in square milliseconds.
        near(of("jmeter-poisson 20ms"), (20.0, 0.05));
        let times = [1, 3].map(Span::from_millis).into();
        let samples = TimeDistribution::Samples { times };
        near(
            (samples.mean().millis_f64(), samples.squared_variation()),
            (2.0, 0.25),
        );
    }
}
