//! The specification of the transfers to an endpoint: target, source ports, protocol.

use neph_load::TransferSpec;
use neph_model::{Span, Target};
use neph_probe::{DiscoveryOptions, FleetSpec, ProbeError, SmallTransfer, Trust};

use super::Args;
use crate::exit::Failure;

/// Minimum time between the starts of two transfers, so that they run in sequence.
const MIN_INTERVAL: Span = Span::from_millis(5);

/// HTTP needs two round trips, to connect and to request, like most transfers. neph reflect serves
/// it on its common port.
pub(super) fn transfer_target(spec: &FleetSpec, endpoint: usize) -> Result<Target, Failure> {
    let endpoint = &spec.fleet.endpoints[endpoint];
    let name_parts = endpoint.name.split_once("://");
    let location = name_parts.map_or(endpoint.name.as_str(), |(_, location)| location);
    Target::parse(&format!("http://{location}")).map_err(Failure::usage)
}

pub(super) fn build_transfer_spec(
    args: &Args,
    spec: &FleetSpec,
    endpoint: usize,
    source_ports: Vec<u16>,
) -> TransferSpec {
    TransferSpec {
        address: spec.fleet.endpoints[endpoint].address,
        source_ports,
        repetitions: 1,
        interval: MIN_INTERVAL,
        timeout: args.timeout,
        site: spec.site.clone(),
    }
}

/// The client of these transfers.
pub(super) fn build_client(
    args: &Args,
    spec: &FleetSpec,
    target: &Target,
    endpoint: usize,
) -> Result<SmallTransfer, ProbeError> {
    let options = DiscoveryOptions {
        tls_version: None,
        trust: Trust::Public,
        patience: args.timeout,
        site: spec.site.clone(),
    };
    let address = spec.fleet.endpoints[endpoint].address;
    SmallTransfer::at(target, address, args.transfer_size as usize, &options)
}
