//! A scenario: one value for every parameter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ByteSize, Measure, ParameterName, Parameters, ProbeKind, ScenarioId, Span, Stress, Targets,
};

/// A scenario: one value for every parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Id of the scenario: a hash of its values, equal in all campaigns with the same values.
    pub id: ScenarioId,
    /// Place in the plan's matrix, from 0.
    pub index: u32,
    /// Name of the endpoint in the plan.
    pub endpoint: String,
    /// The targets, which determine the kind of probe.
    #[serde(flatten)]
    pub target: Targets,
    /// Time between two requests, nanoseconds.
    pub interval: Span,
    /// Request payload without protocol headers, bytes.
    pub request_size: ByteSize,
    /// Requested reply payload, bytes. A neph reflector sends at least the size of its timestamps.
    pub response_size: ByteSize,
    /// Messages per experiment and flow.
    pub messages: u64,
    /// All other parameters of the plan.
    pub parameters: Parameters,
    /// The parameters that differ between the scenarios of this plan: labels contain them.
    pub varied: Vec<ParameterName>,
}

impl Scenario {
    /// The kind of exchange.
    pub fn probe(&self) -> ProbeKind {
        self.target.probe()
    }

    /// The text of the load that the plan itself generates meanwhile; `None` without one.
    pub fn stress(&self) -> Option<&str> {
        let requested = self.parameters.stress();
        let made = requested.filter(|stress| !stress.loads().is_empty());
        made.map(Stress::title)
    }

    /// A parameter's level as labels have it: `tls 1.3`; of a load that has a name the name alone.
    pub fn level(&self, name: ParameterName) -> Option<String> {
        let parameter = self.parameters.get(name)?;
        // What is measured names itself, and so does a load that has a name.
        let measure = parameter.measure().map(Measure::to_string);
        let stress_name = parameter.stress().and_then(Stress::name);
        let measure_name = measure.or_else(|| stress_name.map(str::to_owned));
        Some(measure_name.unwrap_or_else(|| format!("{name} {}", parameter.text())))
    }

    /// Whether both have the same values, except for the load that the plan generates meanwhile.
    pub fn is_identical_but_for_stress(&self, other: &Self) -> bool {
        let without_stress = |scenario: &Self| {
            let mut without_stress = scenario.clone();
            without_stress.parameters.remove(ParameterName::Stress);
            (without_stress.id, without_stress.index) = (ScenarioId(0), 0);
            without_stress
        };
        without_stress(self) == without_stress(other)
    }

    /// What is measured.
    pub fn measure(&self) -> Measure {
        self.parameters.measure().copied().unwrap_or_default()
    }

    /// The site that it is measured from, where the plan names one.
    pub fn site(&self) -> Option<&str> {
        self.parameters.site().map(String::as_str)
    }

    /// The season that it is measured in, where the plan names one.
    pub fn season(&self) -> Option<&str> {
        self.parameters.season().map(String::as_str)
    }

    /// How many flows it has at a time, if it is a fleet.
    pub fn flows(&self) -> Option<u32> {
        self.parameters.flows().map(|flows| flows.get())
    }

    /// Messages per experiment, of all flows. Saturates.
    pub fn messages_of_all_flows(&self) -> u64 {
        self.messages
            .saturating_mul(self.flows().unwrap_or(1).into())
    }

    /// `continent · every 100 ms · 10 KiB`, and the other parameters that vary in this plan.
    /// Nothing in it is rounded: 1472 and 1473 bytes may be two scenarios.
    pub fn label(&self) -> String {
        self.label_parts().join(" · ")
    }

    /// The labels of scenarios that are shown together: without the parts that all of them share. A
    /// single scenario has its whole label.
    pub fn labels_apart(scenarios: &[Self]) -> Vec<String> {
        let shared = Self::shared_parts(scenarios);
        let label = |scenario: &Self| {
            let mut parts = scenario.label_parts();
            parts.retain(|part| !shared.contains(part));
            if parts.is_empty() {
                scenario.endpoint.clone()
            } else {
                parts.join(" · ")
            }
        };
        scenarios.iter().map(label).collect()
    }

    /// What the labels of all these scenarios have in common, in the order of labels; nothing of a
    /// single scenario.
    pub fn shared_parts(scenarios: &[Self]) -> Vec<String> {
        let [first, others @ ..] = scenarios else {
            return Vec::new();
        };
        let others: Vec<Vec<String>> = others.iter().map(Self::label_parts).collect();
        let mut parts = first.label_parts();
        parts.retain(|part| others.iter().all(|other| other.contains(part)));
        if others.is_empty() { Vec::new() } else { parts }
    }

    /// The parts of the label: the endpoint, `512 flows` of a fleet, `every 100 ms`, the request's
    /// size, and each level of other variables. A transfer has its seconds instead of interval and
    /// size.
    pub fn label_parts(&self) -> Vec<String> {
        let mut parts = vec![self.endpoint.clone()];
        parts.extend(self.flows().map(|flows| format!("{flows} flows")));
        let measure = self.measure();
        if measure.is_transfer() {
            parts.push(measure.to_string());
            parts.push(format!("{} s", self.messages));
        } else {
            parts.push(format!("every {}", self.interval.exact()));
            parts.push(self.request_size.exact());
        }
        let varied = self.varied.iter().copied();
        parts.extend(
            varied
                .filter(|name| !matches!(name, ParameterName::Flows | ParameterName::Measure))
                .filter_map(|name| self.level(name)),
        );
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameter;

    fn load(text: &str) -> Parameter {
        Parameter::Stress(text.parse().expect("a load"))
    }

    #[test]
    fn a_load_is_displayed_with_its_name_and_does_not_change_the_scenario() {
        let scenario = |stress: &str, index: u32| Scenario {
            id: ScenarioId(u64::from(index)),
            index,
            endpoint: "a".to_owned(),
            target: Targets::read("udp://192.0.2.1:8080", ProbeKind::Udp),
            interval: Span::from_millis(10),
            request_size: ByteSize(64),
            response_size: ByteSize(64),
            messages: 10,
            parameters: [load(stress)].into(),
            varied: vec![ParameterName::Stress],
        };
        let (without, with) = (scenario("none", 0), scenario("vm2 98%", 1));
        assert_eq!((without.stress(), with.stress()), (None, Some("vm2 98%")));
        assert!(with.is_identical_but_for_stress(&without));
        let mut larger = without;
        larger.request_size = ByteSize(65);
        assert!(!with.is_identical_but_for_stress(&larger));
    }

    fn plain(endpoint: &str) -> Scenario {
        Scenario {
            id: ScenarioId(0),
            index: 0,
            endpoint: endpoint.to_owned(),
            target: Targets::read("udp://192.0.2.1:8080", ProbeKind::Udp),
            interval: Span::from_millis(10),
            request_size: ByteSize(64),
            response_size: ByteSize(64),
            messages: 10,
            parameters: Parameters::new(),
            varied: Vec::new(),
        }
    }

    #[test]
    fn labels_omit_parameters_shared_by_all_scenarios() {
        let mut larger = plain("b");
        larger.request_size = ByteSize(1024);
        let scenarios = [plain("a"), plain("b"), larger];
        let labels = Scenario::labels_apart(&scenarios);
        assert_eq!(labels, ["a · 64 B", "b · 64 B", "b · 1 KiB"]);
        assert_eq!(Scenario::shared_parts(&scenarios), ["every 10 ms"]);
        assert_eq!(
            Scenario::labels_apart(&scenarios[..1]),
            ["a · every 10 ms · 64 B"]
        );
        assert!(Scenario::shared_parts(&scenarios[..1]).is_empty());
        // The same twice: the endpoint remains.
        assert_eq!(
            Scenario::labels_apart(&[plain("a"), plain("a")]),
            ["a", "a"]
        );
    }

    #[test]
    fn a_named_load_is_labelled_by_its_name() {
        let mut scenario = plain("a");
        scenario.varied = vec![ParameterName::Stress];
        scenario
            .parameters
            .insert(load("busy neighbour = vm2 98%, vm3 98%"));
        assert_eq!(scenario.label(), "a · every 10 ms · 64 B · busy neighbour");
        assert_eq!(scenario.stress(), Some("busy neighbour"));
    }

    #[test]
    fn labels_distinguish_scenarios_with_similar_values() {
        let scenario = |bytes: u64, nanos: i64| Scenario {
            id: ScenarioId(0),
            index: 0,
            endpoint: "a".to_owned(),
            target: Targets::read("ws://192.0.2.1:8080/", ProbeKind::Ws),
            interval: Span::from_nanos(nanos),
            request_size: ByteSize(bytes),
            response_size: ByteSize(64),
            messages: 10,
            parameters: Parameters::new(),
            varied: Vec::new(),
        };
        let label = |bytes, nanos| scenario(bytes, nanos).label();
        assert_eq!(label(1472, 25_000_000), "a · every 25 ms · 1472 B");
        assert_eq!(label(1473, 25_000_000), "a · every 25 ms · 1473 B");
        assert_eq!(label(1536, 1_000_100), "a · every 1.0001 ms · 1.5 KiB");
    }
}
