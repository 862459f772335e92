//! Remarks about a trace, in addition to its tables.

use std::collections::BTreeSet;

use neph_model::{Diamond, FlowRoute, FlowTrace, ReadBy, TraceEnd, TraceKind};

use super::theory::flows_needed;
use neph_text::counted::counted;

/// The options of a trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceConditions {
    /// Required confidence that no router has a further next hop, 0 to 1.
    pub confidence: f64,
    /// Whether the trace was stopped before it was reached.
    pub stopped: bool,
}

/// Sentences, one a line.
pub(super) fn remarks(
    trace: &FlowTrace,
    diamond: &Diamond,
    conditions: TraceConditions,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if conditions.stopped {
        remarks.push(format!(
            "Interrupted after {}: there may be more paths.",
            counted(diamond.flows.into(), "flow")
        ));
    } else {
        remarks.extend(further_paths_remark(trace, diamond, conditions.confidence));
    }
    remarks.extend(end_remarks(&trace.routes));
    remarks.extend(several_routers_remark(&trace.routes));
    if diamond.paths.len() > 1 {
        remarks.push(
            "Paths are forward paths; replies may return on several reverse paths, which the RTT includes."
                .to_owned(),
        );
    }
    if diamond.hops.len() > 1 {
        remarks.push(
            "Routers answer with low priority: the RTT of hops before the last is an upper bound, and their loss is not loss of the path."
                .to_owned(),
        );
    }
    let hops = || trace.routes.iter().flat_map(|route| &route.hops);
    if hops().any(|hop| hop.read_by == ReadBy::Program && !hop.round_trips.is_empty()) {
        remarks.push(
            "Some answers have no kernel timestamp; their RTT includes local delay.".to_owned(),
        );
    }
    remarks
}

/// Whether there may be paths that the flows did not take. Routers without any answer are not
/// considered.
fn further_paths_remark(trace: &FlowTrace, diamond: &Diamond, confidence: f64) -> Option<String> {
    let percent = 100.0 * confidence;
    let mut nodes = diamond.hops.iter().flat_map(|hop| &hop.nodes);
    if !nodes.any(|node| node.address.is_some()) {
        return None;
    }
    if trace.kind == TraceKind::Icmp && diamond.flows > 1 && diamond.paths.len() < 2 {
        return Some(
            "Many routers choose the way of ICMP by addresses alone: this may be one flow's path, \
             however many flows there are. Trace with udp:// or syn:// to find more."
                .to_owned(),
        );
    }
    match trace.enough {
        Some(true) => {
            let extent = if trace.routes.iter().any(FlowRoute::reached) {
                ""
            } else {
                " up to the last one shown"
            };
            Some(format!(
                "So many flows rule out, router by router{extent}, a further next hop with \
                 {percent} % confidence, where routers spread flows evenly."
            ))
        }
        Some(false) => Some(format!(
            "There may be more paths: the flows are too few to rule that out with {percent} % \
             confidence. Allow more with --most-flows."
        )),
        None => chosen_flows_remark(diamond, confidence),
    }
}

/// What the given number of flows leaves open. For a single flow nothing: its user wants its path
/// only.
fn chosen_flows_remark(diamond: &Diamond, confidence: f64) -> Option<String> {
    let needed = flows_needed(diamond, confidence);
    (diamond.flows > 1 && needed > diamond.flows).then(|| {
        format!(
            "There may be more paths than these {} flows take: to rule that out with {} % \
             confidence takes at least {needed}. Without --source-port and --flows as many are \
             traced as it takes.",
            diamond.flows,
            100.0 * confidence
        )
    })
}

/// Why flows ended before the destination.
fn end_remarks(routes: &[FlowRoute]) -> Vec<String> {
    let reasons: BTreeSet<TraceEnd> = routes.iter().map(|route| route.end).collect();
    let remarks_of_end = |end: TraceEnd| {
        let flows = routes.iter().filter(|route| route.end == end).count();
        let flow_count = counted(flows as u64, "flow");
        Some(match end {
            TraceEnd::Reached => return None,
            TraceEnd::Unreachable { from, code } => {
                format!(
                    "{flow_count}: {from} reports the destination as unreachable (ICMP code {code})."
                )
            }
            TraceEnd::Loop { at } => format!("{flow_count}: a loop through {at}."),
            TraceEnd::Silent => format!("{flow_count}: no answer beyond the last hop shown."),
            TraceEnd::TooFar => {
                format!("{flow_count}: the destination is farther than --max-hops allows.")
            }
            TraceEnd::Stopped => format!("{flow_count}: stopped before the end was known."),
        })
    };
    reasons.into_iter().filter_map(remarks_of_end).collect()
}

/// Flows that met several routers at one distance.
fn several_routers_remark(routes: &[FlowRoute]) -> Option<String> {
    let has_several_routers =
        |route: &&FlowRoute| route.hops.iter().any(|hop| !hop.other_addresses.is_empty());
    let flows = routes.iter().filter(has_several_routers).count();
    let hops = routes.iter().flat_map(|route| &route.hops);
    let ttls: BTreeSet<u8> = hops
        .filter(|hop| !hop.other_addresses.is_empty())
        .map(|hop| hop.ttl)
        .collect();
    let first_ttl = ttls.first()?;
    Some(format!(
        "{} met several routers at one distance, from hop {first_ttl} on: per-packet load balancing, or the path changed during the trace.",
        counted(flows as u64, "flow")
    ))
}

#[cfg(test)]
mod tests {
    use neph_flows::build_diamond;
    use neph_model::{FlowHop, PathHash, Wall};

    use super::*;

    /// One flow that one router answered.
    fn end_text(end: TraceEnd, enough: bool, stopped: bool) -> String {
        let address = Some([192, 0, 2, 1].into());
        let trace = FlowTrace {
            destination: ([192, 0, 2, 9], 443).into(),
            kind: TraceKind::Udp,
            started: Wall::from_unix_nanos(0),
            routes: vec![FlowRoute {
                source_port: 1,
                hops: vec![FlowHop::new(1, address)],
                hash: PathHash::of(&[address]),
                end,
            }],
            enough: Some(enough),
        };
        let conditions = TraceConditions {
            confidence: 0.99,
            stopped,
        };
        remarks(&trace, &build_diamond(&trace.routes), conditions).join("\n")
    }

    #[test]
    fn an_interrupted_trace_does_not_suggest_more_flows() {
        let interrupted = end_text(TraceEnd::Stopped, false, true);
        let expected = "Interrupted after 1 flow: there may be more paths.";
        assert!(interrupted.contains(expected), "{interrupted}");
        assert!(!interrupted.contains("--most-flows"), "{interrupted}");
        assert!(end_text(TraceEnd::Silent, false, false).contains("--most-flows"));
    }

    #[test]
    fn nothing_is_ruled_out_beyond_the_last_answering_router() {
        let expected = "router by router up to the last one shown, a further";
        assert!(end_text(TraceEnd::Silent, true, false).contains(expected));
        assert!(!end_text(TraceEnd::Reached, true, false).contains("up to the last"));
    }
}
