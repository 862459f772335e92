//! From an order to the fleet that it asks for in the place of a main flow.

use neph_model::{Criteria, Fleet, FleetEndpoint, ProbeKind, Scenario, Span};
use neph_probe::{FleetSpec, FlowSpec, SYNS_A_SECOND_EACH};
use neph_text::parse_duration;

use super::failed;
use crate::carrier::{CarryError, ExperimentOrder};
use crate::plan::MOST_FLEET_MESSAGES_A_SECOND;

/// The fleet of an order whose scenario has one; `main` is the same scenario as a single flow.
pub(super) fn fleet(
    order: &ExperimentOrder,
    main: &FlowSpec,
) -> Result<Option<FleetSpec>, CarryError> {
    let scenario = &order.scenario;
    let Some(lanes) = scenario.flows() else {
        return Ok(None);
    };
    let renewal = scenario.parameters.get("renewal");
    let renewal = renewal
        .map(|text| parse_duration(text).map(Span::from_nanos))
        .transpose()
        .map_err(|fault| failed("read how long a flow lives", format!("{fault:?}")))?;
    Ok(Some(FleetSpec {
        fleet: Fleet {
            probe: main.target.kind(),
            lanes,
            endpoints: vec![FleetEndpoint {
                name: main.name.clone(),
                address: main.address,
            }],
            interval: scenario.interval,
            renewal,
            criteria: Some(Criteria::after(order.timeout)),
        },
        count: Some(scenario.messages),
        request_size: main.request_size,
        timeout: main.timeout,
        first_port: main.source_port,
        rate_cap: rate_cap(scenario),
        key: main.key.clone(),
        priority: main.priority,
        site: main.site.clone(),
    }))
}

/// Messages a second that the sender never exceeds, also when it catches up after a stall.
fn rate_cap(scenario: &Scenario) -> u32 {
    if scenario.probe != ProbeKind::Syn {
        return MOST_FLEET_MESSAGES_A_SECOND;
    }
    let allowed = scenario.parameters.get("rate_cap");
    let allowed = allowed.and_then(|cap| cap.parse().ok());
    allowed.unwrap_or(SYNS_A_SECOND_EACH)
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use crate::expand::scenarios;
    use crate::plan::parse;

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
        assert_eq!(cap("udp://10.0.0.1", ""), MOST_FLEET_MESSAGES_A_SECOND);
    }
}
