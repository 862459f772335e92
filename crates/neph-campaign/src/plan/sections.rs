//! The sections of a plan that multiply nothing: pings, companion, throughput, traceroute, plot,
//! seasons, lab, limits.

use std::ops::Range;

use neph_model::{
    FlowTraceOrder, Span, ThroughputServer, ThroughputTool, TraceLimits, port_number,
    split_authority,
};
use neph_text::{Fault, Fields, FromNode, Nanos, Node, Percent, Spanned, choice};

use super::agents::{self, AgentSite};
use super::compare::{self, ComparePlan};
use super::model::{LabPlan, LabReflector, Limits};
use super::parameter::target_fault;
use super::plot::{self, PlotPlan};
use super::reflector::parse_reflector_flags;
use super::season::{self, Season};
use super::shared::{self, SharedResource};
use super::single_line_text::single_line_text;

/// iperf3's own port.
pub(crate) const IPERF3_PORT: u16 = 5201;
/// Default duration of a throughput check.
pub(crate) const THROUGHPUT_DURATION: Span = Span::from_secs(5);
/// Default number of traced flows: 28 are enough to miss one of four equal paths with a probability
/// below 1 %.
const DEFAULT_TRACED_FLOWS: u32 = 32;
/// The most flows that are traced: routers answer few questions a second.
const MAX_TRACED_FLOWS: u32 = 1024;
/// Default interval of the companion echo: as `ping` does.
const DEFAULT_ICMP_ECHO_INTERVAL: Span = Span::from_secs(1);

/// One `[[ping]]`.
#[derive(Debug)]
pub(crate) struct TypedPing {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) address: Option<Spanned<String>>,
    pub(crate) interval: Option<Spanned<Nanos>>,
}

/// `[throughput]`, whose servers may be the plan's endpoints.
#[derive(Debug)]
pub(crate) struct TypedThroughput {
    pub(crate) span: Range<usize>,
    pub(crate) duration: Span,
    pub(crate) tool: ThroughputTool,
    pub(crate) servers: Vec<Spanned<ThroughputServer>>,
}

#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub(crate) icmp_echo_interval: Option<Span>,
    pub(crate) throughput: Option<TypedThroughput>,
    pub(crate) traceroute: Option<TraceLimits>,
    pub(crate) flow_trace: Option<Spanned<FlowTraceOrder>>,
    /// Where the plan sets the number of traced flows, if it does.
    pub(crate) traced_flows_span: Option<Range<usize>>,
    pub(crate) plot: PlotPlan,
    pub(crate) plot_span: Range<usize>,
    pub(crate) compares: Vec<ComparePlan>,
    pub(crate) baseline: Option<Spanned<String>>,
    pub(crate) seasons: Vec<Season>,
    pub(crate) lab: Option<LabPlan>,
    /// There is a `[lab]`, also where mistakes in it leave no lab.
    pub(crate) has_lab: bool,
    pub(crate) agents: Vec<AgentSite>,
    pub(crate) shared: Vec<SharedResource>,
    pub(crate) limits: Limits,
}

pub(crate) fn read(fields: &mut Fields<'_>) -> Sections {
    let lab_table = fields.table("lab");
    let mut sections = Sections {
        icmp_echo_interval: read_icmp_echo_interval(fields.table("companion")),
        throughput: fields.table("throughput").and_then(read_throughput),
        traceroute: fields.table("traceroute").and_then(read_traceroute),
        compares: compare::read(fields),
        baseline: fields.optional_with("baseline", single_line_text),
        seasons: season::read(fields),
        has_lab: lab_table.is_some(),
        lab: lab_table.and_then(read_lab),
        agents: agents::read(fields),
        shared: shared::read(fields),
        limits: fields
            .table("limits")
            .map_or_else(Limits::default, read_limits),
        ..Sections::default()
    };
    if let Some(fields) = fields.table("trace") {
        (sections.flow_trace, sections.traced_flows_span) = read_flow_trace(fields);
    }
    if let Some(fields) = fields.table("plot") {
        sections.plot_span = fields.span();
        sections.plot = plot::read(fields);
    }
    sections
}

pub(crate) fn read_ping(mut fields: Fields<'_>) -> TypedPing {
    let ping = TypedPing {
        name: fields.required_with("name", single_line_text),
        address: fields.required_with("address", host),
        interval: fields.optional("interval"),
    };
    fields.finish();
    ping
}

/// A host without a port.
pub(crate) fn host(node: &Node) -> Result<String, Fault> {
    let text = single_line_text(node)?;
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok(text);
    }
    match split_authority(&text).map_err(target_fault)? {
        (host, None) => Ok(host),
        (_, Some(_)) => Err(Fault::new("ICMP knows no ports", "write only the host")),
    }
}

fn read_enabled(fields: &mut Fields<'_>) -> bool {
    fields
        .optional("enabled")
        .is_none_or(|enabled| enabled.value)
}

/// There unless switched off: without an ICMP round trip of the same time, a slow message has no
/// reference.
fn read_icmp_echo_interval(fields: Option<Fields<'_>>) -> Option<Span> {
    let Some(mut fields) = fields else {
        return Some(DEFAULT_ICMP_ECHO_INTERVAL);
    };
    let is_enabled = read_enabled(&mut fields);
    let interval = fields.optional_with("interval", positive_span);
    fields.finish();
    is_enabled.then(|| interval.map_or(DEFAULT_ICMP_ECHO_INTERVAL, |interval| interval.value))
}

/// A time that is not zero.
pub(crate) fn positive_span(node: &Node) -> Result<Span, Fault> {
    match Nanos::from_node(node)? {
        Nanos(0) => Err(Fault::new("this time is zero", "write a longer one")),
        Nanos(nanos) => Ok(Span::from_nanos(nanos)),
    }
}

fn read_throughput(mut fields: Fields<'_>) -> Option<TypedThroughput> {
    const TOOLS: [(&str, ThroughputTool); 2] = [
        ("neph", ThroughputTool::Neph),
        ("iperf3", ThroughputTool::Iperf3),
    ];
    let is_enabled = read_enabled(&mut fields);
    let duration = fields.optional_with("duration", positive_span);
    let tool = fields.optional_with("tool", |node| choice(node, &TOOLS));
    let tool = tool.map_or(ThroughputTool::Neph, |tool| tool.value);
    let servers = fields.one_or_list_with("server", |node| read_server(node, tool));
    let throughput = TypedThroughput {
        span: fields.span(),
        duration: duration.map_or(THROUGHPUT_DURATION, |duration| duration.value),
        tool,
        servers: servers.unwrap_or_default(),
    };
    fields.finish();
    is_enabled.then_some(throughput)
}

/// `host:port`; the port may be left out for iperf3.
fn read_server(node: &Node, tool: ThroughputTool) -> Result<ThroughputServer, Fault> {
    let text = single_line_text(node)?;
    let (host, port) = split_authority(&text).map_err(target_fault)?;
    let port = match (port, tool) {
        (Some(port), _) => port_number(port).map_err(target_fault)?,
        (None, ThroughputTool::Iperf3) => IPERF3_PORT,
        (None, ThroughputTool::Neph) => {
            let message = "the reflector's port is missing";
            return Err(Fault::new(
                message,
                format!("write for example \"{text}:8080\""),
            ));
        }
    };
    Ok(ThroughputServer {
        name: text.clone(),
        host,
        port,
    })
}

fn read_traceroute(mut fields: Fields<'_>) -> Option<TraceLimits> {
    let is_enabled = read_enabled(&mut fields);
    let max_hops = fields.optional_with("max_hops", |node| small_number(node, 64));
    let queries = fields.optional_with("queries", |node| small_number(node, 10));
    fields.finish();
    let default = TraceLimits::default();
    is_enabled.then(|| TraceLimits {
        max_hops: max_hops.map_or(default.max_hops, |hops| hops.value),
        queries: queries.map_or(default.queries, |queries| queries.value),
    })
}

fn read_flow_trace(
    mut fields: Fields<'_>,
) -> (Option<Spanned<FlowTraceOrder>>, Option<Range<usize>>) {
    let span = fields.span();
    let is_enabled = read_enabled(&mut fields);
    let flows = fields.optional_with("flows", |node| match u32::from_node(node) {
        Ok(flows @ 1..=MAX_TRACED_FLOWS) => Ok(flows),
        _ => Err(Fault::new(
            "this is no number of flows that can be traced",
            format!("write a number from 1 to {MAX_TRACED_FLOWS}"),
        )),
    });
    let max_hops = fields.optional_with("max_hops", |node| small_number(node, 64));
    let queries = fields.optional_with("queries", |node| small_number(node, 10));
    fields.finish();
    let flows_span = flows.as_ref().map(|flows| flows.span.clone());
    let order = is_enabled.then(|| Spanned {
        value: FlowTraceOrder {
            flows: flows.map_or(DEFAULT_TRACED_FLOWS, |flows| flows.value),
            limits: TraceLimits {
                max_hops: max_hops.map_or(30, |hops| hops.value),
                queries: queries.map_or(3, |queries| queries.value),
            },
        },
        span,
    });
    (order, flows_span)
}

/// A number from 1 to `max`.
fn small_number(node: &Node, max: u8) -> Result<u8, Fault> {
    let number = u16::from_node(node).ok().and_then(|n| u8::try_from(n).ok());
    number.filter(|n| (1..=max).contains(n)).ok_or_else(|| {
        Fault::new(
            "this is out of range",
            format!("write a number from 1 to {max}"),
        )
    })
}

fn read_lab(mut fields: Fields<'_>) -> Option<LabPlan> {
    let topology = fields.required_with("topology", single_line_text);
    let prober = fields.required_with("prober", single_line_text);
    let mut reflectors: Vec<LabReflector> = Vec::new();
    for mut table in fields.tables("reflector") {
        let site = table.required_with("site", single_line_text);
        let flags = table
            .one_or_list_with("flags", single_line_text)
            .unwrap_or_default();
        if let Some(site) = site {
            if reflectors
                .iter()
                .any(|other| other.site.value == site.value)
            {
                let message = format!("site '{}' already has a reflector", site.value);
                let remedy = "one reflector answers every kind of probe";
                table.fault(site.span.clone(), message, remedy);
            }
            let (first, last) = (
                flags.first().unwrap_or(&site),
                flags.last().unwrap_or(&site),
            );
            let span = first.span.start..last.span.end;
            match parse_reflector_flags(flags.iter().map(|flag| flag.value.as_str())) {
                Ok(spec) => {
                    let spec = Spanned { value: spec, span };
                    reflectors.push(LabReflector { site, spec });
                }
                Err(fault) => table.fault(span, fault.message, fault.remedy),
            }
        }
        table.finish();
    }
    fields.finish();
    Some(LabPlan {
        topology: topology?,
        prober: prober?,
        reflectors,
    })
}

fn read_limits(mut fields: Fields<'_>) -> Limits {
    let mut limits = Limits::default();
    if let Some(bound) = fields.optional_with("lateness_p99", positive_span) {
        limits.lateness_p99 = bound.value;
    }
    for (key, limit) in [
        ("steal", &mut limits.steal_percent),
        ("busy", &mut limits.busy_percent),
        ("stamps_missing", &mut limits.timestamps_missing_percent),
    ] {
        if let Some(share) = fields.optional::<Percent>(key) {
            *limit = share.value.0;
        }
    }
    if let Some(min_replies) = fields.optional::<u64>("fewest_replies") {
        limits.min_replies = min_replies.value;
    }
    fields.finish();
    limits
}
