//! A service of known speed: servers, a distribution of service times, a queue.
//!
//! Owns the terms and their text form. neph-load serves it, neph-analysis has its formulas.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TimeDistribution;

/// Default port of a service of known speed.
pub const SERVICE_PORT: NonZeroU16 = NonZeroU16::new(8090).expect("above zero");

/// A service: requests wait in one queue, in the order of their arrival, for one of several servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceModel {
    /// Requests that are served at the same time, 1 to 10,000.
    pub servers: u32,
    /// How long a server works on a request.
    pub service_time: TimeDistribution,
    /// Requests that can wait; a further one gets status 503 at once. null: a million.
    pub queue: Option<u32>,
    /// TCP port, at the address of the reflector.
    pub port: NonZeroU16,
}

impl ServiceModel {
    /// Maximum number of servers, and of places in the queue.
    pub const MAX: u32 = 1_000_000;
    const MAX_SERVERS: u32 = 10_000;
}

/// `c=8 exp 63ms queue=100`: every property but the default port.
impl fmt::Display for ServiceModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("c={} {}", self.servers, self.service_time);
        if let Some(queue) = self.queue {
            text.push_str(&format!(" queue={queue}"));
        }
        if self.port != SERVICE_PORT {
            text.push_str(&format!(" port={}", self.port));
        }
        f.pad(&text)
    }
}

/// A text that describes no service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' describes no service: {reason}")]
pub struct NoService {
    text: String,
    reason: String,
}

impl FromStr for ServiceModel {
    type Err = NoService;

    fn from_str(text: &str) -> Result<Self, NoService> {
        let wrong = |reason: String| NoService {
            text: text.to_owned(),
            reason,
        };
        let (mut servers, mut queue, mut port, mut rest) = (1, None, SERVICE_PORT, Vec::new());
        for word in text.split_whitespace() {
            let number = |text: &str, max: u32| {
                let number = text.parse().ok().filter(|number| *number <= max);
                number.ok_or_else(|| wrong(format!("'{word}': write a whole number up to {max}")))
            };
            match word.split_once('=') {
                Some(("c", count)) => {
                    servers = number(count, Self::MAX_SERVERS)?;
                }
                Some(("queue", count)) => queue = Some(number(count, Self::MAX)?),
                Some(("port", number)) => {
                    let parsed = number.parse();
                    port = parsed.map_err(|_| wrong(format!("'{word}': write a port")))?;
                }
                _ => rest.push(word),
            }
        }
        if servers == 0 {
            return Err(wrong("c is the number of servers, at least 1".to_owned()));
        }
        if rest.is_empty() {
            return Err(wrong(
                "write for example 'c=8 exp 63ms queue=100': servers, service time, places in the queue"
                    .to_owned(),
            ));
        }
        let service_time: TimeDistribution = rest
            .join(" ")
            .parse()
            .map_err(|error: crate::NoTimeDistribution| wrong(error.to_string()))?;
        Ok(Self {
            servers,
            service_time,
            queue,
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_roundtrip_as_text() {
        for text in [
            "c=8 exp 63ms queue=100",
            "c=1 5ms",
            "c=2 lognormal 20ms sd=40ms queue=0 port=9000",
        ] {
            let parsed: ServiceModel = text.parse().expect(text);
            assert_eq!(parsed.to_string(), text);
        }
        let default: ServiceModel = "exp 1ms".parse().expect("a service");
        assert_eq!((default.servers, default.queue), (1, None));
    }

    #[test]
    fn a_wrong_service_is_refused_with_a_remedy() {
        for (text, reason) in [
            ("", "'c=8 exp 63ms queue=100'"),
            ("c=8", "'c=8 exp 63ms queue=100'"),
            ("c=0 5ms", "at least 1"),
            ("c=x 5ms", "'c=x': write a whole number up to 10000"),
            ("c=2 5ms queue=-1", "'queue=-1'"),
            ("5ms port=0", "'port=0': write a port"),
            ("c=2 fast", "'fast' is no distribution of times"),
        ] {
            let error = text.parse::<ServiceModel>().expect_err(text);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
