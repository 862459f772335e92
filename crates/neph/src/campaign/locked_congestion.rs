//! Congestion controls that the routes of a site forbid.

use std::collections::BTreeSet;

use neph_campaign::expand;
use neph_text::{Fault, Problems};

use super::PlanSource;

/// Reports every congestion control of the plan that the topology forbids at the sending site. The
/// routes of a site with `congestion_control` lock it (`ip route ... congctl lock`): the kernel
/// then refuses any other.
pub(super) fn check(plan_source: &PlanSource, problems: &Problems<'_>) {
    let Some(lab) = &plan_source.plan.lab else {
        return;
    };
    let mut reported_pairs = BTreeSet::new();
    for scenario in expand::scenarios(&plan_source.plan) {
        let Some(requested_control) = scenario.parameters.congestion() else {
            continue;
        };
        let site = scenario.parameters.site().unwrap_or(&lab.prober.value);
        let lab_topologies = plan_source.lab_topologies.iter();
        let mut sites = lab_topologies.flat_map(|lab_topology| &lab_topology.topology.sites);
        let locked_control = sites
            .find(|lab_site| lab_site.name == *site && lab_site.congestion_control.is_some())
            .and_then(|site| site.congestion_control.as_ref())
            .filter(|locked_control| *locked_control != requested_control);
        let mut plan_controls = plan_source.plan.congestion_controls.iter();
        if let Some(locked_control) = locked_control
            && reported_pairs.insert((site.clone(), requested_control.clone()))
            && let Some(plan_control) =
                plan_controls.find(|control| control.value == *requested_control)
        {
            let message = format!(
                "congestion control '{requested_control}' is refused at site '{site}': the topology has \
                 congestion_control = \"{locked_control}\" there, and its routes lock it"
            );
            let remedy = "remove congestion here, or congestion_control from the site";
            problems.add(plan_control.span.clone(), Fault::new(message, remedy));
        }
    }
}
