//! From the typed values to their meaning: fills in defaults and reports contradictions.

mod circuits;
mod places;
mod scope;
mod shared;
mod throughput;
mod transfers;

use std::collections::BTreeSet;
use std::ops::Range;

use neph_model::{ByteSize, EchoTo, Parameter, ParameterName, Span};
use neph_text::{Bytes, Fault, Nanos, Problems, Spanned, did_you_mean};

use super::model::{Endpoint, Plan, Skip};
use super::parameter::{PARAMETERS, PlanParameter};
use super::sections::TypedPing;
use super::typed::{TypedAxes, TypedPlan, TypedSkip, Written};
use super::{agents, alarms, compare, fleet, season};
use crate::timetable::UseMode;
use crate::{expand, stress};
use scope::Scope;
use throughput::throughput;

/// The most scenarios a plan may have: a larger report is of no use, and a typing mistake in five
/// lists must not fill the memory.
pub(crate) const MAX_SCENARIOS: u64 = 10_000;
/// The most experiments a campaign may have.
const MAX_EXPERIMENTS: u64 = 1_000_000;
/// As long as a user waits.
const DEFAULT_TIMEOUT: Span = Span::from_secs(5);
const DEFAULT_TRIES: u32 = 3;
const DEFAULT_PING: Span = Span::from_secs(1);

/// Makes a plan of what was typed. Mistakes go into `problems`; with one, the plan is not to be
/// used.
pub(crate) fn plan(typed: TypedPlan, problems: &Problems<'_>) -> Plan {
    let source = problems.source();
    check_top(&typed, problems);
    let endpoints = endpoints(&typed, problems);
    let sites = written(&typed, Parameter::site);
    let key_files = written(&typed, Parameter::key_file);
    let congestion_controls = written(&typed, Parameter::congestion);
    let background_loads = written(&typed, Parameter::stress);
    let names = names(&typed);
    let skip_spans: Vec<Range<usize>> = typed.skips.iter().map(|skip| skip.span.clone()).collect();
    let sections = typed.sections;
    compare::check_sections(&sections, &names, problems);
    fleet::check_trace(&sections, &endpoints, problems);
    let throughput = sections
        .throughput
        .and_then(|typed| throughput(typed, &endpoints, problems));
    let course = typed.course;
    let (block_interval, strict_block_interval) = shared::period(&course, problems);
    fleet::check_pairs(course.pairs.as_ref(), &endpoints, problems);
    let positive =
        |value: Option<Spanned<Nanos>>| value.and_then(|v| above_zero(&v, "time", problems));
    let counted = |key, value: Option<Spanned<u32>>, default| {
        value.map_or(default, |value| at_least_one(&value, key, problems))
    };
    let plan = Plan {
        name: typed.name.unwrap_or_default(),
        text: source.text().to_owned(),
        path: source.name().to_owned(),
        notes: [typed.notes, size_notes(&endpoints)].concat(),
        endpoints,
        skips: skips(typed.skips, &names, problems),
        blocks: counted("blocks", course.blocks, 1),
        block_interval,
        strict_block_interval,
        pause: course.pause.map_or(Span::ZERO, |v| span(v.value)),
        order: course.order.unwrap_or_default(),
        pair_order: course.pairs.map(|pairs| pairs.value).unwrap_or_default(),
        seed: course.seed,
        timeout: positive(course.timeout).unwrap_or(DEFAULT_TIMEOUT),
        tries: counted("tries", course.tries, DEFAULT_TRIES),
        icmp_echo_interval: sections.icmp_echo_interval,
        pings: pings(typed.pings, problems),
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
            match notes.iter_mut().find(|(known, _)| known == reason) {
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
fn names(typed: &TypedPlan) -> Vec<String> {
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
fn written<T: Clone>(typed: &TypedPlan, of: fn(&Parameter) -> Option<&T>) -> Vec<Spanned<T>> {
    let axes = all_axes(typed).into_iter();
    let values = axes.flat_map(|axes| axes.parameters.values().flatten());
    let of_parameter = values.filter_map(|placed| {
        Some(Spanned {
            value: of(&placed.value)?.clone(),
            span: placed.span.clone(),
        })
    });
    of_parameter.collect()
}

fn span(nanos: Nanos) -> Span {
    Span::from_nanos(nanos.0)
}

fn above_zero(value: &Spanned<Nanos>, noun: &str, problems: &Problems<'_>) -> Option<Span> {
    if value.value == Nanos(0) {
        let fault = Fault::new(format!("this {noun} is zero"), "write for example \"25ms\"");
        problems.add(value.span.clone(), fault);
        return None;
    }
    Some(span(value.value))
}

fn at_least_one(value: &Spanned<u32>, noun: &str, problems: &Problems<'_>) -> u32 {
    if value.value == 0 {
        let fault = Fault::new(format!("'{noun}' is zero"), "write 1 or more");
        problems.add(value.span.clone(), fault);
    }
    value.value.max(1)
}

/// Mistakes at the top of a plan that do not depend on the endpoints.
fn check_top(typed: &TypedPlan, problems: &Problems<'_>) {
    stress::check_names(&written(typed, Parameter::stress), problems);
    season::check(&typed.sections, &all_axes(typed), problems);
    shared::check(typed, problems);
    let (sections, sites) = (&typed.sections, written(typed, Parameter::site));
    agents::check(&sections.agents, sections.has_lab, &sites, problems);
    if typed.endpoints.is_empty() {
        for (message, remedy) in scope::without_endpoint(&typed.axes) {
            problems.add(typed.span.clone(), Fault::new(message, remedy));
        }
    }
    one_length(&typed.axes, problems);
    let mut names = BTreeSet::new();
    let titles = typed
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.name.as_ref());
    for name in titles {
        if !names.insert(&name.value) {
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

fn one_length(axes: &TypedAxes, problems: &Problems<'_>) {
    if let (Some(_), Some(messages)) = (&axes.duration, &axes.messages) {
        let message = "both duration and messages are given";
        let fault = Fault::new(
            message,
            "remove one: it follows from the other and the interval",
        );
        problems.add(messages.span.clone(), fault);
    }
}

fn endpoints(typed: &TypedPlan, problems: &Problems<'_>) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for endpoint in &typed.endpoints {
        let (Some(name), Some(written)) = (&endpoint.name, &endpoint.target) else {
            continue;
        };
        let scope = Scope {
            endpoint,
            top: &typed.axes,
            target: &written.value,
            problems,
        };
        let Some(mut axes) = scope.axes() else {
            continue;
        };
        let pause = typed.course.pause.as_ref();
        let pause = pause.map_or(Span::ZERO, |pause| span(pause.value));
        let seasons = &typed.sections.seasons;
        season::apply(&mut axes, seasons, pause, &endpoint.span, problems);
        places::check(&axes, endpoint, typed, problems);
        let (target, site) = places::target(endpoint, &written.value, typed);
        places::without_itself(&mut axes, site.as_deref());
        transfers::set_service_ports(&mut axes, site.as_deref(), endpoint, typed, problems);
        let mode = endpoint.mode.as_ref().or(typed.course.mode.as_ref());
        endpoints.push(Endpoint {
            name: name.value.clone(),
            target,
            address_span: written.span.clone(),
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

fn skips(typed: Vec<TypedSkip>, names: &[String], problems: &Problems<'_>) -> Vec<Skip> {
    let typed = typed.into_iter();
    typed
        .map(|typed_skip| skip(typed_skip, names, problems))
        .collect()
}

fn skip(typed: TypedSkip, known: &[String], problems: &Problems<'_>) -> Skip {
    for name in typed.endpoints.iter().flatten() {
        if !known.contains(&name.value) {
            let message = format!("there is no endpoint '{}' to skip", name.value);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let fault = Fault::new(message, did_you_mean(&name.value, &known));
            problems.add(name.span.clone(), fault);
        }
    }
    let spans = |values: Written<Nanos>| -> Vec<Span> {
        values
            .into_iter()
            .flatten()
            .map(|v| span(v.value))
            .collect()
    };
    let sizes = |values: Written<Bytes>| -> Vec<ByteSize> {
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

fn pings(typed: Vec<TypedPing>, problems: &Problems<'_>) -> Vec<Spanned<EchoTo>> {
    let mut pings: Vec<Spanned<EchoTo>> = Vec::new();
    for ping in typed {
        let interval = ping.interval.as_ref();
        let interval = interval.and_then(|value| above_zero(value, "interval", problems));
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
                interval: interval.unwrap_or(DEFAULT_PING),
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
    range: &Range<usize>,
    skips: &[Range<usize>],
    problems: &Problems<'_>,
) {
    if !problems.is_empty() {
        return;
    }
    let size = expand::size(plan);
    let experiments = size.saturating_mul(u64::from(plan.blocks));
    if size > MAX_SCENARIOS || experiments > MAX_EXPERIMENTS {
        let message = format!("{size} scenarios in {} blocks are too many", plan.blocks);
        let remedy = format!("at most {MAX_SCENARIOS} scenarios and {MAX_EXPERIMENTS} experiments");
        problems.add(range.clone(), Fault::new(message, remedy));
        return;
    }
    fleet::check_rate(plan, range, problems);
    for (skip, span) in plan.skips.iter().zip(skips) {
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
        problems.add(range.clone(), fault);
    }
}
