//! Factors: parameters that differ between the scenarios of a campaign.

use std::collections::BTreeSet;

use neph_model::{ParameterName, Scenario};

/// A parameter that a plan varies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Factor {
    /// The endpoint that is measured.
    Endpoint,
    /// Time between two requests.
    Interval,
    /// Request size.
    Size,
    /// Any other parameter.
    Parameter(ParameterName),
}

impl Factor {
    /// The name on screen.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Interval => "interval",
            Self::Size => "size",
            Self::Parameter(name) => name.as_str(),
        }
    }

    /// The name in the title of a figure.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Interval => "interval",
            Self::Size => "request size",
            Self::Parameter(ParameterName::Site) => "site",
            Self::Parameter(ParameterName::Stress) => "background load",
            Self::Parameter(name) => name.as_str(),
        }
    }

    /// Whether the factor is a place (endpoint or site). Another place is another network.
    pub(crate) fn is_place(&self) -> bool {
        match self {
            Self::Endpoint => true,
            Self::Parameter(name) => matches!(name, ParameterName::Site),
            Self::Interval | Self::Size => false,
        }
    }

    /// The level in a scenario, as text. Levels are compared by this text, so nothing is rounded.
    pub fn level(&self, scenario: &Scenario) -> String {
        match self {
            Self::Endpoint => scenario.endpoint.clone(),
            Self::Interval => format!("every {}", scenario.interval.exact()),
            Self::Size => scenario.request_size.exact(),
            Self::Parameter(name) => {
                let level = scenario.level(*name);
                level.unwrap_or_else(|| format!("no {name}"))
            }
        }
    }

    /// Sort key of the levels: numbers by value, the others in the order of the plan.
    pub(crate) fn rank(&self, scenario: &Scenario) -> u64 {
        match self {
            Self::Interval => u64::try_from(scenario.interval.nanos()).unwrap_or(0),
            Self::Size => scenario.request_size.bytes(),
            Self::Endpoint | Self::Parameter(_) => 0,
        }
    }
}

/// The factors with more than one level in the scenarios; the endpoint if there is none.
pub fn factors(scenarios: &[&Scenario]) -> Vec<Factor> {
    let varied: BTreeSet<ParameterName> = scenarios
        .iter()
        .flat_map(|s| s.varied.iter().copied())
        .collect();
    let mut candidates = vec![Factor::Endpoint, Factor::Interval, Factor::Size];
    candidates.extend(varied.into_iter().map(Factor::Parameter));
    let several = |factor: &Factor| {
        let levels: BTreeSet<String> = scenarios.iter().map(|s| factor.level(s)).collect();
        levels.len() > 1
    };
    let mut factors: Vec<Factor> = candidates.into_iter().filter(several).collect();
    if factors.is_empty() {
        factors.push(Factor::Endpoint);
    }
    factors
}

#[cfg(test)]
mod tests {
    use neph_model::{
        ByteSize, Known, Parameter, ProbeKind, ScenarioId, Span, Targets, TlsVersion,
    };

    use super::*;

    #[test]
    fn an_endpoint_and_a_site_are_places() {
        let site = Factor::Parameter(ParameterName::Site);
        assert!(Factor::Endpoint.is_place() && site.is_place());
        let season = Factor::Parameter(ParameterName::Season);
        assert!(
            ![Factor::Interval, Factor::Size, season]
                .iter()
                .any(Factor::is_place)
        );
    }

    #[test]
    fn sizes_that_differ_by_one_byte_are_two_levels() {
        let scenario = |bytes: u64| Scenario {
            id: ScenarioId(bytes),
            index: 0,
            endpoint: "a".to_owned(),
            target: Targets::read("ws://192.0.2.1:8080/", ProbeKind::Ws),
            interval: Span::from_millis(25),
            request_size: ByteSize(bytes),
            response_size: ByteSize(64),
            messages: 10,
            parameters: [Parameter::Tls(Known::Known(TlsVersion::V13))].into(),
            varied: Vec::new(),
        };
        let (smaller, other) = (scenario(1472), scenario(1473));
        assert_eq!(factors(&[&smaller, &other]), [Factor::Size]);
        assert_eq!(Factor::Size.level(&other), "1473 B");
        let level = |name| Factor::Parameter(name).level(&smaller);
        assert_eq!(level(ParameterName::Tls), "tls 1.3");
        assert_eq!(level(ParameterName::Season), "no season");
    }
}
