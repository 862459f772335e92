//! The routers of flows: each flow's route is traced at the start, and again at once when its path
//! changed. Other routers than before speak for the change.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use neph_flows::PathChange;
use neph_model::{Fleet, FlowRoute, Lane, ProbeKind, TraceKind};
use neph_probe::{Place, ProbeError, Tracing, trace_flow};

/// Traces at a time: routers answer a few packets a second only, and all flows meet the same ones
/// first.
const AT_A_TIME: usize = 8;

/// A trace that is wanted, and the change that it follows.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lane: Lane,
    port: u16,
    change: Option<PathChange>,
}

/// Who answered at each distance.
type Routers = Box<[Option<IpAddr>]>;

/// What a trace says of a change: whether the flow met other routers than before.
pub(super) type Traced = (PathChange, bool);

/// The traces of a fleet.
#[derive(Debug)]
pub(super) struct Follow {
    kind: TraceKind,
    site: Option<Place>,
    targets: Vec<SocketAddr>,
    waiting: VecDeque<Wanted>,
    running: Vec<(Wanted, Tracing)>,
    /// The routers of each lane's latest flow that was traced, and its port.
    known: BTreeMap<Lane, (u16, Routers)>,
}

impl Follow {
    pub(super) fn new(fleet: &Fleet, site: Option<Place>) -> Self {
        let kind = match fleet.probe {
            ProbeKind::Udp => TraceKind::Udp,
            _ => TraceKind::Syn,
        };
        let addresses = fleet.endpoints.iter().map(|endpoint| endpoint.address);
        Self {
            kind,
            site,
            targets: addresses.collect(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The fleet's first flows, by lane: their routes are what changes are held against.
    pub(super) fn begin(&mut self, sources: &[u16]) {
        let lanes = (0..).map(Lane).zip(sources);
        self.waiting.extend(lanes.map(|(lane, port)| Wanted {
            lane,
            port: *port,
            change: None,
        }));
    }

    /// A path changed: its route comes before those that only stand by.
    pub(super) fn changed(&mut self, change: &PathChange) {
        self.waiting.push_front(Wanted {
            lane: change.lane,
            port: change.source_port,
            change: Some(*change),
        });
    }

    /// Starts what is wanted, and tells what came of the traces that are over.
    ///
    /// # Errors
    /// Where tracing is not possible at all.
    pub(super) fn poll(&mut self, fleet: &Fleet) -> Result<Vec<Traced>, ProbeError> {
        while self.running.len() < AT_A_TIME
            && let Some(wanted) = self.waiting.pop_front()
        {
            let target = self.targets[fleet.endpoint_of(wanted.lane)];
            let tracing = trace_flow(target, self.kind, wanted.port, self.site.as_ref())?;
            self.running.push((wanted, tracing));
        }
        let mut told = Vec::new();
        while let Some(index) = self.running.iter().position(|(_, one)| one.is_finished()) {
            let (wanted, tracing) = self.running.swap_remove(index);
            told.extend(self.keep(wanted, &tracing.join()?));
        }
        Ok(told)
    }

    /// Ends all traces; what they know is not told any more.
    pub(super) fn end(self) {
        self.running.iter().for_each(|(_, tracing)| tracing.stop());
    }

    /// Keeps a route, and compares it with the one before.
    fn keep(&mut self, wanted: Wanted, route: &FlowRoute) -> Option<Traced> {
        let after = routers(route);
        let before = self.known.insert(wanted.lane, (wanted.port, after.clone()));
        let (_, before) = before.filter(|(port, _)| *port == wanted.port)?;
        Some((wanted.change?, differs(&before, &after)?))
    }
}

fn routers(route: &FlowRoute) -> Routers {
    route.hops.iter().map(|hop| hop.address).collect()
}

/// Whether two routes of a flow have different routers at some distance; `None` where no distance is
/// known of both. A router that does not answer is no other router.
fn differs(before: &[Option<IpAddr>], after: &[Option<IpAddr>]) -> Option<bool> {
    let known: Vec<bool> = before
        .iter()
        .zip(after)
        .filter_map(|(one, other)| Some((*one)? != (*other)?))
        .collect();
    (!known.is_empty()).then(|| known.contains(&true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routers(hops: &[u8]) -> Routers {
        let address = |last: &u8| (*last > 0).then(|| IpAddr::from([10, 0, 0, *last]));
        hops.iter().map(address).collect()
    }

    #[test]
    fn only_routers_that_answered_both_times_are_compared() {
        let of = |before: &[u8], after: &[u8]| differs(&routers(before), &routers(after));
        assert_eq!(of(&[1, 2, 3], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[1, 2, 3], &[1, 4, 3]), Some(true));
        assert_eq!(of(&[1, 0, 3], &[1, 4, 3]), Some(false));
        assert_eq!(of(&[1, 2], &[1, 2, 3]), Some(false));
        assert_eq!(of(&[0], &[1]), None);
    }
}
