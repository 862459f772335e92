//! From the typed values to their meaning: fills in defaults and reports contradictions.

mod circuits;
mod scope;
mod shared;
mod sites;
mod throughput;
mod transfers;

use std::collections::BTreeSet;
use std::ops::Range;

use neph_model::{ByteSize, EchoTo, Parameter, ParameterName, Span};
use neph_text::{Bytes, Fault, Nanos, Problems, Spanned, did_you_mean};

use super::model::{Endpoint, Plan, Skip};
use super::parameter::{PARAMETERS, PlanParameter};
use super::sections::TypedPing;
use super::typed::{TypedAxes, TypedPlan, TypedSkip, WrittenValues};
use super::{agents, alarms, compare, fleet, season};
use crate::timetable::UseMode;
use crate::{expand, stress};
use scope::Scope;
use throughput::interpret_throughput;

/// The most scenarios a plan may have: a larger report is of no use, and a typing mistake in five
/// lists must not fill the memory.
pub(crate) const MAX_SCENARIOS: u64 = 10_000;
/// The most experiments a campaign may have.
const MAX_EXPERIMENTS: u64 = 1_000_000;
/// As long as a user waits.
const DEFAULT_TIMEOUT: Span = Span::from_secs(5);
const DEFAULT_TRIES: u32 = 3;
const DEFAULT_PING_INTERVAL: Span = Span::from_secs(1);

/// Makes a plan of what was typed. Mistakes go into `problems`; with one, the plan is not to be
/// used.
pub(crate) fn plan(typed: TypedPlan, problems: &Problems<'_>) -> Plan {
    let source = problems.source();
    check_top(&typed, problems);
    let endpoints = interpret_endpoints(&typed, problems);
    let sites = written_values(&typed, Parameter::site);
    let key_files = written_values(&typed, Parameter::key_file);
    let congestion_controls = written_values(&typed, Parameter::congestion);
    let background_loads = written_values(&typed, Parameter::stress);
    let endpoint_names = endpoint_names(&typed);
    let skip_spans: Vec<Range<usize>> = typed.skips.iter().map(|skip| skip.span.clone()).collect();
    let sections = typed.sections;
    compare::check_sections(&sections, &endpoint_names, problems);
    fleet::check_trace(&sections, &endpoints, problems);
    let throughput = sections
        .throughput
        .and_then(|typed| interpret_throughput(typed, &endpoints, problems));
    let settings = typed.run_settings;
    let (block_interval, strict_block_interval) = shared::interpret_period(&settings, problems);
    fleet::check_pairs(settings.pairs.as_ref(), &endpoints, problems);
    let positive_span =
        |value: Option<Spanned<Nanos>>| value.and_then(|v| require_positive(&v, "time", problems));
    let count_or_default = |key, value: Option<Spanned<u32>>, default| {
        value.map_or(default, |value| require_at_least_one(&value, key, problems))
    };
    let plan = Plan {
        name: typed.name.unwrap_or_default(),
        text: source.text().to_owned(),
        path: source.name().to_owned(),
        notes: [typed.notes, size_notes(&endpoints)].concat(),
        endpoints,
        skips: interpret_skips(typed.skips, &endpoint_names, problems),
        blocks: count_or_default("blocks", settings.blocks, 1),
        block_interval,
        strict_block_interval,
        pause: settings.pause.map_or(Span::ZERO, |v| span(v.value)),
        order: settings.order.unwrap_or_default(),
        pair_order: settings.pairs.map(|pairs| pairs.value).unwrap_or_default(),
        seed: settings.seed,
        timeout: positive_span(settings.timeout).unwrap_or(DEFAULT_TIMEOUT),
        tries: count_or_default("tries", settings.tries, DEFAULT_TRIES),
        icmp_echo_interval: sections.icmp_echo_interval,
        pings: interpret_pings(typed.pings, problems),
        throughput,
        traceroute: sections.traceroute,
        flow_trace: sections.flow_trace.map(|trace| trace.value),
        plot: sections.plot,
        compares: sections.compares,
        baseline: sections.baseline.map(|name| name.value),
        seasons: sections.seasons,
        lab: sections.lab,
        agents: sections.agents,
        shared: sections.shared,
        referenced_sites: sites,
        key_files,
        congestion_controls,
        background_loads,
        limits: sections.limits,
    };
    check_blocks(&plan, &sections.plot_span, problems);
    check_matrix(&plan, &typed.span, &skip_spans, problems);
    plan
}

/// Sizes that are not sent as the plan asks for them; endpoints with the same reason share a note.
fn size_notes(endpoints: &[Endpoint]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for endpoint in endpoints {
        for reason in &endpoint.axes.size_notes {
            match notes.iter_mut().find(|(noted, _)| noted == reason) {
                Some((_, names)) => names.push(&endpoint.name),
                None => notes.push((reason, vec![&endpoint.name])),
            }
        }
    }
    let note = |(reason, names): &(&str, Vec<&str>)| match names.as_slice() {
        [only] => format!("endpoint '{only}': {reason}"),
        [first, others @ ..] => format!("endpoint '{first}' and {} more: {reason}", others.len()),
        [] => String::new(),
    };
    notes.iter().map(note).collect()
}

/// Blocks that the report is to show must be there.
fn check_blocks(plan: &Plan, plot_span: &Range<usize>, problems: &Problems<'_>) {
    for block in &plan.plot.blocks {
        if *block >= plan.blocks {
            let message = format!(
                "block {} is to be shown, but there are {}",
                u64::from(*block) + 1,
                plan.blocks
            );
            problems.add(
                plot_span.clone(),
                Fault::new(message, "name blocks of this plan"),
            );
        }
    }
}

/// The names of the endpoints, even if they have mistakes.
fn endpoint_names(typed: &TypedPlan) -> Vec<String> {
    let names = typed
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.name.as_ref());
    names.map(|name| name.value.clone()).collect()
}

/// What stands at the top, and in each endpoint.
fn all_axes(typed: &TypedPlan) -> Vec<&TypedAxes> {
    let endpoint_axes = typed.endpoints.iter().map(|endpoint| &endpoint.axes);
    std::iter::once(&typed.axes).chain(endpoint_axes).collect()
}

/// Every value of a parameter, at the top and in the endpoints.
fn written_values<T: Clone>(
    typed: &TypedPlan,
    select: fn(&Parameter) -> Option<&T>,
) -> Vec<Spanned<T>> {
    let axes = all_axes(typed).into_iter();
    let values = axes.flat_map(|axes| axes.parameters.values().flatten());
    let selected_values = values.filter_map(|placed| {
        Some(Spanned {
            value: select(&placed.value)?.clone(),
            span: placed.span.clone(),
        })
    });
    selected_values.collect()
}

fn span(nanos: Nanos) -> Span {
    Span::from_nanos(nanos.0)
}

fn require_positive(value: &Spanned<Nanos>, noun: &str, problems: &Problems<'_>) -> Option<Span> {
    if value.value == Nanos(0) {
        let fault = Fault::new(format!("this {noun} is zero"), "write for example \"25ms\"");
        problems.add(value.span.clone(), fault);
        return None;
    }
    Some(span(value.value))
}

fn require_at_least_one(value: &Spanned<u32>, noun: &str, problems: &Problems<'_>) -> u32 {
    if value.value == 0 {
        let fault = Fault::new(format!("'{noun}' is zero"), "write 1 or more");
        problems.add(value.span.clone(), fault);
    }
    value.value.max(1)
}

/// Mistakes at the top of a plan that do not depend on the endpoints.
fn check_top(typed: &TypedPlan, problems: &Problems<'_>) {
    stress::check_names(&written_values(typed, Parameter::stress), problems);
    season::check(&typed.sections, &all_axes(typed), problems);
    shared::check(typed, problems);
    let (sections, sites) = (&typed.sections, written_values(typed, Parameter::site));
    agents::check(&sections.agents, sections.has_lab, &sites, problems);
    if typed.endpoints.is_empty() {
        for (message, remedy) in scope::faults_without_endpoint(&typed.axes) {
            problems.add(typed.span.clone(), Fault::new(message, remedy));
        }
    }
    scope::check_single_length(&typed.axes, problems);
    let mut distinct_names = BTreeSet::new();
    let names = typed
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.name.as_ref());
    for name in names {
        if !distinct_names.insert(&name.value) {
            let message = format!("two endpoints are called '{}'", name.value);
            problems.add(
                name.span.clone(),
                Fault::new(message, "give each its own name"),
            );
        }
    }
    for (name, values) in &typed.axes.parameters {
        let parameter = find_parameter(*name);
        let targets = typed.endpoints.iter().filter_map(|e| e.target.as_ref());
        let mut targets = targets.map(|target| &target.value).peekable();
        if targets.peek().is_some() && !targets.any(parameter.is_supported_by) {
            let message = format!(
                "'{name}' fits no endpoint: {}",
                parameter.unsupported_reason
            );
            problems.add(values[0].span.clone(), Fault::new(message, "remove it"));
        }
    }
}

fn find_parameter(name: ParameterName) -> &'static PlanParameter {
    PARAMETERS
        .iter()
        .find(|parameter| parameter.name == name)
        .expect("only names of the table are read")
}

fn interpret_endpoints(typed: &TypedPlan, problems: &Problems<'_>) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for endpoint in &typed.endpoints {
        let (Some(name), Some(written_target)) = (&endpoint.name, &endpoint.target) else {
            continue;
        };
        let scope = Scope {
            endpoint,
            top: &typed.axes,
            target: &written_target.value,
            problems,
        };
        let Some(mut axes) = scope.axes() else {
            continue;
        };
        let pause = typed.run_settings.pause.as_ref();
        let pause = pause.map_or(Span::ZERO, |pause| span(pause.value));
        let seasons = &typed.sections.seasons;
        season::apply(&mut axes, seasons, pause, &endpoint.span, problems);
        sites::check(&axes, endpoint, typed, problems);
        let (target, site) = sites::resolve_target(endpoint, &written_target.value, typed);
        sites::exclude_own_site(&mut axes, site.as_deref());
        transfers::set_service_ports(&mut axes, site.as_deref(), endpoint, typed, problems);
        let mode = endpoint.mode.as_ref().or(typed.run_settings.mode.as_ref());
        endpoints.push(Endpoint {
            name: name.value.clone(),
            target,
            address_span: written_target.span.clone(),
            site,
            mode: mode.map_or(UseMode::Latency, |mode| mode.value),
            axes,
            alarms: alarms::endpoint_alarms(&endpoint.axes, &typed.axes),
        });
    }
    alarms::check(typed, &endpoints, problems);
    circuits::check(&endpoints, problems);
    endpoints
}

fn interpret_skips(
    typed: Vec<TypedSkip>,
    endpoint_names: &[String],
    problems: &Problems<'_>,
) -> Vec<Skip> {
    let typed = typed.into_iter();
    typed
        .map(|typed_skip| interpret_skip(typed_skip, endpoint_names, problems))
        .collect()
}

fn interpret_skip(typed: TypedSkip, known_names: &[String], problems: &Problems<'_>) -> Skip {
    for name in typed.endpoints.iter().flatten() {
        if !known_names.contains(&name.value) {
            let message = format!("there is no endpoint '{}' to skip", name.value);
            let known_names: Vec<&str> = known_names.iter().map(String::as_str).collect();
            let fault = Fault::new(message, did_you_mean(&name.value, &known_names));
            problems.add(name.span.clone(), fault);
        }
    }
    let spans = |values: WrittenValues<Nanos>| -> Vec<Span> {
        values
            .into_iter()
            .flatten()
            .map(|v| span(v.value))
            .collect()
    };
    let sizes = |values: WrittenValues<Bytes>| -> Vec<ByteSize> {
        values
            .into_iter()
            .flatten()
            .map(|v| ByteSize(v.value.0))
            .collect()
    };
    let skip = Skip {
        endpoints: typed
            .endpoints
            .into_iter()
            .flatten()
            .map(|v| v.value)
            .collect(),
        intervals: spans(typed.axes.intervals),
        request_sizes: sizes(typed.axes.request_sizes),
        response_sizes: sizes(typed.axes.response_sizes),
        parameters: typed
            .axes
            .parameters
            .into_iter()
            .map(|(name, values)| (name, values.into_iter().map(|v| v.value).collect()))
            .collect(),
    };
    if skip == Skip::default() && problems.is_empty() {
        let fault = Fault::new(
            "this skips everything",
            "name an endpoint, interval or size",
        );
        problems.add(typed.span, fault);
    }
    skip
}

fn interpret_pings(typed: Vec<TypedPing>, problems: &Problems<'_>) -> Vec<Spanned<EchoTo>> {
    let mut pings: Vec<Spanned<EchoTo>> = Vec::new();
    for ping in typed {
        let interval = ping.interval.as_ref();
        let interval = interval.and_then(|value| require_positive(value, "interval", problems));
        let (Some(name), Some(address)) = (ping.name, ping.address) else {
            continue;
        };
        if pings.iter().any(|other| other.value.name == name.value) {
            let message = format!("two pings are called '{}'", name.value);
            problems.add(name.span, Fault::new(message, "give each its own name"));
            continue;
        }
        pings.push(Spanned {
            value: EchoTo {
                name: name.value,
                host: address.value,
                interval: interval.unwrap_or(DEFAULT_PING_INTERVAL),
            },
            span: address.span,
        });
    }
    pings
}

/// Size of the matrix, and skips that skip nothing or everything. Only of a plan without other
/// mistakes: theirs would follow from those.
fn check_matrix(
    plan: &Plan,
    plan_span: &Range<usize>,
    skip_spans: &[Range<usize>],
    problems: &Problems<'_>,
) {
    if !problems.is_empty() {
        return;
    }
    let size = expand::matrix_size(plan);
    let experiments = size.saturating_mul(u64::from(plan.blocks));
    if size > MAX_SCENARIOS || experiments > MAX_EXPERIMENTS {
        let message = format!("{size} scenarios in {} blocks are too many", plan.blocks);
        let remedy = format!("at most {MAX_SCENARIOS} scenarios and {MAX_EXPERIMENTS} experiments");
        problems.add(plan_span.clone(), Fault::new(message, remedy));
        return;
    }
    fleet::check_rate(plan, plan_span, problems);
    for (skip, span) in plan.skips.iter().zip(skip_spans) {
        if !expand::matches_any(plan, skip) {
            let fault = Fault::new(
                "this skip matches no scenario",
                "remove it or correct its values",
            );
            problems.add(span.clone(), fault);
        }
    }
    if expand::scenarios(plan).is_empty() {
        let fault = Fault::new("every scenario is skipped", "remove a skip");
        problems.add(plan_span.clone(), fault);
    }
}
