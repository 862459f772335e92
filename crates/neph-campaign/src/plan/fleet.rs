//! A plan's fleets: the parameters that make one of a scenario, and what contradicts them.

use std::num::NonZeroU32;
use std::ops::Range;

use neph_model::{
    Lifetime, MAX_FLEET_MESSAGES_A_SECOND, Parameter, ParameterName, SYNS_A_SECOND_EACH, Span,
    Target, of_many_hosts,
};
use neph_text::{Fault, FromNode, Nanos, Node, Problems, Spanned};

use super::model::{Axes, Endpoint, PairOrder, Plan};
use super::sections::Sections;
use crate::{expand, flow_sets};

/// The most flows of a fleet: source ports that a host can give out without running dry.
const MAX_FLOWS: u32 = 50_000;
/// What a fleet's flows cannot have, and why.
const NOT_FOR_FLEETS: [(ParameterName, &str); 5] = [
    (
        ParameterName::CongestionControl,
        "its probes are too small for one to matter",
    ),
    (
        ParameterName::NewConnection,
        "its flows keep their connections; renewal = \"30s\" replaces them",
    ),
    (ParameterName::Spin, "it spins for none of its sends"),
    (
        ParameterName::TcpStats,
        "its flows are too many to be read one by one",
    ),
    (ParameterName::Tls, "its probes are plain"),
];

/// Whether many flows can be carried by one thread to this target.
pub(crate) fn is_supported_by(target: &Target) -> bool {
    target.kind().properties().has_fleets && !target.is_secure()
}

/// How many flows.
pub(crate) fn flows(node: &Node) -> Result<Parameter, Fault> {
    let flows = count(node, MAX_FLOWS);
    flows.map(Parameter::Flows).ok_or_else(|| {
        let remedy = format!("write a number from 1 to {MAX_FLOWS}");
        Fault::new("this is no number of flows", remedy)
    })
}

/// A number from 1 to `max`.
fn count(node: &Node, max: u32) -> Option<NonZeroU32> {
    let count = u32::from_node(node).ok().filter(|count| *count <= max);
    count.and_then(NonZeroU32::new)
}

/// How many SYNs a second.
pub(crate) fn rate_cap(node: &Node) -> Result<Parameter, Fault> {
    let cap = count(node, MAX_FLEET_MESSAGES_A_SECOND);
    cap.map(Parameter::RateCap).ok_or_else(|| {
        let remedy = format!("write a number from 1 to {MAX_FLEET_MESSAGES_A_SECOND}");
        Fault::new("this is no number of SYNs a second", remedy)
    })
}

/// How long a flow lives.
pub(crate) fn lifetime(node: &Node) -> Result<Parameter, Fault> {
    match Nanos::from_node(node)? {
        Nanos(0) => Err(Fault::new(
            "a flow cannot live for no time",
            "write for example \"30s\"; without 'renewal' flows are never replaced",
        )),
        Nanos(nanos) => Ok(Parameter::FlowLifetime(Lifetime(Span::from_nanos(nanos)))),
    }
}

/// Contradictory values of one endpoint, and what to do; with the parameter at which the mistake is
/// reported.
pub(crate) fn contradiction(axes: &Axes) -> Option<(ParameterName, Fault)> {
    let lifetime = ParameterName::FlowLifetime;
    let Some(flows) = max_flows(axes) else {
        return axes.parameters.contains_key(&lifetime).then(|| {
            let message = "'renewal' is for fleets, and 'flows' is not given";
            let fault = Fault::new(message, "add flows = 512, or remove renewal");
            (lifetime, fault)
        });
    };
    for (name, reason) in NOT_FOR_FLEETS {
        if axes.parameters.contains_key(&name) {
            let message = format!("a fleet has no '{name}': {reason}");
            return Some((name, Fault::new(message, format!("remove {name} or flows"))));
        }
    }
    let ports = port_fault(axes, flows).map(|fault| (ParameterName::SourcePort, fault));
    ports.or_else(|| lifetime_fault(axes).map(|fault| (lifetime, fault)))
}

/// Why a fleet's flows do not fit between their first port and the last there is.
fn port_fault(axes: &Axes, flows: i64) -> Option<Fault> {
    let first = axes.values(Parameter::source_port).max()?.get();
    let available = i64::from(u16::MAX - first) + 1;
    (flows > available).then(|| {
        let message = format!("only {available} ports are left from {first} on, for {flows} flows");
        let max = i64::from(u16::MAX) + 1 - flows;
        Fault::new(message, format!("write at most {max}, or fewer flows"))
    })
}

/// Why flows that live so long send nothing at the longest interval.
fn lifetime_fault(axes: &Axes) -> Option<Fault> {
    let max_interval = axes.intervals.iter().max()?;
    let Lifetime(min_life) = axes.values(Parameter::lifetime).min()?;
    (min_life < max_interval).then(|| {
        let (life, interval) = (min_life.exact(), max_interval.exact());
        let message = format!("flows that live {life} send nothing every {interval}");
        Fault::new(message, "write a longer renewal or a shorter interval")
    })
}

fn max_flows(axes: &Axes) -> Option<i64> {
    let flows = axes.values(Parameter::flows);
    flows.map(|flows| i64::from(flows.get())).max()
}

/// Why no fleet can ask this target, and what to do: its address is that of many hosts.
pub(crate) fn many_hosts_fault(target: &Target, axes: &Axes) -> Option<Fault> {
    max_flows(axes)?;
    let reason = of_many_hosts(target.host().parse().ok()?)?;
    let message = format!(
        "{} is {reason}, and flows go to one host each",
        target.host()
    );
    Some(Fault::new(message, "write the address of one host"))
}

/// Why a fleet's shortest interval is too short for its flows, and what to do.
pub(crate) fn rate_fault(target: &Target, axes: &Axes) -> Option<Fault> {
    let max_flows = max_flows(axes)?;
    let min_interval = axes.intervals.iter().min()?;
    let rate = max_flows.saturating_mul(1_000_000_000) / min_interval.nanos().max(1);
    let rate_caps = axes.values(Parameter::rate_cap);
    let rate_caps = rate_caps.map(|cap| i64::from(cap.get()));
    let may_look_like_attack = target.kind().properties().may_look_like_attack;
    let cap = if may_look_like_attack {
        rate_caps.min().unwrap_or_else(|| SYNS_A_SECOND_EACH.into())
    } else {
        MAX_FLEET_MESSAGES_A_SECOND.into()
    };
    if rate > cap && may_look_like_attack {
        let message = format!(
            "{max_flows} flows every {} are {rate} SYNs a second, which may be taken for an attack",
            min_interval.exact()
        );
        let remedy = format!(
            "at most {cap}: fewer flows or a longer interval, or allow them with rate_cap = {rate}"
        );
        return Some(Fault::new(message, remedy));
    }
    (rate > cap).then(|| {
        let message = format!(
            "{max_flows} flows every {} are {rate} messages a second",
            min_interval.exact()
        );
        let remedy =
            format!("at most {MAX_FLEET_MESSAGES_A_SECOND}: fewer flows, or a longer interval");
        Fault::new(message, remedy)
    })
}

/// Whether there are endpoints, and none has a fleet.
fn has_no_fleet(endpoints: &[Endpoint]) -> bool {
    let has_fleet = |endpoint: &Endpoint| max_flows(&endpoint.axes).is_some();
    !endpoints.is_empty() && !endpoints.iter().any(has_fleet)
}

/// Only fleets take pairs at once.
pub(crate) fn check_pairs(
    pairs: Option<&Spanned<PairOrder>>,
    endpoints: &[Endpoint],
    problems: &Problems<'_>,
) {
    if let Some(pairs) = pairs
        && has_no_fleet(endpoints)
    {
        let message = "'pairs' sets how fleets take their pairs, and 'flows' is not given";
        let fault = Fault::new(message, "add flows = 512, or remove pairs");
        problems.add(pairs.span.clone(), fault);
    }
}

/// What runs at the same time is sent by one host.
pub(crate) fn check_rate(plan: &Plan, plan_span: &Range<usize>, problems: &Problems<'_>) {
    let rate = flow_sets::max_rate(plan, &expand::scenarios(plan));
    if rate > u64::from(MAX_FLEET_MESSAGES_A_SECOND) {
        let message = format!("the pairs that run at the same time are {rate} messages a second");
        let remedy = format!(
            "at most {MAX_FLEET_MESSAGES_A_SECOND}: fewer flows, a longer interval, or pairs = \"in turn\""
        );
        problems.add(plan_span.clone(), Fault::new(message, remedy));
    }
}

/// Only a fleet's flows are traced, and no more than there are.
pub(crate) fn check_trace(sections: &Sections, endpoints: &[Endpoint], problems: &Problems<'_>) {
    let Some(trace) = &sections.flow_trace else {
        return;
    };
    if has_no_fleet(endpoints) {
        let message = "[trace] traces the flows of fleets, and 'flows' is not given";
        let remedy = "add flows = 512, or write [traceroute] instead";
        problems.add(trace.span.clone(), Fault::new(message, remedy));
    }
    let max_fleet_flows = endpoints
        .iter()
        .filter_map(|endpoint| max_flows(&endpoint.axes))
        .max();
    let traced_flows = trace.value.flows;
    if let Some((max, flows_span)) = max_fleet_flows.zip(sections.traced_flows_span.as_ref())
        && i64::from(traced_flows) > max
    {
        let message =
            format!("{traced_flows} flows are to be traced, and no fleet has more than {max}");
        let remedy = format!("write at most {max}");
        problems.add(flows_span.clone(), Fault::new(message, remedy));
    }
}

#[cfg(test)]
mod tests;
