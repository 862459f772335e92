//! From where an endpoint is measured, and whether there is such a place.

use neph_model::{Parameter, ParameterName, Target};
use neph_text::{Fault, Problems};

use super::super::model::Axes;
use super::super::typed::{TypedEndpoint, TypedPlan};

/// The target of an endpoint, and its site. If the host of the target is the name of a site, the target has
/// that site's address.
pub(super) fn resolve_target(
    endpoint: &TypedEndpoint,
    written_target: &Target,
    typed: &TypedPlan,
) -> (Target, Option<String>) {
    let endpoint_site = endpoint.site.as_ref().map(|site| site.value.clone());
    let mut sites = typed.sections.agents.iter();
    let Some(site) = sites.find(|site| site.name.value == written_target.host()) else {
        return (written_target.clone(), endpoint_site);
    };
    let site_address = site.address.as_deref();
    let target = site_address
        .map(|host| written_target.at_host(host))
        .and_then(Result::ok)
        .unwrap_or_else(|| written_target.clone());
    let endpoint_site = endpoint_site.or_else(|| Some(site.name.value.clone()));
    (target, endpoint_site)
}

/// A site does not measure itself where a list names all.
pub(super) fn exclude_own_site(axes: &mut Axes, endpoint_site: Option<&str>) {
    let Some(own_site) = endpoint_site else {
        return;
    };
    let Some(sites) = axes.parameters.get_mut(&ParameterName::Site) else {
        return;
    };
    let is_own_site = |value: &Parameter| value.site().is_some_and(|site| site == own_site);
    if sites.iter().any(|value| !is_own_site(value)) {
        sites.retain(|value| !is_own_site(value));
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
    let has_parameter = |key| axes.parameters.contains_key(&key);
    let fault = if has_parameter(ParameterName::Stress) && !sections.has_lab {
        let message = format!(
            "'{}' names a lab site, but there is no lab",
            ParameterName::Stress
        );
        Fault::new(message, "add [lab]")
    } else if has_parameter(ParameterName::Site) && !sections.has_lab && sections.agents.is_empty()
    {
        let message = format!(
            "'{}' names a lab site, but there is no lab",
            ParameterName::Site
        );
        Fault::new(message, "add [lab], or a [[site]] with an agent")
    } else if !has_parameter(ParameterName::Site) && sections.agents.len() > 1 {
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
