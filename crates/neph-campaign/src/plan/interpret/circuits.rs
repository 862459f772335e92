//! Circuits and networks in a plan: each circuit over each network is one endpoint from one site.

use neph_model::{Parameter, ParameterName};
use neph_text::{Fault, Problems};

use super::super::model::Endpoint;

/// Whether circuits over networks can be compared.
pub(super) fn check(endpoints: &[Endpoint], problems: &Problems<'_>) {
    let mut known_circuits: Vec<(&str, &str, &str)> = Vec::new();
    for endpoint in endpoints {
        let add_fault = |message: String, remedy: &str| {
            problems.add(endpoint.address_span.clone(), Fault::new(message, remedy));
        };
        let name = endpoint.name.as_str();
        let circuits: Vec<&String> = endpoint.axes.values(Parameter::circuit).collect();
        let networks: Vec<&String> = endpoint.axes.values(Parameter::network).collect();
        let (circuit, network) = match (circuits.as_slice(), networks.as_slice()) {
            ([], []) => continue,
            ([circuit], [network]) => (circuit.as_str(), network.as_str()),
            ([], _) => {
                let message = format!("endpoint '{name}' has a network and no circuit");
                add_fault(
                    message,
                    "add circuit = \"ams-lju\": the sites between which it is measured",
                );
                continue;
            }
            (_, []) => {
                let message = format!("endpoint '{name}' has a circuit and no network");
                add_fault(message, "add network = \"underlay\": what carries it");
                continue;
            }
            _ => {
                let message = format!("endpoint '{name}' has several circuits or networks");
                add_fault(message, "write an endpoint for each");
                continue;
            }
        };
        let sites = endpoint.axes.parameters.get(&ParameterName::Site);
        if sites.is_some_and(|sites| sites.len() > 1) {
            let message = format!("circuit '{circuit}' is measured from several sites");
            add_fault(
                message,
                "write an endpoint with a circuit of its own for each site",
            );
        }
        let duplicate = known_circuits
            .iter()
            .find(|(_, other_circuit, other_network)| {
                (*other_circuit, *other_network) == (circuit, network)
            });
        if let Some((other, ..)) = duplicate {
            let message =
                format!("'{name}' and '{other}' are the same circuit over the same network");
            add_fault(
                message,
                "give each direction and each path a circuit of its own",
            );
        }
        known_circuits.push((name, circuit, network));
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use crate::plan::parse;

    const PLAN: &str = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 6\n\
        [[site]]\nname = \"ams\"\nagent = \"a\"\n[[site]]\nname = \"lju\"\nagent = \"l\"\n\
        [[endpoint]]\nname = \"one\"\nurl = \"udp://10.0.0.1\"\nfrom = \"ams\"\n\
        circuit = \"a-l\"\nnetwork = \"underlay\"\n\
        [[endpoint]]\nname = \"two\"\nurl = \"udp://10.0.0.2\"\nfrom = \"ams\"\n\
        circuit = \"a-l\"\nnetwork = \"docker\"\n";

    #[test]
    fn each_circuit_and_network_has_one_endpoint_and_one_site() {
        parse(&Source::new("p.toml", PLAN)).expect("a good plan");
        for (from, to, part) in [
            (
                "network = \"docker\"",
                "network = \"underlay\"",
                "the same circuit",
            ),
            ("network = \"docker\"\n", "", "and no network"),
            (
                "circuit = \"a-l\"\nnetwork = \"docker\"",
                "network = \"docker\"",
                "and no circuit",
            ),
            (
                "network = \"docker\"",
                "network = [\"docker\", \"vxlan\"]",
                "several circuits or networks",
            ),
            (
                "url = \"udp://10.0.0.2\"\nfrom = \"ams\"",
                "url = \"udp://10.0.0.2\"\nfrom = [\"ams\", \"lju\"]",
                "from several sites",
            ),
        ] {
            let text = PLAN.replace(from, to);
            assert_ne!(text, PLAN, "{from}");
            let problems = parse(&Source::new("p.toml", text)).expect_err("a mistake");
            assert_eq!(problems.len(), 1, "{problems:#?}");
            assert!(problems[0].to_string().contains(part), "{}", problems[0]);
        }
    }
}
