//! The load that a site of a lab generates during a measurement.
//!
//! Owns the kinds of load, and their text: `vm1 80%, vm2 flow 10.0.0.1:8080 max`. Does not generate
//! it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BitRate;

/// The load that a site generates during a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadSpec {
    /// CPU load of each core that the site may use, percent.
    Cpu(CpuShare),
    /// TCP load to a reflector.
    Flow {
        /// The reflector, `host:port`.
        to: String,
        /// Rate in bit/s; null: no limit.
        rate: Option<BitRate>,
    },
    /// UDP load to a reflector, in frames like a video.
    Stream {
        /// The reflector, `host:port`.
        to: String,
        /// Rate in bit/s.
        rate: BitRate,
    },
}

/// A share of a core's time: 1 to 100 percent. Serialised in percent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(into = "f64", try_from = "f64")]
pub struct CpuShare(f64);

/// It is a number.
impl Eq for CpuShare {}

impl CpuShare {
    /// So many percent, if that is a load.
    pub fn percent(percent: f64) -> Option<Self> {
        (1.0..=100.0).contains(&percent).then_some(Self(percent))
    }

    /// In percent.
    pub const fn in_percent(self) -> f64 {
        self.0
    }
}

impl From<CpuShare> for f64 {
    fn from(share: CpuShare) -> Self {
        share.0
    }
}

impl TryFrom<f64> for CpuShare {
    type Error = ParseLoadError;

    fn try_from(percent: f64) -> Result<Self, ParseLoadError> {
        Self::percent(percent).ok_or_else(|| ParseLoadError::Text(format!("{percent}%")))
    }
}

/// `80%`
impl fmt::Display for CpuShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// A load with its site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteLoad {
    /// Name of the site or guest.
    pub site: String,
    /// The load.
    pub load: LoadSpec,
}

impl SiteLoad {
    /// Whether both define the same load of the same site, perhaps with different values.
    fn is_same(&self, other: &Self) -> bool {
        let is_identical = match (&self.load, &other.load) {
            (LoadSpec::Cpu(_), LoadSpec::Cpu(_)) => true,
            (LoadSpec::Flow { to, .. }, LoadSpec::Flow { to: other, .. })
            | (LoadSpec::Stream { to, .. }, LoadSpec::Stream { to: other, .. }) => to == other,
            _ => false,
        };
        is_identical && self.site == other.site
    }
}

/// The word for a rate without a limit.
const UNLIMITED_RATE: &str = "max";
/// The slowest rate that is a load.
const SLOWEST: BitRate = BitRate(1_000);

impl fmt::Display for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(share) => share.fmt(f),
            Self::Flow { to, rate: None } => write!(f, "flow {to} {UNLIMITED_RATE}"),
            Self::Flow {
                to,
                rate: Some(rate),
            } => write!(f, "flow {to} {}", rate.exact()),
            Self::Stream { to, rate } => write!(f, "stream {to} {}", rate.exact()),
        }
    }
}

impl fmt::Display for SiteLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.site, self.load)
    }
}

/// Why a text is no list of loads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLoadError {
    /// It is not written so.
    #[error("\"{0}\" is no load")]
    Text(String),
    /// One site has two entries for the same load.
    #[error("site '{0}' is named twice for the same load")]
    DuplicateLoad(String),
}

/// How numbers of a load are parsed: users may write them in more forms than they are stored.
#[derive(Clone, Copy, Debug)]
pub struct LoadUnits {
    /// Reads percent, `80%`.
    pub percent: fn(&str) -> Option<f64>,
    /// Reads a rate, `1450kbit/s`.
    pub rate: fn(&str) -> Option<BitRate>,
}

impl LoadUnits {
    /// As loads are displayed.
    pub const EXACT: Self = Self {
        percent: |text| text.strip_suffix('%')?.parse().ok(),
        rate: |text| text.parse().ok(),
    };

    /// Reads loads with commas between, at least one.
    ///
    /// # Errors
    /// One is not written so, or a site is named twice for the same load.
    pub fn loads(&self, text: &str) -> Result<Vec<SiteLoad>, ParseLoadError> {
        let mut loads: Vec<SiteLoad> = Vec::new();
        for part in text.split(',') {
            let load = self.parse_load(part);
            let load = load.ok_or_else(|| ParseLoadError::Text(text.to_owned()))?;
            if loads.iter().any(|other| other.is_same(&load)) {
                return Err(ParseLoadError::DuplicateLoad(load.site));
            }
            loads.push(load);
        }
        Ok(loads)
    }

    fn parse_load(&self, part: &str) -> Option<SiteLoad> {
        let (site, remaining) = part.trim().split_once(char::is_whitespace)?;
        let fields: Vec<&str> = remaining.split_whitespace().collect();
        let load = match fields.as_slice() {
            ["flow", to, UNLIMITED_RATE] => LoadSpec::Flow {
                to: reflector(to)?,
                rate: None,
            },
            ["flow", to, rate] => LoadSpec::Flow {
                to: reflector(to)?,
                rate: Some(self.some_rate(rate)?),
            },
            ["stream", to, rate] => LoadSpec::Stream {
                to: reflector(to)?,
                rate: self.some_rate(rate)?,
            },
            _ => LoadSpec::Cpu(CpuShare::percent((self.percent)(remaining.trim())?)?),
        };
        let site = site.to_owned();
        Some(SiteLoad { site, load })
    }

    fn some_rate(&self, text: &str) -> Option<BitRate> {
        (self.rate)(text).filter(|rate| *rate >= SLOWEST)
    }
}

/// `host:port`
fn reflector(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    (!host.is_empty() && port > 0).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_loads_roundtrip_through_text() {
        let text = "vm1 flow 10.0.0.1:80 max, vm1 flow h:81 1450kbit/s, vm1 98%, \
                    vm2 stream [::1]:80 2Mbit/s";
        let loads = LoadUnits::EXACT.loads(text).expect("four");
        let texts: Vec<String> = loads.iter().map(SiteLoad::to_string).collect();
        assert_eq!(texts.join(", "), text);
        let rate = Some(BitRate(1_450_000));
        let to = "h:81".to_owned();
        assert_eq!(loads[1].load, LoadSpec::Flow { to, rate });
    }

    #[test]
    fn invalid_loads_are_refused() {
        for wrong in [
            "",
            "vm1 flow 10.0.0.1 max",
            "vm1 flow :80 max",
            "vm1 stream 10.0.0.1:80 max",
            "vm1 flow 10.0.0.1:80 0bit/s",
            "vm1 flow 10.0.0.1:80 max, vm1 flow 10.0.0.1:80 1Mbit/s",
            "vm1",
            "80%",
            "vm1 0%",
            "vm1 101%",
            "vm1 1%,",
            "a 1%, a 2%",
        ] {
            assert!(LoadUnits::EXACT.loads(wrong).is_err(), "{wrong}");
        }
    }
}
