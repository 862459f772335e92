//! From an order to the fleet that it asks for in the place of a main flow.

use neph_model::{Criteria, Fleet, FleetEndpoint, Span};
use neph_probe::{FleetSpec, FlowSpec};
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
        rate_cap: MOST_FLEET_MESSAGES_A_SECOND,
        key: main.key.clone(),
        priority: main.priority,
        site: main.site.clone(),
    }))
}
