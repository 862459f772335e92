//! A scenario: one fixation of all parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ByteSize, ProbeKind, ScenarioId, Span};

/// One fixation of all parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// What it fixes, hashed: equal in every campaign that fixes the same.
    pub id: ScenarioId,
    /// Its place in the plan's matrix, from 0.
    pub index: u32,
    /// The endpoint's name in the plan.
    pub endpoint: String,
    /// The endpoint's address as the plan writes it (`ws://host:port/path`).
    pub target: String,
    /// The kind of exchange.
    pub probe: ProbeKind,
    /// Time between two requests.
    pub interval: Span,
    /// Request payload.
    pub request_size: ByteSize,
    /// Reply payload.
    pub response_size: ByteSize,
    /// Messages per experiment, of each flow.
    pub messages: u64,
    /// Every other parameter that the plan fixes (`tls`, `new_connection`, `congestion` ...), by
    /// name, as the plan writes its value.
    pub parameters: BTreeMap<String, String>,
    /// The names in `parameters` that differ between scenarios of this plan: they belong in labels.
    pub varied: Vec<String>,
}

/// The parameter that makes a fleet of a scenario.
const FLOWS: &str = "flows";

impl Scenario {
    /// The parameter that names the site that a scenario is measured from.
    pub const SITE: &'static str = "from";

    /// The parameter that asks for a load at sites of the lab ...
    const STRESS: &'static str = "stress";
    /// ... and what it says where none is meant.
    pub const UNSTRESSED: &'static str = "none";

    /// The load that the plan itself makes meanwhile, as it writes it: `vm2 98%, vm3 98%`.
    pub fn stress(&self) -> Option<&str> {
        let asked = self.parameters.get(Self::STRESS).map(String::as_str);
        asked.filter(|load| *load != Self::UNSTRESSED)
    }

    /// Whether both fix the same, the load that the plan makes meanwhile aside.
    pub fn is_alike_but_for_stress(&self, other: &Self) -> bool {
        let rest = |one: &Self| {
            let mut rest = one.clone();
            rest.parameters.remove(Self::STRESS);
            (rest.id, rest.index) = (ScenarioId(0), 0);
            rest
        };
        rest(self) == rest(other)
    }

    /// The site that it is measured from, where the plan names one.
    pub fn site(&self) -> Option<&str> {
        self.parameters.get(Self::SITE).map(String::as_str)
    }

    /// How many flows it has at a time, if it is a fleet.
    pub fn flows(&self) -> Option<u32> {
        self.parameters.get(FLOWS)?.parse().ok()
    }

    /// Messages per experiment, of all flows. Saturates.
    pub fn messages_of_all_flows(&self) -> u64 {
        self.messages
            .saturating_mul(self.flows().unwrap_or(1).into())
    }

    /// `continent · every 100 ms · 10 KiB`, and what else varies in this plan. Nothing in it is
    /// rounded: 1472 and 1473 bytes may be two scenarios.
    pub fn label(&self) -> String {
        self.label_parts().join(" · ")
    }

    /// What the label consists of: the endpoint, `512 flows` of a fleet, `every 100 ms`, the request's size, and each level
    /// of what else varies.
    pub fn label_parts(&self) -> Vec<String> {
        let mut parts = vec![self.endpoint.clone()];
        parts.extend(self.flows().map(|flows| format!("{flows} flows")));
        parts.push(format!("every {}", self.interval.exact()));
        parts.push(self.request_size.exact());
        for name in self.varied.iter().filter(|name| *name != FLOWS) {
            if let Some(value) = self.parameters.get(name) {
                parts.push(format!("{name} {value}"));
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_told_where_one_is_meant_and_makes_no_other_scenario() {
        let scenario = |stress: &str, index: u32| Scenario {
            id: ScenarioId(u64::from(index)),
            index,
            endpoint: "a".to_owned(),
            target: "udp://192.0.2.1:8080".to_owned(),
            probe: ProbeKind::Udp,
            interval: Span::from_millis(10),
            request_size: ByteSize(64),
            response_size: ByteSize(64),
            messages: 10,
            parameters: [("stress".to_owned(), stress.to_owned())].into(),
            varied: vec!["stress".to_owned()],
        };
        let (without, with) = (scenario("none", 0), scenario("vm2 98%", 1));
        assert_eq!((without.stress(), with.stress()), (None, Some("vm2 98%")));
        assert!(with.is_alike_but_for_stress(&without));
        let mut larger = without;
        larger.request_size = ByteSize(65);
        assert!(!with.is_alike_but_for_stress(&larger));
    }

    #[test]
    fn labels_tell_apart_what_differs() {
        let scenario = |bytes: u64, nanos: i64| Scenario {
            id: ScenarioId(0),
            index: 0,
            endpoint: "a".to_owned(),
            target: "ws://192.0.2.1:8080/".to_owned(),
            probe: ProbeKind::Ws,
            interval: Span::from_nanos(nanos),
            request_size: ByteSize(bytes),
            response_size: ByteSize(64),
            messages: 10,
            parameters: BTreeMap::new(),
            varied: Vec::new(),
        };
        let label = |bytes, nanos| scenario(bytes, nanos).label();
        assert_eq!(label(1472, 25_000_000), "a · every 25 ms · 1472 B");
        assert_eq!(label(1473, 25_000_000), "a · every 25 ms · 1473 B");
        assert_eq!(label(1536, 1_000_100), "a · every 1.0001 ms · 1.5 KiB");
    }
}
