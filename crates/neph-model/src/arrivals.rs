//! When requests of an open loop arrive: a rate that may change, and how even the arrivals are.
//!
//! Owns the terms and their text form. Computes no arrival times: that is in neph-load.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RequestRate, Span};

/// The arrivals of an open loop: they do not wait for responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// How even they are.
    pub spacing: ArrivalSpacing,
    /// How many there are.
    pub rate: RateCurve,
}

/// The distances between arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalSpacing {
    /// All equal while the rate is constant.
    Constant,
    /// Exponential: a Poisson process, as of many independent users.
    Poisson,
}

/// A rate of arrivals over time, from the start of the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RateCurve {
    /// Always the same.
    Constant {
        /// The rate, in thousandths of a request per second.
        #[serde(rename = "rate_milli")]
        rate: RequestRate,
    },
    /// A rate for some time, then nothing for some time, again and again.
    Bursts {
        /// The rate within a burst.
        #[serde(rename = "rate_milli")]
        rate: RequestRate,
        /// Length of a burst.
        #[serde(rename = "on_ns")]
        on: Span,
        /// Length of a pause.
        #[serde(rename = "off_ns")]
        off: Span,
    },
    /// One rate after the other; the last one holds to the end.
    Steps {
        /// The rates, at least one.
        #[serde(rename = "rates_milli")]
        rates: Vec<RequestRate>,
        /// Length of a step.
        #[serde(rename = "every_ns")]
        every: Span,
    },
    /// A cosine between two rates, beginning at the lower one.
    Diurnal {
        /// The lowest rate.
        #[serde(rename = "low_milli")]
        low: RequestRate,
        /// The highest rate.
        #[serde(rename = "high_milli")]
        high: RequestRate,
        /// From one lowest rate to the next.
        #[serde(rename = "period_ns")]
        period: Span,
    },
    /// Rates of a file; the last one holds to the end.
    Points {
        /// At least one, in ascending order of time, the first at the start.
        points: Vec<RatePoint>,
    },
}

/// A rate from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePoint {
    /// Since the start of the load.
    #[serde(rename = "from_ns")]
    pub from: Span,
    /// The rate from then on.
    #[serde(rename = "rate_milli")]
    pub rate: RequestRate,
}

impl RateCurve {
    /// The highest rate.
    pub fn max(&self) -> RequestRate {
        match self {
            Self::Constant { rate } | Self::Bursts { rate, .. } => *rate,
            Self::Steps { rates, .. } => rates.iter().copied().max().unwrap_or_default(),
            Self::Diurnal { high, .. } => *high,
            Self::Points { points } => {
                let rates = points.iter().map(|point| point.rate);
                rates.max().unwrap_or_default()
            }
        }
    }
}

/// As it is written behind an option. Rates of a file have no such form.
impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = match &self.rate {
            RateCurve::Constant { rate } => rate.to_string(),
            RateCurve::Bursts { rate, on, off } => {
                format!("bursts {rate} on={} off={}", on.compact(), off.compact())
            }
            RateCurve::Steps { rates, every } => {
                let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
                format!("steps {} every={}", rates.join(","), every.compact())
            }
            RateCurve::Diurnal { low, high, period } => {
                format!("diurnal {low}..{high} period={}", period.compact())
            }
            RateCurve::Points { points } => format!("{} rates of a file", points.len()),
        };
        let text = match self.spacing {
            ArrivalSpacing::Constant => rate,
            ArrivalSpacing::Poisson => format!("poisson {rate}"),
        };
        f.pad(&text)
    }
}

/// A text that does not describe arrivals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no rate of arrivals: write 500/s, 'bursts 1000/s on=1s off=4s', \
     'steps 100/s,200/s every=30s' or 'diurnal 50/s..200/s period=24h'; in front of each, 'poisson' for \
     random distances"
)]
pub struct NoArrivals(String);

impl FromStr for Arrivals {
    type Err = NoArrivals;

    fn from_str(text: &str) -> Result<Self, NoArrivals> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (spacing, words) = match words.split_first() {
            Some((&"poisson", rest)) => (ArrivalSpacing::Poisson, rest),
            Some((&"constant", rest)) => (ArrivalSpacing::Constant, rest),
            _ => (ArrivalSpacing::Constant, &words[..]),
        };
        let rate = curve(words).filter(|rate| rate.max() > RequestRate::default());
        rate.map(|rate| Self { spacing, rate })
            .ok_or_else(|| NoArrivals(text.to_owned()))
    }
}

fn curve(words: &[&str]) -> Option<RateCurve> {
    match *words {
        [rate] => Some(RateCurve::Constant {
            rate: rate.parse().ok()?,
        }),
        ["bursts", rate, on, off] => Some(RateCurve::Bursts {
            rate: rate.parse().ok()?,
            on: time_after("on=", on)?,
            off: time_after("off=", off)?,
        }),
        ["steps", rates, every] => {
            let rates: Result<Vec<RequestRate>, _> = rates.split(',').map(str::parse).collect();
            Some(RateCurve::Steps {
                rates: rates.ok()?,
                every: time_after("every=", every)?,
            })
        }
        ["diurnal", range, period] => {
            let (low, high) = range.split_once("..")?;
            let (low, high) = (low.parse().ok()?, high.parse().ok()?);
            (low <= high).then_some(RateCurve::Diurnal {
                low,
                high,
                period: time_after("period=", period)?,
            })
        }
        _ => None,
    }
}

/// A time above zero behind this key.
fn time_after(key: &str, text: &str) -> Option<Span> {
    Span::from_compact(text.strip_prefix(key)?).filter(|time| *time > Span::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_roundtrip_as_text_and_as_json() {
        for text in [
            "500/s",
            "poisson 0.5/s",
            "bursts 1000/s on=1s off=4s",
            "poisson bursts 1000/s on=500ms off=4s",
            "steps 100/s,200/s,50/s every=30s",
            "poisson diurnal 0/s..200/s period=86400s",
        ] {
            let parsed: Arrivals = text.parse().expect(text);
            assert_eq!(parsed.to_string(), text);
            let json = serde_json::to_string(&parsed).expect("it is data");
            assert_eq!(serde_json::from_str(&json).ok(), Some(parsed), "{json}");
        }
        assert_eq!("constant 5/s".parse::<Arrivals>(), "5/s".parse());
    }

    #[test]
    fn arrivals_without_a_rate_above_zero_are_refused() {
        for wrong in [
            "",
            "poisson",
            "0/s",
            "500",
            "bursts 5/s on=1s",
            "bursts 5/s on=0s off=1s",
            "steps 0/s,0/s every=1s",
            "steps every=1s",
            "diurnal 9/s..1/s period=1h",
        ] {
            let error = wrong.parse::<Arrivals>().expect_err(wrong);
            assert!(error.to_string().contains("write 500/s"), "{error}");
        }
    }
}
