//! Flows in addition to the main flow: ICMP echo to its host and to the destinations of the plan.

use std::net::SocketAddr;

use neph_model::{ExperimentOrder, FlowIndex, FlowRole, Permit, Target};
use neph_probe::{FlowSpec, Placement, Resolve, Resolving, Schedule, TargetError};

use super::{ECHO, Missing};

/// ICMP echo to the endpoint's host and to every ping destination. One that cannot be resolved is
/// left out, and returned: its messages would all be failures of the resolver.
pub(super) fn add_echo_flows(order: &ExperimentOrder, specs: &mut Vec<FlowSpec>) -> Vec<Missing> {
    let main = &specs[0];
    let length = main
        .schedule
        .interval
        .times(i64::try_from(order.scenario.messages).unwrap_or(i64::MAX));
    let mut echoes = Vec::new();
    let is_transfer = order.scenario.measure().is_transfer();
    let has_companion = is_transfer || !main.target.kind().is_echo();
    if let (Some(interval), true) = (order.companion, has_companion) {
        let host = main.address.ip().to_string();
        echoes.push((FlowRole::Companion, main.name.clone(), host, interval));
    }
    for ping in &order.pings {
        let (name, host) = (ping.name.clone(), ping.host.clone());
        echoes.push((FlowRole::PingDestination, name, host, ping.interval));
    }
    let template = main.clone();
    let mut missing = Vec::new();
    for (role, name, host, interval) in echoes {
        let main_address = (role == FlowRole::Companion).then_some(template.address);
        let (target, address) = match echo_to(
            &host,
            main_address,
            template.site.as_ref(),
            &template.permit,
        ) {
            Ok(target) => target,
            Err(error) => {
                let reason = error.to_string();
                missing.push(Missing { name, reason });
                continue;
            }
        };
        let count = u64::try_from(length.nanos() / interval.nanos().max(1))
            .unwrap_or(0)
            .max(1);
        specs.push(FlowSpec {
            index: FlowIndex(u32::try_from(specs.len()).unwrap_or(u32::MAX)),
            role,
            name,
            target,
            address,
            schedule: Schedule {
                interval,
                count: Some(count),
                duration: None,
            },
            request_size: ECHO,
            response_size: ECHO,
            source_port: None,
            key: None,
            tcp_stats: None,
            reflector: false,
            ..template.clone()
        });
    }
    missing
}

/// Where an echo to `host` goes.
pub(crate) fn echo_to(
    host: &str,
    main_address: Option<SocketAddr>,
    site: Option<&Placement>,
    permit: &Permit,
) -> Result<(Target, SocketAddr), TargetError> {
    let target = Target::icmp(host)?;
    if let Some(mut address) = main_address {
        // The whole address: a link-local one is none without its zone.
        address.set_port(0);
        return Ok((target, address));
    }
    let resolving = Resolving {
        site: site.cloned(),
        permit: permit.clone(),
        ..Resolving::here(None)
    };
    let address = target.find(&resolving)?.address;
    Ok((target, address))
}
