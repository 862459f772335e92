//! Who answers a flow, where rules compare flows to the same peer.

use std::net::SocketAddr;

use super::sight::Run;

/// Whom flows reach: an address, and the endpoint's name where an imported file does not tell the address.
pub(crate) type Peer = (SocketAddr, Option<String>);

/// The peer of a flow.
pub(crate) fn peer(run: &Run<'_>) -> Peer {
    let target = run.flow.flow.target;
    let is_unknown = target.ip().is_unspecified();
    (target, is_unknown.then(|| run.scenario.endpoint.clone()))
}

/// Whether somebody else's tool measured it.
pub(crate) fn is_imported(run: &Run<'_>) -> bool {
    run.scenario.parameters.imported().is_some()
}
