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
    ANY_CERTIFICATE, ExtraChecks, IPERF3_PORT, Plan, Sections, THROUGHPUT_DURATION, TypedAxes,
    TypedEndpoint, TypedPing, TypedPlan, TypedRunSettings, TypedThroughput, host, interpret,
    single_line_text, target as plan_target, target_fault,
};
use plot::plot;

const MINUTE_NS: i64 = 60_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;
/// Reply payload when none is given, as the Latency Tester's client flag has it (thesis, table 4.2).
const DEFAULT_RESPONSE_BYTES: u64 = 64;
/// The path at which the Latency Tester's server answers; a neph reflector answers at every path.
const ECHO_PATH: &str = "/echo";

/// Reads a settings file. Never panics, for any text.
///
/// # Errors
/// Every mistake, by place.
pub fn parse(source: &Source) -> Result<Plan, Vec<Problem>> {
    parse_with(source, &|_, _| ())
}

pub(crate) fn parse_with(
    source: &Source,
    extra_checks: ExtraChecks<'_>,
) -> Result<Plan, Vec<Problem>> {
    let problems = Problems::new(source);
    let node = parse_yaml(&problems);
    if !problems.is_empty() {
        return problems.verdict(None);
    }
    let Some(fields) = Fields::of(&node, &problems) else {
        return problems.verdict(None);
    };
    let plan = interpret(read(fields), &problems);
    extra_checks(&plan, &problems);
    problems.verdict(Some(plan))
}

fn read(mut fields: Fields<'_>) -> TypedPlan {
    let mut notes = Vec::new();
    let mut endpoints = endpoints(&mut fields);
    set_trust(&mut fields, &mut endpoints, &mut notes);
    let mut axes = axes(&mut fields);
    let run_settings = run_settings(&mut fields, &mut axes, endpoints.len());
    let pings = pings(&mut fields);
    let throughput = throughput(&mut fields);
    let span = fields.span();
    let plot = plot(&mut fields, &mut notes);
    note_ignored_settings(&mut fields, &mut notes);
    let source = fields.problems().source();
    let typed = TypedPlan {
        span: span.clone(),
        name: Some(plan_name(source.name())),
        run_settings,
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
    let without_path = written.trim_end_matches(ECHO_PATH);
    without_path
        .split_once("://")
        .map_or(without_path, |(_, authority)| authority)
        .to_owned()
}

/// The settings have no name: the file's name replaces it.
fn plan_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    if stem.is_empty() {
        "latency-tester".to_owned()
    } else {
        stem.to_owned()
    }
}

/// A whole number of `unit_ns` nanoseconds, at least 1.
fn duration_in(node: &Node, unit_ns: i64) -> Result<Nanos, Fault> {
    let count = match u32::from_node(node)? {
        0 => return Err(Fault::new("this time is zero", "write 1 or more")),
        count => i64::from(count),
    };
    Ok(Nanos(count.saturating_mul(unit_ns)))
}

/// Like [`duration_in`], where 0 means that the value is to be chosen.
fn optional_duration_in(
    fields: &mut Fields<'_>,
    key: &'static str,
    unit_ns: i64,
) -> Option<Spanned<Nanos>> {
    let value = fields.optional_with(key, |node| match node.value {
        Value::Integer(0) | Value::Nothing => Ok(None),
        _ => duration_in(node, unit_ns).map(Some),
    })?;
    value.value.map(|nanos| Spanned {
        value: nanos,
        span: value.span,
    })
}

fn axes(fields: &mut Fields<'_>) -> TypedAxes {
    let mut axes = TypedAxes::default();
    if fields.needed("intervals").is_some() {
        let intervals =
            fields.one_or_list_with("intervals", |node| duration_in(node, MILLISECOND_NS));
        axes.intervals = Some(intervals.unwrap_or_default());
    } else {
        axes.intervals = Some(Vec::new());
    }
    if fields.needed("msg_sizes").is_some() {
        axes.request_sizes = fields.one_or_list::<Bytes>("msg_sizes");
    }
    let response = fields.optional::<Bytes>("response_size");
    axes.response_sizes = Some(vec![response.unwrap_or(Spanned {
        value: Bytes(DEFAULT_RESPONSE_BYTES),
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
fn run_settings(
    fields: &mut Fields<'_>,
    axes: &mut TypedAxes,
    endpoint_count: usize,
) -> TypedRunSettings {
    let blocks = fields.required::<u32>("runs");
    let has_duration_key =
        fields.entry("runs_interval").is_some() || fields.entry("runs_step_duration").is_some();
    let interval = optional_duration_in(fields, "runs_interval", MINUTE_NS);
    let step = optional_duration_in(fields, "runs_step_duration", SECOND_NS);
    let value_counts = [
        &axes.intervals.as_ref().map(Vec::len),
        &axes.request_sizes.as_ref().map(Vec::len),
    ];
    let step_count = value_counts
        .iter()
        .map(|n| n.unwrap_or(1).max(1))
        .product::<usize>()
        * endpoint_count.max(1);
    let step_count = i64::try_from(step_count).unwrap_or(i64::MAX);
    let inferred_duration = |nanos: i64, span| Spanned {
        value: Nanos(nanos),
        span,
    };
    let (interval, step) = match (interval, step) {
        (None, None) => {
            if !has_duration_key || fields.problems().is_empty() {
                let message = "neither runs_interval nor runs_step_duration is given";
                fields.fault(fields.span(), message, "add runs_step_duration: 30");
            }
            (None, None)
        }
        (Some(interval), None) => {
            // Whole seconds, as the Latency Tester counts them.
            let nanos = interval.value.0 / step_count / SECOND_NS * SECOND_NS;
            let step = inferred_duration(nanos, interval.span.clone());
            (Some(interval), Some(step))
        }
        (None, Some(step)) => {
            let run_ns = step.value.0.saturating_mul(step_count);
            let minutes = run_ns / MINUTE_NS + i64::from(run_ns % MINUTE_NS > 0);
            (
                Some(inferred_duration(
                    minutes.saturating_mul(MINUTE_NS),
                    step.span.clone(),
                )),
                Some(step),
            )
        }
        pair => pair,
    };
    axes.has_length = true;
    axes.duration = step;
    TypedRunSettings {
        blocks,
        block_interval: interval,
        ..TypedRunSettings::default()
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
            let name = table.required_with("description", single_line_text);
            let target = table.required_with("destination", |node| target(node, scheme));
            let span = table.span();
            table.finish();
            TypedEndpoint {
                span,
                name,
                target,
                site: None,
                mode: None,
                axes: TypedAxes::default(),
            }
        })
        .collect()
}

fn target(node: &Node, scheme: &str) -> Result<Target, Fault> {
    let destination = single_line_text(node)?;
    if let Some((written_scheme, authority)) = destination.split_once("://") {
        let message = format!("a destination has no scheme, but here is '{written_scheme}'");
        return Err(Fault::new(
            message,
            format!("write \"{authority}\", and tls_enabled for TLS"),
        ));
    }
    plan_target(&format!("{scheme}://{destination}{ECHO_PATH}"))
}

/// Which certificates are trusted: any, as the Latency Tester does, unless the file has neph's keys
/// (`ca_file`, `insecure: false`). A note warns where any is accepted.
fn set_trust(fields: &mut Fields<'_>, endpoints: &mut [TypedEndpoint], notes: &mut Vec<String>) {
    let ca_file = fields.optional_with("ca_file", single_line_text);
    let insecure = fields.optional::<bool>("insecure");
    let has_ca_file = ca_file.is_some();
    let accepts_any = insecure.map_or(!has_ca_file, |insecure| insecure.value);
    let is_secure = |e: &TypedEndpoint| e.target.as_ref().is_some_and(|t| t.value.is_secure());
    let mut secure_endpoints = endpoints
        .iter_mut()
        .filter(|endpoint| is_secure(endpoint))
        .peekable();
    if secure_endpoints.peek().is_some() && accepts_any {
        notes.push(format!(
            "{ANY_CERTIFICATE}, as by the Latency Tester: anybody on the path can impersonate the \
             server. Write ca_file: FILE (or --ca-file FILE) for your own authority, or insecure: \
             false to verify by the public ones"
        ));
    }
    for endpoint in secure_endpoints {
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
    let interval = optional_duration_in(fields, "ping_interval", SECOND_NS);
    let tables = fields.tables("ping_destinations");
    tables
        .into_iter()
        .map(|mut table| {
            let own_interval = optional_duration_in(&mut table, "ping_interval", SECOND_NS);
            let ping = TypedPing {
                name: table.required_with("name", single_line_text),
                address: table.required_with("ip", host),
                interval: own_interval.or_else(|| interval.clone()),
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
        let name = table.required_with("name", single_line_text);
        let ip = table.required_with("ip", |node| {
            let text = single_line_text(node)?;
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
fn note_ignored_settings(fields: &mut Fields<'_>, notes: &mut Vec<String>) {
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
