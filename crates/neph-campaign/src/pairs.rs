//! Pairs: from which sites a plan measures an endpoint, so that what is measured once per block is
//! measured on the same paths. Pure.

use neph_model::{Scenario, ThroughputServer};

use crate::plan::Plan;

/// Where a scenario is measured from: the site that it names, else the lab's prober; this host as
/// it is without a lab.
pub(crate) fn site_of(plan: &Plan, scenario: &Scenario) -> Option<String> {
    let site = scenario.site().map(str::to_owned);
    let lab_site = || plan.lab.as_ref().map(|lab| lab.prober.value.clone());
    let agent_site = || plan.agents.first().map(|only| only.name.value.clone());
    site.or_else(lab_site).or_else(agent_site)
}

/// The sites that an endpoint is measured from, in the order of the matrix.
pub(crate) fn sites_to_endpoint(
    plan: &Plan,
    matrix: &[Scenario],
    endpoint: &str,
) -> Vec<Option<String>> {
    sites(plan, matrix, |scenario| scenario.endpoint == endpoint)
}

/// The sites that the endpoints on a server's host are measured from; every site of the plan for a
/// host of its own.
pub(crate) fn sites_to_server(
    plan: &Plan,
    matrix: &[Scenario],
    server: &ThroughputServer,
) -> Vec<Option<String>> {
    let endpoints = plan.endpoints.iter();
    let endpoint_names: Vec<&str> = endpoints
        .filter(|endpoint| endpoint.target.host() == server.host)
        .map(|endpoint| endpoint.name.as_str())
        .collect();
    let to_host = |scenario: &Scenario| endpoint_names.contains(&scenario.endpoint.as_str());
    let measured_sites = sites(plan, matrix, to_host);
    if measured_sites.is_empty() {
        return sites(plan, matrix, |_| true);
    }
    measured_sites
}

fn sites(
    plan: &Plan,
    matrix: &[Scenario],
    counts: impl Fn(&Scenario) -> bool,
) -> Vec<Option<String>> {
    let mut sites = Vec::new();
    for scenario in matrix.iter().filter(|scenario| counts(scenario)) {
        let site = site_of(plan, scenario);
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    sites
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use crate::expand::scenarios;
    use crate::plan::parse;

    #[test]
    fn each_endpoint_and_server_has_the_sites_that_measure_it() {
        let text = r#"
version = 1
name = "p"
interval = "1s"
messages = 1
[[endpoint]]
name = "both"
url = "ws://10.0.0.1"
from = ["east", "west"]
[[endpoint]]
name = "one"
url = "ws://10.0.0.2"
[[skip]]
endpoint = "both"
from = "west"
request_size = 64
[throughput]
tool = "iperf3"
server = ["10.0.0.2", "10.0.0.9"]
[lab]
topology = "t.toml"
prober = "home"
"#;
        let sites_of = |text: &str| {
            let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
            let matrix = scenarios(&plan);
            let servers = &plan.throughput.as_ref().expect("checks").servers;
            [
                sites_to_endpoint(&plan, &matrix, "both"),
                sites_to_endpoint(&plan, &matrix, "one"),
                sites_to_server(&plan, &matrix, &servers[0].value),
                sites_to_server(&plan, &matrix, &servers[1].value),
            ]
            .map(|sites| sites.into_iter().flatten().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(sites_of(text), ["east", "home", "home", "east home"]);
        let plan_text = text.replace("request_size = 64", "request_size = 64\ninterval = \"2s\"");
        let plan_text = plan_text.replace("interval = \"1s\"", "interval = [\"1s\", \"2s\"]");
        assert_eq!(
            sites_of(&plan_text),
            ["east west", "home", "home", "east west home"]
        );
    }
}
