//! How many more flows are needed (multipath detection, Augustin, Friedman and Teixeira 2007).
//!
//! A router with `k` known next hops is done when enough flows passed it: a further, equally likely next hop
//! would then hardly be missed. The numbers are given.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::flow::FlowState;
use super::spec::FlowSet;
use super::tracer::Tracer;

#[derive(Default)]
struct Router {
    flows: u32,
    next: BTreeSet<IpAddr>,
}

impl Tracer {
    /// How many flows to add now; 0: there are enough.
    pub(super) fn missing_flow_count(&self) -> usize {
        let known_count = self.flows.len();
        let FlowSet::Enough {
            needed, max_flows, ..
        } = &self.spec.flows
        else {
            return self.spec.first_flows().saturating_sub(known_count);
        };
        if known_count == 0 {
            return self.spec.first_flows();
        }
        let room = usize::try_from(*max_flows)
            .unwrap_or(usize::MAX)
            .saturating_sub(known_count);
        // Without room some are still missing: the trace ends and reports that.
        missing_flow_count(&self.flows, needed)
            .min(known_count)
            .min(room.max(1))
    }

    /// Whether no more flows are allowed.
    pub(super) fn is_full(&self) -> bool {
        let flow_count = self.flows.len();
        match &self.spec.flows {
            FlowSet::Enough { max_flows, .. } => {
                flow_count >= usize::try_from(*max_flows).unwrap_or(usize::MAX)
            }
            FlowSet::These(_) | FlowSet::Count { .. } | FlowSet::EachProbe => false,
        }
    }
}

/// Flows to add so that every router has enough, if they spread like those before.
fn missing_flow_count(flows: &[FlowState], needed: &[u32]) -> usize {
    let flow_count = u32::try_from(flows.len()).unwrap_or(u32::MAX);
    let routers = routers(flows);
    let lacks = routers.values().map(|router| {
        let known = router.next.len().max(1);
        let need = needed.get(known - 1).or_else(|| needed.last()).copied();
        let short = need.unwrap_or(0).saturating_sub(router.flows);
        (u64::from(short) * u64::from(flow_count)).div_ceil(u64::from(router.flows.max(1)))
    });
    usize::try_from(lacks.max().unwrap_or(0)).unwrap_or(usize::MAX)
}

/// Next hops of each router, by distance and address; distance 0 is this host. If there is any answer at a
/// distance, flows without an answer there do not count.
fn routers(flows: &[FlowState]) -> BTreeMap<(u8, Option<IpAddr>), Router> {
    let address = |flow: &FlowState, ttl| flow.hop(ttl).and_then(|flow_hop| flow_hop.address);
    let answers = |ttl: &u8| flows.iter().any(|flow| address(flow, *ttl).is_some());
    let answering: BTreeSet<u8> = (1..=u8::MAX).filter(answers).collect();
    let mut routers: BTreeMap<(u8, Option<IpAddr>), Router> = BTreeMap::new();
    for flow in flows {
        let mut at = (0, None);
        for ttl in 1..=flow.end.unwrap_or_else(|| flow.last_answered()) {
            let next = address(flow, ttl);
            let is_certain =
                |ttl, address: Option<IpAddr>| address.is_some() || !answering.contains(&ttl);
            if is_certain(at.0, at.1) && is_certain(ttl, next) {
                let router = routers.entry(at).or_default();
                router.flows += 1;
                router.next.extend(next);
            }
            at = (ttl, next);
        }
    }
    routers
}
