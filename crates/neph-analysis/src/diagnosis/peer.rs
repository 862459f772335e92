//! The peer of a flow, for rules that compare flows to the same peer.

use std::net::SocketAddr;

use super::rule_input::Run;

/// The peer: its address, and the endpoint's name if an imported file has no address.
pub(crate) type Peer = (SocketAddr, Option<String>);

/// The peer of a flow.
pub(crate) fn peer(run: &Run<'_>) -> Peer {
    let target = run.flow.flow.target;
    let is_unknown = target.ip().is_unspecified();
    (target, is_unknown.then(|| run.scenario.endpoint.clone()))
}

/// Whether another tool measured it.
pub(crate) fn is_imported(run: &Run<'_>) -> bool {
    run.scenario.parameters.imported().is_some()
}
