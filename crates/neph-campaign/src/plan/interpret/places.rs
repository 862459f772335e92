//! From where an endpoint is measured, and whether there is such a place.

use neph_model::ParameterName;
use neph_text::{Fault, Problems};

use super::super::meaning::Axes;
use super::super::typed::{TypedEndpoint, TypedPlan};

/// Whether what is measured has a place, and each place that it names is there to be.
pub(super) fn check(
    axes: &Axes,
    endpoint: &TypedEndpoint,
    typed: &TypedPlan,
    problems: &Problems<'_>,
) {
    let sections = &typed.sections;
    let is_named = |key| axes.parameters.contains_key(&key);
    let fault = if is_named(ParameterName::Stress) && !sections.has_lab {
        let what = format!(
            "'{}' names a lab site, but there is no lab",
            ParameterName::Stress
        );
        Fault::new(what, "add [lab]")
    } else if is_named(ParameterName::Site) && !sections.has_lab && sections.agents.is_empty() {
        let what = format!(
            "'{}' names a lab site, but there is no lab",
            ParameterName::Site
        );
        Fault::new(what, "add [lab], or a [[site]] with an agent")
    } else if !is_named(ParameterName::Site) && sections.agents.len() > 1 {
        let what = format!("there are several sites, but no '{}'", ParameterName::Site);
        Fault::new(
            what,
            format!(
                "add {} = \"{}\"",
                ParameterName::Site,
                sections.agents[0].name.value
            ),
        )
    } else {
        return;
    };
    problems.add(endpoint.span.clone(), fault);
}
