//! What was typed: a plan's fields with their places, before they mean anything together.
//!
//! Owns the names of keys and the types of single values. Both the TOML plan and the Latency
//! Tester's settings become this, so that what contradicts itself is found in one place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use neph_model::alarm::Rule;
use neph_model::{BlockOrder, Parameter, ParameterName, Span, Target};
use neph_text::{Bytes, Fields, Nanos, Spanned, choice};

use super::parameter::{PARAMETERS, PlanParameter, target};
use super::sections::{self, Sections, TypedPing};
use super::single_line_text::single_line_text;
use super::{PairOrder, alarms, shared};
use crate::alarm_evaluator::AlarmQuantity;
use crate::timetable::UseMode;

/// Values of one key: `None` if it is not written, empty if what is written is a mistake.
pub(crate) type WrittenValues<T> = Option<Vec<Spanned<T>>>;

/// What multiplies, at the top of a plan or in one endpoint.
#[derive(Debug, Default)]
pub(crate) struct TypedAxes {
    pub(crate) intervals: WrittenValues<Nanos>,
    pub(crate) request_sizes: WrittenValues<Bytes>,
    pub(crate) response_sizes: WrittenValues<Bytes>,
    pub(crate) duration: Option<Spanned<Nanos>>,
    pub(crate) messages: Option<Spanned<u64>>,
    /// Whether a length is written at all, right or wrong.
    pub(crate) has_length: bool,
    pub(crate) parameters: BTreeMap<ParameterName, Vec<Spanned<Parameter>>>,
    /// Rules that multiply nothing; an empty list is what was written, or a mistake.
    pub(crate) alarms: WrittenValues<Rule<AlarmQuantity>>,
    /// Parameters that are written and mean nothing: what follows from their absence is no mistake.
    pub(crate) invalid_parameters: BTreeSet<ParameterName>,
}

impl TypedAxes {
    /// Gives a parameter this value and no other.
    pub(crate) fn fix(&mut self, value: Spanned<Parameter>) {
        self.parameters.insert(value.value.name(), vec![value]);
    }
}

#[derive(Debug)]
pub(crate) struct TypedEndpoint {
    pub(crate) span: Range<usize>,
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) target: Option<Spanned<Target>>,
    /// The site that it is at.
    pub(crate) site: Option<Spanned<String>>,
    pub(crate) mode: Option<Spanned<UseMode>>,
    pub(crate) axes: TypedAxes,
}

#[derive(Debug)]
pub(crate) struct TypedSkip {
    pub(crate) span: Range<usize>,
    pub(crate) endpoints: WrittenValues<String>,
    pub(crate) axes: TypedAxes,
}

/// Everything at the top of a plan except the axes.
#[derive(Debug, Default)]
pub(crate) struct TypedRunSettings {
    pub(crate) blocks: Option<Spanned<u32>>,
    pub(crate) block_interval: Option<Spanned<Nanos>>,
    /// A block interval that no block may outlast.
    pub(crate) every: Option<Spanned<Span>>,
    pub(crate) mode: Option<Spanned<UseMode>>,
    pub(crate) pause: Option<Spanned<Nanos>>,
    pub(crate) order: Option<BlockOrder>,
    pub(crate) pairs: Option<Spanned<PairOrder>>,
    pub(crate) seed: Option<u64>,
    pub(crate) timeout: Option<Spanned<Nanos>>,
    pub(crate) tries: Option<Spanned<u32>>,
}

#[derive(Debug)]
pub(crate) struct TypedPlan {
    pub(crate) span: Range<usize>,
    pub(crate) name: Option<String>,
    pub(crate) run_settings: TypedRunSettings,
    pub(crate) axes: TypedAxes,
    pub(crate) endpoints: Vec<TypedEndpoint>,
    pub(crate) skips: Vec<TypedSkip>,
    pub(crate) pings: Vec<TypedPing>,
    pub(crate) sections: Sections,
    pub(crate) notes: Vec<String>,
}

/// Reads a TOML plan.
pub(crate) fn read(mut fields: Fields<'_>) -> TypedPlan {
    check_version(&mut fields);
    let plan = TypedPlan {
        span: fields.span(),
        name: read_name(&mut fields),
        run_settings: read_run_settings(&mut fields),
        axes: read_axes(&mut fields, Level::Top),
        endpoints: fields
            .tables("endpoint")
            .into_iter()
            .map(read_endpoint)
            .collect(),
        skips: fields.tables("skip").into_iter().map(read_skip).collect(),
        pings: fields
            .tables("ping")
            .into_iter()
            .map(sections::read_ping)
            .collect(),
        sections: sections::read(&mut fields),
        notes: Vec::new(),
    };
    fields.finish();
    plan
}

fn read_name(fields: &mut Fields<'_>) -> Option<String> {
    if fields.entry("name").is_none() {
        fields.fault(fields.span(), "'name' is missing", "add name = \"first\"");
    }
    let name = fields.optional_with("name", single_line_text)?;
    Some(name.value)
}

fn check_version(fields: &mut Fields<'_>) {
    if fields.entry("version").is_none() {
        return fields.fault(fields.span(), "'version' is missing", "add version = 1");
    }
    if let Some(version) = fields.optional::<u32>("version")
        && version.value != 1
    {
        let message = format!("version {} of the plan format is not known", version.value);
        fields.fault(version.span, message, "write version = 1");
    }
}

fn read_run_settings(fields: &mut Fields<'_>) -> TypedRunSettings {
    const ORDERS: [(&str, BlockOrder); 2] = [
        ("random", BlockOrder::Random),
        ("sequential", BlockOrder::Sequential),
    ];
    const PAIRS: [(&str, PairOrder); 2] = [
        ("at once", PairOrder::Concurrent),
        ("in turn", PairOrder::Sequential),
    ];
    TypedRunSettings {
        blocks: fields.optional("blocks"),
        block_interval: fields.optional("block_interval"),
        every: fields.optional_with("every", sections::positive_span),
        mode: shared::mode(fields),
        pause: fields.optional("pause"),
        order: fields
            .optional_with("order", |node| choice(node, &ORDERS))
            .map(|order| order.value),
        pairs: fields.optional_with("pairs", |node| choice(node, &PAIRS)),
        seed: fields.optional("seed").map(|seed| seed.value),
        timeout: fields.optional("timeout"),
        tries: fields.optional("tries"),
    }
}

fn read_endpoint(mut fields: Fields<'_>) -> TypedEndpoint {
    let endpoint = TypedEndpoint {
        span: fields.span(),
        name: fields.required_with("name", single_line_text),
        target: fields.required_with("url", |node| target(&single_line_text(node)?)),
        site: fields.optional_with("at", single_line_text),
        mode: shared::mode(&mut fields),
        axes: read_axes(&mut fields, Level::Inner),
    };
    fields.finish();
    endpoint
}

fn read_skip(mut fields: Fields<'_>) -> TypedSkip {
    let has_endpoints = fields.entry("endpoint").is_some();
    let endpoints = fields.one_or_list_with("endpoint", single_line_text);
    let mut skip = TypedSkip {
        span: fields.span(),
        endpoints: endpoints.or_else(|| has_endpoints.then(Vec::new)),
        axes: read_axes_without_length(&mut fields, Level::Inner),
    };
    skip.axes.has_length = false;
    fields.finish();
    skip
}

fn read_axes(fields: &mut Fields<'_>, level: Level) -> TypedAxes {
    let mut axes = read_axes_without_length(fields, level);
    axes.has_length = fields.entry("duration").is_some() || fields.entry("messages").is_some();
    axes.duration = fields.optional("duration");
    axes.messages = fields.optional("messages");
    axes.alarms = alarms::read(fields);
    axes
}

/// Where in a plan a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Top,
    Inner,
}

/// At the top, `season` is the tables that say when the seasons are.
fn read_axes_without_length(fields: &mut Fields<'_>, level: Level) -> TypedAxes {
    let mut axes = TypedAxes {
        intervals: read_values(fields, "interval"),
        request_sizes: read_values(fields, "request_size"),
        response_sizes: read_values(fields, "response_size"),
        ..TypedAxes::default()
    };
    let is_table = |name| level == Level::Top && name == ParameterName::Season;
    for PlanParameter { name, read, .. } in PARAMETERS
        .iter()
        .filter(|plan_parameter| !is_table(plan_parameter.name))
    {
        if let Some(values) = fields.one_or_list_with(name.as_str(), read) {
            axes.parameters.insert(*name, values);
        } else if fields.entry(name.as_str()).is_some() {
            axes.invalid_parameters.insert(*name);
        }
    }
    axes
}

fn read_values<T: neph_text::FromNode + PartialEq>(
    fields: &mut Fields<'_>,
    key: &'static str,
) -> WrittenValues<T> {
    let has_key = fields.entry(key).is_some();
    fields.one_or_list(key).or_else(|| has_key.then(Vec::new))
}
