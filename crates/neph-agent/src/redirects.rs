//! A plan's `follow`: the target that an endpoint's redirects lead to.

use neph_model::{OrderFailed, Scenario};
use neph_probe::{Discovery, DiscoveryOptions, FlowSpec, FollowError, Resolving, follow};

use crate::failure::{failed, not_found};

/// With `follow`, leads the flow to the target that does not redirect.
pub(crate) fn follow_redirects(
    main: &mut FlowSpec,
    discovery: Discovery,
    scenario: &Scenario,
    options: &DiscoveryOptions,
) -> Result<(Discovery, Vec<String>), OrderFailed> {
    if scenario.parameters.follow() != Some(&true) {
        return Ok((discovery, Vec::new()));
    }
    let resolving = Resolving {
        site: main.site.clone(),
        permit: main.permit.clone(),
        ..Resolving::here(scenario.parameters.ip_version().copied())
    };
    let operation = || format!("follow '{}'", scenario.endpoint);
    let reached = follow(
        main.target.clone(),
        main.address,
        discovery,
        &resolving,
        options,
    );
    let reached = reached.map_err(|error| match error {
        FollowError::Target(error) => not_found(operation(), &error),
        error => failed(operation(), error),
    })?;
    main.target = reached.target;
    main.address = reached.address;
    Ok((reached.discovery, reached.redirects))
}
