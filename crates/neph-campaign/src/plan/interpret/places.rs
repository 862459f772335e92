//! From where an endpoint is measured, and whether there is such a place.

use neph_model::{Parameter, ParameterName, Target};
use neph_text::{Fault, Problems};

use super::super::model::Axes;
use super::super::typed::{TypedEndpoint, TypedPlan};

/// The target of an endpoint, and its site. If the host of the target is the name of a site, the target has
/// that site's address.
pub(super) fn target(
    endpoint: &TypedEndpoint,
    written: &Target,
    typed: &TypedPlan,
) -> (Target, Option<String>) {
    let at = endpoint.at.as_ref().map(|site| site.value.clone());
    let mut sites = typed.sections.agents.iter();
    let Some(site) = sites.find(|site| site.name.value == written.host()) else {
        return (written.clone(), at);
    };
    let moved = site.address.as_deref().map(|host| written.at_host(host));
    let target = moved
        .and_then(Result::ok)
        .unwrap_or_else(|| written.clone());
    (target, at.or_else(|| Some(site.name.value.clone())))
}

/// A site does not measure itself where a list names all.
pub(super) fn without_itself(axes: &mut Axes, at: Option<&str>) {
    let Some(at) = at else { return };
    let Some(from) = axes.parameters.get_mut(&ParameterName::Site) else {
        return;
    };
    let is_itself = |value: &Parameter| value.site().is_some_and(|site| site == at);
    if from.iter().any(|value| !is_itself(value)) {
        from.retain(|value| !is_itself(value));
    }
}

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
        let message = format!(
            "'{}' names a lab site, but there is no lab",
            ParameterName::Stress
        );
        Fault::new(message, "add [lab]")
    } else if is_named(ParameterName::Site) && !sections.has_lab && sections.agents.is_empty() {
        let message = format!(
            "'{}' names a lab site, but there is no lab",
            ParameterName::Site
        );
        Fault::new(message, "add [lab], or a [[site]] with an agent")
    } else if !is_named(ParameterName::Site) && sections.agents.len() > 1 {
        let message = format!("there are several sites, but no '{}'", ParameterName::Site);
        Fault::new(
            message,
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
