//! `--traceroute`: the routers of the path, before the measurement.

use std::net::IpAddr;

use neph_model::{Permit, Stop, Target, TraceLimits, Traceroute};
use neph_probe::traceroute;

use super::Args;
use crate::exit::Failure;
use crate::resolving;
use neph_documents::ping::PlannedFlows;

/// Traces the route to `host`, or to the target where `host` is empty.
pub(super) fn trace(
    args: &Args,
    host: &str,
    planned_flows: &PlannedFlows,
    stop: &Stop,
) -> Result<Traceroute, Failure> {
    let destination = match (host, planned_flows.flows.first()) {
        ("", Some(main)) => main.spec.address.ip(),
        _ => resolve(args, host)?,
    };
    let limits = TraceLimits::default();
    let route = traceroute(
        destination,
        limits,
        &Permit::ANYTHING,
        args.placement().as_ref(),
        stop,
    )?;
    Ok(route.into_traceroute(0, host, destination))
}

fn resolve(args: &Args, host: &str) -> Result<IpAddr, Failure> {
    let target = Target::icmp(host).map_err(Failure::usage)?;
    let endpoint = resolving::find(&target, args.ip.version(), args.placement())?;
    Ok(endpoint.address.ip())
}

/// One line per hop. Routers reply with low priority: their RTTs are upper bounds.
pub(super) fn traceroute_text(route: &Traceroute) -> String {
    let mut text = format!("traceroute to {}", route.destination);
    for hop in &route.hops {
        let addresses: Vec<String> = hop.addresses.iter().map(IpAddr::to_string).collect();
        let name = if addresses.is_empty() {
            "*".to_owned()
        } else {
            addresses.join(" ")
        };
        let times: Vec<String> = hop.round_trips.iter().map(ToString::to_string).collect();
        text.push_str(&format!("\n{:>3}  {name}  {}", hop.ttl, times.join("  ")));
    }
    if let Some(length) = route.length().filter(|length| !length.is_sure()) {
        text.push_str(&format!(
            "\n     at most {} hops: the hop before the last was silent, the destination may be nearer",
            length.most
        ));
    }
    if !route.reached {
        text.push_str("\n     the destination did not answer");
    }
    text
}

#[cfg(test)]
mod tests {
    use neph_model::{Hop, Wall};

    use super::*;

    #[test]
    fn a_destination_behind_silent_hops_has_an_upper_bound() {
        let destination = IpAddr::from([10, 0, 0, 9]);
        let hop = |ttl, addresses: &[IpAddr]| Hop {
            ttl,
            addresses: addresses.to_vec(),
            round_trips: vec![neph_model::Span::from_millis(1); addresses.len()],
        };
        let router = IpAddr::from([10, 0, 0, 1]);
        let mut route = Traceroute {
            block: 0,
            endpoint: "e".to_owned(),
            site: None,
            destination,
            started: Wall::from_unix_nanos(0),
            hops: vec![hop(1, &[router]), hop(2, &[]), hop(3, &[destination])],
            reached: true,
            failure: None,
        };
        let route_text = traceroute_text(&route);
        assert!(
            route_text.ends_with(
                "at most 3 hops: the hop before the last was silent, the destination may be nearer"
            ),
            "{route_text}"
        );
        route.hops[1] = hop(2, &[router]);
        assert!(!traceroute_text(&route).contains("at most"), "{route:?}");
    }
}
