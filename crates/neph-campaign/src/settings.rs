//! The Latency Tester's settings file (YAML, thesis section 4.4), accepted as it is.
//!
//! Every field of the thesis is taken, those for plotting included, and the per-endpoint
//! `tls_enabled` of later versions. What is missing is inferred as the Latency Tester infers it:
//! a run interval from the step duration (rounded up to a minute), or the other way round.

mod plot;

use std::num::NonZeroU16;

use neph_model::{
    Parameter, Target, ThroughputServer, ThroughputTool, port_number, split_authority,
};
use neph_text::{
    Bytes, Fault, Fields, FromNode, Nanos, Node, Port, Problem, Problems, Source, Spanned, Value,
    parse_yaml,
};

use crate::plan::{
    ANY_CERTIFICATE, Also, IPERF3_PORT, Plan, Sections, THROUGHPUT_DURATION, TypedAxes,
    TypedCourse, TypedEndpoint, TypedPing, TypedPlan, TypedThroughput, host, interpret,
    target as plan_target, target_fault, word,
};
use plot::plot;

const MINUTE: i64 = 60_000_000_000;
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;
/// Reply payload when none is given, as the Latency Tester's client flag has it (thesis, table 4.2).
const DEFAULT_RESPONSE: u64 = 64;
/// The path at which the Latency Tester's server answers; a neph reflector answers at every path.
const PATH: &str = "/echo";

/// Reads a settings file. Never panics, for any text.
///
/// # Errors
/// Every mistake, by place.
pub fn parse(source: &Source) -> Result<Plan, Vec<Problem>> {
    parse_with(source, &|_, _| ())
}

pub(crate) fn parse_with(source: &Source, also: Also<'_>) -> Result<Plan, Vec<Problem>> {
    let problems = Problems::new(source);
    let node = parse_yaml(&problems);
    if !problems.is_empty() {
        return problems.verdict(None);
    }
    let Some(fields) = Fields::of(&node, &problems) else {
        return problems.verdict(None);
    };
    let plan = interpret(read(fields), &problems);
    also(&plan, &problems);
    problems.verdict(Some(plan))
}

fn read(mut fields: Fields<'_>) -> TypedPlan {
    let mut notes = Vec::new();
    let mut endpoints = endpoints(&mut fields);
    trust(&mut fields, &mut endpoints, &mut notes);
    let mut axes = axes(&mut fields);
    let course = course(&mut fields, &mut axes, endpoints.len());
    let pings = pings(&mut fields);
    let throughput = throughput(&mut fields);
    let span = fields.span();
    let plot = plot(&mut fields, &mut notes);
    without_effect(&mut fields, &mut notes);
    let source = fields.problems().source();
    let typed = TypedPlan {
        span: span.clone(),
        name: Some(name_of(source.name())),
        course,
        axes,
        endpoints,
        skips: Vec::new(),
        pings,
        sections: Sections {
            throughput,
            plot,
            plot_span: span,
            ..Sections::default()
        },
        notes,
    };
    fields.finish();
    typed
}

/// What a settings file writes as the destination of an endpoint with this target.
pub fn destination(target: &Target) -> String {
    let written = target.written();
    let text = written.trim_end_matches(PATH);
    text.split_once("://")
        .map_or(text, |(_, rest)| rest)
        .to_owned()
}

/// The settings have no name: the file's name replaces it.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    if stem.is_empty() {
        "latency-tester".to_owned()
    } else {
        stem.to_owned()
    }
}

/// A whole number of `unit` nanoseconds, at least 1.
fn times(node: &Node, unit: i64) -> Result<Nanos, Fault> {
    let count = match u32::from_node(node)? {
        0 => return Err(Fault::new("this time is zero", "write 1 or more")),
        count => i64::from(count),
    };
    Ok(Nanos(count.saturating_mul(unit)))
}

/// Like [`times`], where 0 means that the value is to be chosen.
fn times_or_none(fields: &mut Fields<'_>, key: &'static str, unit: i64) -> Option<Spanned<Nanos>> {
    let value = fields.optional_with(key, |node| match node.value {
        Value::Integer(0) | Value::Nothing => Ok(None),
        _ => times(node, unit).map(Some),
    })?;
    value.value.map(|nanos| Spanned {
        value: nanos,
        span: value.span,
    })
}

fn axes(fields: &mut Fields<'_>) -> TypedAxes {
    let mut axes = TypedAxes::default();
    if fields.needed("intervals").is_some() {
        let read = fields.one_or_list_with("intervals", |node| times(node, MILLISECOND));
        axes.intervals = Some(read.unwrap_or_default());
    } else {
        axes.intervals = Some(Vec::new());
    }
    if fields.needed("msg_sizes").is_some() {
        axes.request_sizes = fields.one_or_list::<Bytes>("msg_sizes");
    }
    let response = fields.optional::<Bytes>("response_size");
    axes.response_sizes = Some(vec![response.unwrap_or(Spanned {
        value: Bytes(DEFAULT_RESPONSE),
        span: 0..0,
    })]);
    let port = fields.optional_with("source_port", |node| match node.value {
        Value::Integer(0) | Value::Nothing => Ok(None),
        _ => Port::from_node(node).map(Some),
    });
    if let Some((Some(Port(port)), span)) = port.map(|port| (port.value, port.span)) {
        let value = Parameter::SourcePort(NonZeroU16::new(port).expect("not 0"));
        axes.fix(Spanned { value, span });
    }
    axes
}

/// Runs, and the two times of which one may be inferred.
fn course(fields: &mut Fields<'_>, axes: &mut TypedAxes, endpoints: usize) -> TypedCourse {
    let blocks = fields.required::<u32>("runs");
    let given =
        fields.entry("runs_interval").is_some() || fields.entry("runs_step_duration").is_some();
    let interval = times_or_none(fields, "runs_interval", MINUTE);
    let step = times_or_none(fields, "runs_step_duration", SECOND);
    let lengths = [
        &axes.intervals.as_ref().map(Vec::len),
        &axes.request_sizes.as_ref().map(Vec::len),
    ];
    let steps = lengths
        .iter()
        .map(|n| n.unwrap_or(1).max(1))
        .product::<usize>()
        * endpoints.max(1);
    let steps = i64::try_from(steps).unwrap_or(i64::MAX);
    let infer = |nanos: i64, span| Spanned {
        value: Nanos(nanos),
        span,
    };
    let (interval, step) = match (interval, step) {
        (None, None) => {
            if !given || fields.problems().is_empty() {
                let message = "neither runs_interval nor runs_step_duration is given";
                fields.fault(fields.span(), message, "add runs_step_duration: 30");
            }
            (None, None)
        }
        (Some(interval), None) => {
            // Whole seconds, as the Latency Tester counts them.
            let nanos = interval.value.0 / steps / SECOND * SECOND;
            let step = infer(nanos, interval.span.clone());
            (Some(interval), Some(step))
        }
        (None, Some(step)) => {
            let run = step.value.0.saturating_mul(steps);
            let minutes = run / MINUTE + i64::from(run % MINUTE > 0);
            (
                Some(infer(minutes.saturating_mul(MINUTE), step.span.clone())),
                Some(step),
            )
        }
        pair => pair,
    };
    axes.length_written = true;
    axes.duration = step;
    TypedCourse {
        blocks,
        block_interval: interval,
        ..TypedCourse::default()
    }
}

fn endpoints(fields: &mut Fields<'_>) -> Vec<TypedEndpoint> {
    let all_tls = fields
        .optional::<bool>("tls_enabled")
        .is_some_and(|tls| tls.value);
    let tables = fields.tables("endpoints");
    tables
        .into_iter()
        .map(|mut table| {
            let tls = table
                .optional::<bool>("tls_enabled")
                .map_or(all_tls, |tls| tls.value);
            let scheme = if tls { "wss" } else { "ws" };
            let name = table.required_with("description", word);
            let target = table.required_with("destination", |node| target(node, scheme));
            let span = table.span();
            table.finish();
            TypedEndpoint {
                span,
                name,
                target,
                at: None,
                mode: None,
                axes: TypedAxes::default(),
            }
        })
        .collect()
}

fn target(node: &Node, scheme: &str) -> Result<Target, Fault> {
    let destination = word(node)?;
    if let Some((written, rest)) = destination.split_once("://") {
        let message = format!("a destination has no scheme, but here is '{written}'");
        return Err(Fault::new(
            message,
            format!("write \"{rest}\", and tls_enabled for TLS"),
        ));
    }
    plan_target(&format!("{scheme}://{destination}{PATH}"))
}

/// Which certificates are trusted: any, as the Latency Tester does, unless the file has neph's keys
/// (`ca_file`, `insecure: false`). A note warns where any is accepted.
fn trust(fields: &mut Fields<'_>, endpoints: &mut [TypedEndpoint], notes: &mut Vec<String>) {
    let ca_file = fields.optional_with("ca_file", word);
    let insecure = fields.optional::<bool>("insecure");
    let is_verified = ca_file.is_some();
    let accepts_any = insecure.map_or(!is_verified, |insecure| insecure.value);
    let is_secure = |e: &TypedEndpoint| e.target.as_ref().is_some_and(|t| t.value.is_secure());
    let mut secure = endpoints
        .iter_mut()
        .filter(|endpoint| is_secure(endpoint))
        .peekable();
    if secure.peek().is_some() && accepts_any {
        notes.push(format!(
            "{ANY_CERTIFICATE}, as by the Latency Tester: anybody on the path can impersonate the \
             server. Write ca_file: FILE (or --ca-file FILE) for your own authority, or insecure: \
             false to verify by the public ones"
        ));
    }
    for endpoint in secure {
        let span = endpoint.span.clone();
        let value = match &ca_file {
            Some(file) if !accepts_any => Parameter::CaFile(file.value.clone()),
            _ if accepts_any => Parameter::Insecure(true),
            _ => continue,
        };
        endpoint.axes.fix(Spanned { value, span });
    }
}

fn pings(fields: &mut Fields<'_>) -> Vec<TypedPing> {
    let interval = times_or_none(fields, "ping_interval", SECOND);
    let tables = fields.tables("ping_destinations");
    tables
        .into_iter()
        .map(|mut table| {
            let intervals = times_or_none(&mut table, "ping_interval", SECOND);
            let ping = TypedPing {
                name: table.required_with("name", word),
                address: table.required_with("ip", host),
                interval: intervals.or_else(|| interval.clone()),
            };
            table.finish();
            ping
        })
        .collect()
}

fn throughput(fields: &mut Fields<'_>) -> Option<TypedThroughput> {
    let span = fields.entry("iperf_destinations")?.node.span.clone();
    let mut servers = Vec::new();
    for mut table in fields.tables("iperf_destinations") {
        let name = table.required_with("name", word);
        let ip = table.required_with("ip", |node| {
            let text = word(node)?;
            split_authority(&text)
                .map(|(host, _)| host)
                .map_err(target_fault)
        });
        let port = table.optional_with("port", iperf_port);
        if let (Some(name), Some(ip)) = (name, ip) {
            servers.push(Spanned {
                value: ThroughputServer {
                    name: name.value,
                    host: ip.value,
                    port: port.map_or(IPERF3_PORT, |port| port.value),
                },
                span: ip.span,
            });
        }
        table.finish();
    }
    // An empty list, or one whose mistakes were reported.
    (!servers.is_empty()).then_some(TypedThroughput {
        span,
        duration: THROUGHPUT_DURATION,
        tool: ThroughputTool::Iperf3,
        servers,
    })
}

/// `"80"` or 80; an empty text is iperf3's own.
fn iperf_port(node: &Node) -> Result<u16, Fault> {
    match &node.value {
        Value::Text(text) if text.is_empty() => Ok(IPERF3_PORT),
        Value::Text(text) => port_number(text).map_err(target_fault),
        _ => Port::from_node(node).map(|Port(port)| port),
    }
}

/// Settings that are taken and need nothing done.
fn without_effect(fields: &mut Fields<'_>, notes: &mut Vec<String>) {
    notes.push("blocks are shuffled; the Latency Tester's order is --order sequential".to_owned());
    if fields
        .optional::<bool>("tcpdump_enabled")
        .is_some_and(|on| !on.value)
    {
        notes.push(
            "tcpdump_enabled: false has no effect: acknowledgement times come from the kernel \
             at no cost"
                .to_owned(),
        );
    }
    if let Some(folder) = fields.optional::<String>("exec_dir") {
        notes.push(format!(
            "exec_dir {} has no effect: results go to the workspace",
            folder.value
        ));
    }
}

#[cfg(test)]
mod tests;
