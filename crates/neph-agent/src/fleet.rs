//! From an order to the fleet that it asks for in the place of a main flow.

use std::collections::BTreeMap;

use neph_model::{
    Criteria, ExperimentOrder, Fleet, FleetEndpoint, MAX_FLEET_MESSAGES_A_SECOND,
    SYNS_A_SECOND_EACH, Scenario, Span,
};
use neph_probe::{FleetSpec, FlowSpec, ProbeError};

/// The fleet of an order whose scenario has one; `main` is the same scenario as a single flow.
pub(crate) fn fleet(order: &ExperimentOrder, main: &FlowSpec) -> Option<FleetSpec> {
    let scenario = &order.scenario;
    let endpoint = FleetEndpoint {
        name: main.name.clone(),
        address: main.address,
    };
    let fleet = flows_of(scenario, order.timeout, vec![endpoint])?;
    Some(FleetSpec {
        fleet,
        count: Some(scenario.messages),
        request_size: main.request_size,
        response_size: main.response_size,
        timeout: main.timeout,
        first_port: main.source_port,
        rate_cap: rate_cap(scenario),
        permit: main.permit.clone(),
        key: main.key.clone(),
        priority: main.priority,
        site: main.site.clone(),
        sharing: None,
    })
}

/// What the fleet of a scenario that has one consists of.
fn flows_of(scenario: &Scenario, timeout: Span, endpoints: Vec<FleetEndpoint>) -> Option<Fleet> {
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
pub fn check_files<'a>(
    scenarios: impl IntoIterator<Item = (&'a Scenario, u32)>,
    timeout: Span,
) -> Result<(), ProbeError> {
    let mut together: BTreeMap<u32, Vec<Fleet>> = BTreeMap::new();
    for (scenario, group) in scenarios {
        if let Some(fleet) = flows_of(scenario, timeout, Vec::new()) {
            together.entry(group).or_default().push(fleet);
        }
    }
    for fleets in together.values() {
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
    fn syns_are_capped_by_the_plan_also_while_catching_up() {
        let cap = |url: &str, more: &str| {
            let text = format!(
                "version = 1\nname = \"p\"\nduration = \"1min\"\ninterval = \"1s\"\nflows = 100\n\
                 {more}\n[[endpoint]]\nname = \"a\"\nurl = \"{url}\"\n"
            );
            let plan = parse(&Source::new("p.toml", text)).expect("a good plan");
            rate_cap(&scenarios(&plan)[0])
        };
        assert_eq!(cap("syn://10.0.0.1:80", ""), SYNS_A_SECOND_EACH);
        assert_eq!(cap("syn://10.0.0.1:80", "rate_cap = 150"), 150);
        assert_eq!(cap("udp://10.0.0.1", ""), MAX_FLEET_MESSAGES_A_SECOND);
    }
}
