//! From an order to the fleet that it asks for in the place of a main flow.

use std::collections::BTreeMap;

use neph_model::{
    Criteria, ExperimentOrder, Fleet, FleetEndpoint, MAX_FLEET_MESSAGES_A_SECOND,
    SYNS_A_SECOND_EACH, Scenario, Span,
};
use neph_probe::{FleetSpec, FlowSpec, ProbeError};

/// The fleet of an order whose scenario has one; `main` is the same scenario as a single flow.
pub(crate) fn build_fleet_spec(order: &ExperimentOrder, main_flow: &FlowSpec) -> Option<FleetSpec> {
    let scenario = &order.scenario;
    let endpoint = FleetEndpoint {
        name: main_flow.name.clone(),
        address: main_flow.address,
    };
    let fleet = fleet_of_scenario(scenario, order.timeout, vec![endpoint])?;
    Some(FleetSpec {
        fleet,
        count: Some(scenario.messages),
        request_size: main_flow.request_size,
        response_size: main_flow.response_size,
        timeout: main_flow.timeout,
        first_port: main_flow.source_port,
        rate_cap: rate_cap(scenario),
        permit: main_flow.permit.clone(),
        key: main_flow.key.clone(),
        priority: main_flow.priority,
        site: main_flow.site.clone(),
        sharing: None,
    })
}

/// What the fleet of a scenario that has one consists of.
fn fleet_of_scenario(
    scenario: &Scenario,
    timeout: Span,
    endpoints: Vec<FleetEndpoint>,
) -> Option<Fleet> {
    Some(Fleet {
        probe: scenario.probe(),
        slots: scenario.flows()?,
        endpoints,
        interval: scenario.interval,
        lifetime: scenario.parameters.lifetime().map(|life| life.0),
        criteria: Some(Criteria::after(timeout)),
    })
}

/// Whether this process may open the files of all fleets that run at the same time: scenarios of one
/// group, whose messages count as lost after `timeout`.
///
/// # Errors
/// Where it may not: a sentence with the remedy.
pub fn check_open_file_limit<'a>(
    scenarios: impl IntoIterator<Item = (&'a Scenario, u32)>,
    timeout: Span,
) -> Result<(), ProbeError> {
    let mut fleets_by_group: BTreeMap<u32, Vec<Fleet>> = BTreeMap::new();
    for (scenario, group) in scenarios {
        if let Some(fleet) = fleet_of_scenario(scenario, timeout, Vec::new()) {
            fleets_by_group.entry(group).or_default().push(fleet);
        }
    }
    for fleets in fleets_by_group.values() {
        let fleets: Vec<_> = fleets.iter().map(|fleet| (fleet, timeout)).collect();
        neph_probe::check_files(&fleets)?;
    }
    Ok(())
}

/// Messages a second that the sender never exceeds, also when it catches up after a stall.
fn rate_cap(scenario: &Scenario) -> u32 {
    if !scenario.probe().properties().may_look_like_attack {
        return MAX_FLEET_MESSAGES_A_SECOND;
    }
    let allowed = scenario.parameters.rate_cap();
    allowed.map_or(SYNS_A_SECOND_EACH, |cap| cap.get())
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use neph_campaign::expand::scenarios;
    use neph_campaign::plan::parse;

    #[test]
    fn the_syn_rate_cap_of_the_plan_also_applies_while_catching_up() {
        let cap = |url: &str, extra_toml: &str| {
            let text = format!(
                "version = 1\nname = \"p\"\nduration = \"1min\"\ninterval = \"1s\"\nflows = 100\n\
                 {extra_toml}\n[[endpoint]]\nname = \"a\"\nurl = \"{url}\"\n"
            );
            let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
            rate_cap(&scenarios(&plan)[0])
        };
        assert_eq!(cap("syn://10.0.0.1:80", ""), SYNS_A_SECOND_EACH);
        assert_eq!(cap("syn://10.0.0.1:80", "rate_cap = 150"), 150);
        assert_eq!(cap("udp://10.0.0.1", ""), MAX_FLEET_MESSAGES_A_SECOND);
    }
}
