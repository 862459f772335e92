//! The routes of a trace, from what is known of its probes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use neph_model::{FlowHop, FlowRoute, Instant, Local, PathHash, ReadBy, Span, TraceEnd};

use super::flow::{Answer, AnswerKind, FlowHopState, FlowState, Probe};
use super::tracer::Tracer;

impl Tracer {
    /// The routes as far as they are known, by port.
    pub(crate) fn routes(&self) -> Vec<FlowRoute> {
        let mut routes: Vec<FlowRoute> = self.flows.iter().map(|flow| self.route(flow)).collect();
        routes.sort_by_key(|route| route.source_port);
        routes
    }

    /// When the first and the last answered probe left.
    pub(crate) fn answered(&self) -> Option<(Instant<Local>, Instant<Local>)> {
        let answered = || self.probes.iter().filter(|probe| probe.answer.is_some());
        let first = answered().map(|probe| probe.sent).min()?;
        let last = answered().map(|probe| probe.tx_timestamp.unwrap_or(probe.sent));
        Some((first, last.max()?))
    }

    fn route(&self, flow: &FlowState) -> FlowRoute {
        let mut by_ttl: BTreeMap<u8, Vec<&Probe>> = BTreeMap::new();
        for id in &flow.probes {
            if let Some(probe) = self.probes.get(id.0) {
                by_ttl.entry(probe.ttl).or_default().push(probe);
            }
        }
        let last = self.last(flow);
        // Answers of the destination to packets with a larger TTL.
        let beyond = by_ttl.split_off(&last.saturating_add(1));
        let end_at = flow.end.unwrap_or(last);
        by_ttl
            .entry(last)
            .or_default()
            .extend(beyond.range(..=end_at).flat_map(|(_, probes)| probes));
        let none = Vec::new();
        let hops: Vec<FlowHop> = (1..=last)
            .map(|ttl| {
                let probes = by_ttl.get(&ttl).unwrap_or(&none);
                hop(ttl, flow.hop(ttl), probes)
            })
            .collect();
        let addresses: Vec<Option<IpAddr>> = hops.iter().map(|hop| hop.address).collect();
        let at_end = by_ttl.get(&last).unwrap_or(&none);
        FlowRoute {
            source_port: flow.port,
            hash: PathHash::of(&addresses),
            end: self.end(flow, at_end),
            hops,
        }
    }

    /// The distance of a flow's last hop. A destination that seldom answers may have been silent to the flow
    /// where other flows reached it, and have answered a probe with a larger TTL.
    fn last(&self, flow: &FlowState) -> u8 {
        let Some(end) = flow.end else {
            return flow.last_answered();
        };
        let is_hole = |ttl: u8| {
            flow.hop(ttl)
                .is_some_and(|flow_hop| flow_hop.address.is_none())
        };
        match self.destination_distance {
            Some(distance) if flow.reached_destination && (distance..end).all(is_hole) => {
                distance.min(end)
            }
            _ => end,
        }
    }

    /// `at_end` are the probes to the last hop.
    fn end(&self, flow: &FlowState, at_end: &[&Probe]) -> TraceEnd {
        let answers = || at_end.iter().filter_map(|probe| probe.answer);
        let refused = |answer: Answer| match answer.kind {
            AnswerKind::Unreachable(code) => Some(TraceEnd::Unreachable {
                from: answer.from,
                code,
            }),
            AnswerKind::Exceeded | AnswerKind::Arrived => None,
        };
        if flow.end.is_some() && answers().any(|answer| answer.kind == AnswerKind::Arrived) {
            return TraceEnd::Reached;
        }
        if let Some(at) = flow.loop_router {
            return TraceEnd::Loop { at };
        }
        if flow.end.is_some()
            && let Some(refused) = answers().find_map(refused)
        {
            return refused;
        }
        let known = self
            .destination_distance
            .is_some_and(|distance| flow.last_answered() < distance);
        if !flow.finished {
            TraceEnd::Stopped
        } else if known || flow.gave_up(self.spec.max_hops.saturating_add(1)) {
            TraceEnd::Silent
        } else {
            TraceEnd::TooFar
        }
    }
}

fn hop(ttl: u8, flow_hop: Option<&FlowHopState>, probes: &[&Probe]) -> FlowHop {
    let mut rtts_by_address: BTreeMap<IpAddr, Vec<Span>> = BTreeMap::new();
    let mut by_program = false;
    for (from, span, read_by) in probes.iter().filter_map(|probe| round_trip(probe)) {
        rtts_by_address.entry(from).or_default().push(span);
        by_program |= read_by == ReadBy::Program;
    }
    let count = |address: &IpAddr| rtts_by_address.get(address).map(Vec::len);
    let first = flow_hop.and_then(|flow_hop| flow_hop.address);
    let max = rtts_by_address.values().map(Vec::len).max();
    // The first to answer, if several answered equally often: multipath detection used that one.
    let address = first.filter(|first| count(first) == max).or_else(|| {
        rtts_by_address
            .keys()
            .find(|address| count(address) == max)
            .copied()
    });
    let rtts = address.and_then(|address| rtts_by_address.remove(&address));
    let (others, other_addresses_round_trips) = rtts_by_address.into_iter().unzip();
    FlowHop {
        ttl,
        address,
        other_addresses: others,
        probes: u32::try_from(probes.len()).unwrap_or(u32::MAX),
        round_trips: rtts.unwrap_or_default(),
        other_addresses_round_trips,
        read_by: if by_program {
            ReadBy::Program
        } else {
            ReadBy::Kernel
        },
        labels: flow_hop
            .map(|flow_hop| flow_hop.labels.clone())
            .unwrap_or_default(),
    }
}

/// The address that answered, and the round trip.
pub(super) fn round_trip(probe: &Probe) -> Option<(IpAddr, Span, ReadBy)> {
    let answer = probe.answer?;
    let (tx_timestamp, read_by) = match probe.tx_timestamp {
        Some(tx_timestamp) => (tx_timestamp, answer.read_by),
        None => (probe.sent, ReadBy::Program),
    };
    Some((
        answer.from,
        (answer.at - tx_timestamp).max(Span::ZERO),
        read_by,
    ))
}
