//! The specification of a fleet, from the options.

use std::collections::BTreeSet;

use neph_model::{
    Fleet, FleetEndpoint, Permit, ProbeKind, Scheme, Target, bracketed, of_many_hosts,
};
use neph_probe::{FleetSpec, Placement, SynSchedule};
use neph_text::did_you_mean;

use super::Args;
use crate::exit::Failure;
use crate::resolving;

/// Payload of a request, and of a reply that its request asks for, bytes. STAMP is raised to what a
/// reflector's timestamps need.
const PAYLOAD_SIZE: usize = 64;

/// The complete specification.
pub(super) fn build_spec(args: &Args) -> Result<FleetSpec, Failure> {
    let parsed_targets = args
        .targets
        .iter()
        .map(|text| resolve_endpoint(text, args))
        .collect::<Result<Vec<_>, _>>()?;
    let (kinds, endpoints): (Vec<ProbeKind>, Vec<FleetEndpoint>) =
        parsed_targets.into_iter().unzip();
    let probe = kinds[0];
    if let Some(other) = kinds.iter().find(|kind| **kind != probe) {
        return Err(Failure::Usage(format!(
            "{probe} and {other} flows in one fleet; measure them one after the other"
        )));
    }
    check_key(args, probe)?;
    check_endpoints(args, &endpoints)?;
    check_ports(args)?;
    let spec = FleetSpec {
        fleet: Fleet {
            probe,
            slots: args.flows,
            endpoints,
            interval: args.interval,
            lifetime: args.renew,
            criteria: Some(args.criteria()),
        },
        count: args.messages(),
        request_size: PAYLOAD_SIZE,
        response_size: PAYLOAD_SIZE,
        timeout: args.timeout,
        first_port: args.first_port,
        rate_cap: choose_rate_cap(args, probe)?,
        permit: Permit::ANYTHING,
        key: args.stamp_key.clone(),
        priority: args.priority(),
        site: args.placement(),
        sharing: None,
    };
    if spec.rate() > f64::from(spec.rate_cap) {
        return Err(Failure::Usage(format!(
            "{} flows with a message each {} are {:.0} messages a second, more than --rate-cap \
             {}; ask for fewer flows, a longer interval, or a higher cap if target and network allow it",
            args.flows,
            args.interval,
            spec.rate(),
            spec.rate_cap
        )));
    }
    Ok(spec)
}

/// Refuses a key for protocols other than STAMP.
fn check_key(args: &Args, probe: ProbeKind) -> Result<(), Failure> {
    if !probe.properties().has_key && args.stamp_key.is_some() {
        return Err(Failure::Usage(format!(
            "--stamp-key: {probe} flows do not use STAMP; omit it, or measure udp:// flows"
        )));
    }
    Ok(())
}

/// Checks that one fleet can measure all these targets.
fn check_endpoints(args: &Args, endpoints: &[FleetEndpoint]) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    if let Some(duplicate) = endpoints
        .iter()
        .find(|endpoint| !names.insert(&endpoint.name))
    {
        return Err(Failure::Usage(format!(
            "target {} is there twice; name each once",
            duplicate.name
        )));
    }
    let flows = u64::from(args.flows);
    if flows < endpoints.len() as u64 {
        return Err(Failure::Usage(format!(
            "--flows {flows}: {} targets need at least one flow each",
            endpoints.len()
        )));
    }
    let is_v4 = |endpoint: &&FleetEndpoint| endpoint.address.is_ipv4();
    let (v4, v6): (Vec<_>, Vec<_>) = endpoints.iter().partition(is_v4);
    if let (Some(v4), Some(v6)) = (v4.first(), v6.first()) {
        return Err(Failure::Usage(format!(
            "{} has an IPv4 address and {} an IPv6 one; measure them one after the other",
            v4.name, v6.name
        )));
    }
    Ok(())
}

/// Checks that there are enough ports from `--first-port` on.
fn check_ports(args: &Args) -> Result<(), Failure> {
    let Some(first_port) = args.first_port else {
        return Ok(());
    };
    let available_ports = u32::from(u16::MAX - first_port) + 1;
    if args.flows <= available_ports {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--first-port {first_port}: only {available_ports} ports are left there for {} flows; give a lower one, or \
         fewer flows",
        args.flows
    )))
}

/// Largest rate in messages per second, unless a higher one is requested: half of a reflector's
/// default limit, so that 50,000 flows can catch up after a short delay. SYNs have a far lower limit,
/// in total and per target, since a target may take them for an attack.
fn choose_rate_cap(args: &Args, probe: ProbeKind) -> Result<u32, Failure> {
    if !probe.properties().may_look_like_attack {
        return Ok(args.rate_cap.unwrap_or(60_000));
    }
    let schedule = SynSchedule {
        flows: args.flows,
        targets: u32::try_from(args.targets.len()).unwrap_or(u32::MAX),
        interval: args.interval,
    };
    schedule.check(args.rate_cap).map_err(Failure::usage)
}

fn resolve_endpoint(text: &str, args: &Args) -> Result<(ProbeKind, FleetEndpoint), Failure> {
    let complete_text = if text.contains("://") {
        text.to_owned()
    } else {
        format!("udp://{}", bracketed(text))
    };
    let scheme = complete_text.split("://").next().unwrap_or_default();
    if Scheme::from_name(scheme).is_none() {
        return Err(Failure::Usage(format!(
            "{text}: '{scheme}' is no scheme of flows, which are udp, syn and tcp; {}",
            did_you_mean(scheme, &["udp", "syn", "tcp"])
        )));
    }
    let target = Target::parse(&complete_text).map_err(Failure::usage)?;
    if !target.kind().properties().has_fleets || target.is_secure() {
        return Err(Failure::Usage(format!(
            "{text}: there are no fleets of {} flows; write udp://, syn:// or tcp:// before {}",
            target.kind(),
            target.host()
        )));
    }
    let site = args.site.as_ref().map(Placement::with_name);
    let address = resolving::find(&target, args.ip.version(), site)?.address;
    if let Some(message) = of_many_hosts(address.ip()) {
        return Err(Failure::Usage(format!(
            "target {} is {message}, and flows go to one host each; give the address of one host",
            address.ip()
        )));
    }
    let endpoint = FleetEndpoint {
        name: target.to_string(),
        address,
    };
    Ok((target.kind(), endpoint))
}
