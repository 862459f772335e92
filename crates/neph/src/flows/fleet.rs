//! From what was typed to the fleet that runs.

use neph_model::{Fleet, FleetEndpoint, ProbeKind};
use neph_probe::{FleetSpec, Target, TargetError};

use super::Args;
use crate::exit::Failure;
use crate::value::Secret;

/// Payload of a request, bytes: what neph's STAMP needs to tell everything.
const REQUEST: usize = 64;

/// The whole task.
pub(super) fn spec(args: &Args) -> Result<FleetSpec, Failure> {
    let endpoints = args
        .targets
        .iter()
        .map(|text| endpoint(text, args))
        .collect::<Result<Vec<_>, _>>()?;
    let flows = u64::from(args.flows);
    if flows < endpoints.len() as u64 {
        return Err(Failure::Usage(format!(
            "--flows {flows}: {} targets need a flow each at least",
            endpoints.len()
        )));
    }
    let spec = FleetSpec {
        fleet: Fleet {
            probe: ProbeKind::Udp,
            lanes: args.flows,
            endpoints,
            interval: args.interval,
            renewal: args.renew,
        },
        count: args.messages(),
        request_size: REQUEST,
        timeout: args.timeout,
        first_port: args.first_port,
        rate_cap: args.rate_cap,
        key: args.stamp_key.as_ref().map(Secret::bytes),
        priority: args.priority(),
        site: args.place(),
    };
    if spec.rate() > f64::from(spec.rate_cap) {
        return Err(Failure::Usage(format!(
            "{flows} flows with a message each {} are {:.0} messages a second, more than --rate-cap \
             {}; ask for fewer flows, a longer interval, or a higher cap if target and network bear it",
            args.interval,
            spec.rate(),
            args.rate_cap
        )));
    }
    Ok(spec)
}

fn endpoint(text: &str, args: &Args) -> Result<FleetEndpoint, Failure> {
    let whole = if text.contains("://") {
        text.to_owned()
    } else {
        format!("udp://{text}")
    };
    let target = Target::parse(&whole).map_err(Failure::usage)?;
    if target.kind() != ProbeKind::Udp {
        return Err(Failure::Usage(format!(
            "{text}: there are no fleets of {} flows; write udp://{}",
            target.kind(),
            target.host()
        )));
    }
    let address = target
        .resolve(args.version())
        .map_err(|error| match error {
            TargetError::Unresolved { .. } => Failure::refused(error),
            other => Failure::usage(other),
        })?;
    Ok(FleetEndpoint {
        name: target.to_string(),
        address,
    })
}
