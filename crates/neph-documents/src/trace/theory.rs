//! The number of flows that theory requires to find all paths behind the routers that given flows
//! met. A trace chooses its number of flows by the same rule (docs/commands/trace.md).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use neph_model::Diamond;
use neph_stats::flows_to_rule_out;

/// A router: its distance and address; distance 0 is the client host.
type Router = (u8, Option<IpAddr>);

/// The least number of flows that rule out a further next hop behind each router with this
/// confidence, and at least the flows of the trace. Assumes that further ones spread over the
/// routers as these did. At a distance with any answer, flows without an answer give no
/// information.
pub(super) fn flows_needed(diamond: &Diamond, confidence: f64) -> u32 {
    let answering_ttls: BTreeSet<u8> = diamond
        .hops
        .iter()
        .filter(|hop| hop.nodes.iter().any(|node| node.address.is_some()))
        .map(|hop| hop.ttl)
        .collect();
    let is_counted =
        |ttl: u8, address: Option<IpAddr>| address.is_some() || !answering_ttls.contains(&ttl);
    let mut routers: BTreeMap<Router, (u32, BTreeSet<IpAddr>)> = BTreeMap::new();
    for link in &diamond.links {
        if is_counted(link.ttl, link.from) && is_counted(link.ttl + 1, link.to) {
            let (flows, next_hops) = routers.entry((link.ttl, link.from)).or_default();
            *flows += link.flows;
            next_hops.extend(link.to);
        }
    }
    let needed = routers.values().filter_map(|(flows, next_hops)| {
        let next_hop_count = u32::try_from(next_hops.len().max(1)).ok()?;
        let needed = flows_to_rule_out(next_hop_count, confidence)?;
        let needed_in_all = u64::from(needed) * u64::from(diamond.flows);
        u32::try_from(needed_in_all.div_ceil(u64::from((*flows).max(1)))).ok()
    });
    needed.max().unwrap_or(0).max(diamond.flows)
}
