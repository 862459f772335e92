//! What each transfer of a fleet's endpoint asks for: where, from which ports, by which protocol.

use neph_load::TransferSpec;
use neph_model::{Span, Target};
use neph_probe::{Asking, FleetSpec, ProbeError, SmallTransfer, Trust};

use super::Args;
use crate::exit::Failure;

/// Between the beginnings of two transfers, at least: one after the other, so that none waits for
/// another.
const PAUSE: Span = Span::from_millis(5);

/// HTTP takes two round trips, to connect and to ask, as most transfers do; neph reflect answers it
/// on the port of all its protocols.
pub(super) fn target(spec: &FleetSpec, endpoint: usize) -> Result<Target, Failure> {
    let endpoint = &spec.fleet.endpoints[endpoint];
    let place = endpoint.name.split_once("://");
    let place = place.map_or(endpoint.name.as_str(), |(_, place)| place);
    Target::parse(&format!("http://{place}")).map_err(Failure::usage)
}

pub(super) fn task(
    args: &Args,
    spec: &FleetSpec,
    endpoint: usize,
    source_ports: Vec<u16>,
) -> TransferSpec {
    TransferSpec {
        address: spec.fleet.endpoints[endpoint].address,
        source_ports,
        repetitions: 1,
        interval: PAUSE,
        timeout: args.timeout,
        site: spec.site.clone(),
    }
}

/// How the target is asked for them.
pub(super) fn small(
    args: &Args,
    spec: &FleetSpec,
    target: &Target,
    endpoint: usize,
) -> Result<SmallTransfer, ProbeError> {
    let asking = Asking {
        tls_version: None,
        trust: Trust::Public,
        patience: args.timeout,
        site: spec.site.clone(),
    };
    let address = spec.fleet.endpoints[endpoint].address;
    SmallTransfer::at(target, address, args.transfer_size as usize, &asking)
}
