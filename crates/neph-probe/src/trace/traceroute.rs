//! The routers between this host and a destination: the preset of a trace in which each probe is a separate
//! flow. It needs no privilege.

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_model::{Hop, Permit, Stop, TraceLimits, Traceroute, Wall};
use neph_sys::place::Placement;

use super::driver::driven;
use super::flow::AnswerKind;
use super::route::round_trip;
use super::spec::TraceSpec;
use super::tracer::Tracer;
use crate::ProbeError;

/// The routers that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// When it started.
    pub started: Wall,
    /// The hops, in order; a silent one has no addresses.
    pub hops: Vec<Hop>,
    /// Whether the destination itself answered.
    pub reached: bool,
}

impl Route {
    /// In the store's terms.
    pub fn into_traceroute(self, block: u32, endpoint: &str, destination: IpAddr) -> Traceroute {
        Traceroute {
            block,
            endpoint: endpoint.to_owned(),
            site: None,
            destination,
            started: self.started,
            hops: self.hops,
            reached: self.reached,
            failure: None,
        }
    }
}

/// Asks all hops up to the destination.
///
/// # Errors
/// When no socket can be opened, or nothing can be sent (no route).
pub fn traceroute(
    destination: IpAddr,
    limits: TraceLimits,
    permit: &Permit,
    site: Option<&Placement>,
    stop: &Stop,
) -> Result<Route, ProbeError> {
    let spec = TraceSpec::traceroute(destination, limits, permit.clone());
    driven(&spec, site, stop, |driven| {
        driven.tracer.all_hops(driven.started)
    })
}

impl Tracer {
    /// All addresses that answered at each distance, up to the first distance after which there is nothing,
    /// in any flow.
    pub(super) fn all_hops(&self, started: Wall) -> Route {
        let end = self.flows.iter().filter_map(|flow| flow.end).min();
        let end = end.unwrap_or(u8::MAX);
        let mut hops: BTreeMap<u8, Hop> = BTreeMap::new();
        let mut reached = false;
        for probe in self.probes.iter().filter(|probe| probe.ttl <= end) {
            let hop = hops.entry(probe.ttl).or_insert_with(|| Hop {
                ttl: probe.ttl,
                addresses: Vec::new(),
                round_trips: Vec::new(),
            });
            let Some(answer) = probe.answer else { continue };
            reached |= answer.kind == AnswerKind::Arrived;
            if !hop.addresses.contains(&answer.from) {
                hop.addresses.push(answer.from);
            }
            hop.round_trips
                .extend(round_trip(probe).map(|(_, round_trip, _)| round_trip));
        }
        Route {
            started,
            hops: hops.into_values().collect(),
            reached,
        }
    }
}
