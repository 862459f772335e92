//! Factors: what differs between a campaign's scenarios, and the points of view that follow.

use std::collections::BTreeSet;

use neph_model::{Scenario, Span};

/// Something that a plan varies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Factor {
    /// Whom we talk to.
    Endpoint,
    /// Time between two requests.
    Interval,
    /// Request size.
    Size,
    /// Any other parameter, by name.
    Parameter(String),
}

impl Factor {
    /// Its name on screen.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Interval => "interval",
            Self::Size => "size",
            Self::Parameter(name) => name,
        }
    }

    /// Its level in a scenario, as people read it.
    pub(crate) fn level(&self, scenario: &Scenario) -> String {
        match self {
            Self::Endpoint => scenario.endpoint.clone(),
            Self::Interval => format!("every {}", plain_span(scenario.interval)),
            Self::Size => scenario.request_size.to_string(),
            Self::Parameter(name) => {
                let value = scenario.parameters.get(name).map_or("-", String::as_str);
                format!("{name} {value}")
            }
        }
    }

    /// What orders its levels: numbers as numbers, the rest as the plan lists it.
    pub(crate) fn rank(&self, scenario: &Scenario) -> u64 {
        match self {
            Self::Interval => u64::try_from(scenario.interval.nanos()).unwrap_or(0),
            Self::Size => scenario.request_size.bytes(),
            Self::Endpoint | Self::Parameter(_) => 0,
        }
    }
}

/// The factors of which the scenarios have more than one level; the endpoint if there is none.
pub(crate) fn factors(scenarios: &[&Scenario]) -> Vec<Factor> {
    let varied: BTreeSet<&String> = scenarios.iter().flat_map(|s| &s.varied).collect();
    let mut all = vec![Factor::Endpoint, Factor::Interval, Factor::Size];
    all.extend(varied.into_iter().cloned().map(Factor::Parameter));
    let several = |factor: &Factor| {
        let levels: BTreeSet<String> = scenarios.iter().map(|s| factor.level(s)).collect();
        levels.len() > 1
    };
    let mut found: Vec<Factor> = all.into_iter().filter(several).collect();
    if found.is_empty() {
        found.push(Factor::Endpoint);
    }
    found
}

/// Without trailing zeros: `25 ms`, `2.5 ms`, `1 s`.
pub(crate) fn plain_span(span: Span) -> String {
    let nanos = span.nanos();
    let (unit, name) = match nanos.unsigned_abs() {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        1_000.. => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let value = span.millis_f64() * 1e6 / unit;
    let digits = format!("{value:.3}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} {name}")
}
