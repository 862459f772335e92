//! The routes of a fleet's flows: each keeps the source port with which it was measured.
//!
//! They are traced when the fleet is over. Before, its ports are not known; while it runs, the probes
//! would wait in the queue with its messages.

use neph_model::{ExperimentOrder, FlowTrace, Stop, TraceKind};
use neph_probe::{FlowSet, PortUse, TraceSpec};

use crate::flows::Ready;
use crate::record_collector::RecordCollector;

/// Traces them if the order requests it. A failure is an event: the results are kept without routes.
pub(crate) fn trace_routes(
    order: &ExperimentOrder,
    ready: &Ready,
    collector: &mut RecordCollector,
    stop: &Stop,
) -> Option<FlowTrace> {
    let (trace_order, fleet) = (order.trace?, ready.fleet.as_ref()?);
    let endpoint = fleet.fleet.endpoints.first()?;
    let ports = collector.ports().collect();
    let kind = TraceKind::of_flows(fleet.fleet.probe);
    let port_use = match kind {
        TraceKind::Udp => PortUse::Ours,
        // A port that a connection has just left cannot be bound again for a minute.
        TraceKind::Syn | TraceKind::Icmp => PortUse::Shared,
    };
    let spec = TraceSpec {
        max_hops: trace_order.limits.max_hops,
        queries: trace_order.limits.queries,
        ports: port_use,
        permit: ready.specs[0].permit.clone(),
        ..TraceSpec::new(endpoint.address, kind, FlowSet::These(ports))
    };
    let traced = neph_probe::trace(&spec, ready.site.as_ref(), stop);
    match traced {
        Ok(traced) => {
            for reason in &traced.left_out {
                collector.add_trace_failure("the route of a flow is not known", reason);
            }
            // Cut short, it would lack routers.
            Some(traced.trace).filter(|_| !stop.is_set())
        }
        Err(error) => {
            collector.add_trace_failure("the routes of the flows are not known", &error);
            None
        }
    }
}
