//! Plans: one versioned TOML file describes what is measured.
//!
//! The text is interpreted once: `typed` reads it, `interpret` fills in defaults and checks, and the
//! rest of the program uses [`Plan`]. The Latency Tester's settings take the same path from
//! [`crate::settings`].

mod agents;
mod alarms;
mod compare;
mod fleet;
mod interpret;
mod measure;
mod model;
mod parameter;
mod plot;
mod reflector;
mod season;
mod sections;
mod shared;
mod single_line_text;
mod trust;
mod typed;

pub use agents::AgentSite;
pub use compare::{ComparePlan, ComparedLayer};
pub use model::{
    Axes, Endpoint, ExperimentLength, LabPlan, LabReflector, Limits, PairOrder, ParameterLists,
    Plan, Skip, ThroughputPlan,
};
use neph_text::{Fields, Problem, Problems, Source, parse_toml};
pub use parameter::{PARAMETERS, PlanParameter};
pub use plot::PlotPlan;
pub use reflector::parse_reflector_flags;
pub use season::Season;
pub use shared::{PlannedCircuit, SharedResource};
pub use trust::TrustedCertificates;

pub(crate) use interpret::plan as interpret;
pub(crate) use model::sha256_hex;
pub(crate) use parameter::{target, target_fault};
pub(crate) use plot::{BOX_PERCENTILES, blocks as plot_blocks, check as check_plot};
pub(crate) use sections::{
    IPERF3_PORT, Sections, THROUGHPUT_DURATION, TypedPing, TypedThroughput, host,
};
pub(crate) use single_line_text::single_line_text;
pub(crate) use trust::ANY_CERTIFICATE;
pub(crate) use typed::{TypedAxes, TypedEndpoint, TypedPlan, TypedRunSettings};

/// Reads a TOML plan (`version = 1`). Never panics, for any text.
///
/// # Errors
/// Every mistake, by place.
pub fn parse(source: &Source) -> Result<Plan, Vec<Problem>> {
    parse_with(source, &|_, _| ())
}

/// Further checks of a plan by the caller. Called with what was understood of it, even if there are
/// mistakes already, so that all are reported together.
pub type ExtraChecks<'a> = &'a dyn Fn(&Plan, &Problems<'_>);

fn parse_with(source: &Source, extra_checks: ExtraChecks<'_>) -> Result<Plan, Vec<Problem>> {
    let problems = Problems::new(source);
    let table = parse_toml(&problems);
    // Around a mistake of syntax the rest reads wrongly: more mistakes would only mislead.
    if !problems.is_empty() {
        return problems.verdict(None);
    }
    let typed = typed::read(Fields::new(&table, 0..0, &problems));
    let plan = interpret(typed, &problems);
    extra_checks(&plan, &problems);
    problems.verdict(Some(plan))
}

/// Reads a plan or a Latency Tester settings file, by the ending of the source's name: `.yaml` and
/// `.yml` are settings, everything else is a plan.
///
/// # Errors
/// Every mistake, by place.
pub fn read(source: &Source) -> Result<Plan, Vec<Problem>> {
    read_with(source, &|_, _| ())
}

/// As [`read`], held against what else is known.
///
/// # Errors
/// Every mistake, those of `extra_checks` among them, by place.
pub fn read_with(source: &Source, extra_checks: ExtraChecks<'_>) -> Result<Plan, Vec<Problem>> {
    let ending = source.name().rsplit('.').next().unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => crate::settings::parse_with(source, extra_checks),
        _ => parse_with(source, extra_checks),
    }
}

#[cfg(test)]
mod tests;
