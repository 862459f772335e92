//! Congestion controls that the routes of a site forbid.

use std::collections::BTreeSet;

use neph_campaign::expand;
use neph_text::{Fault, Problems};

use super::PlanSource;

/// Reports every congestion control of the plan that the topology forbids at the sending site. The
/// routes of a site with `congestion_control` lock it (`ip route ... congctl lock`): the kernel
/// then refuses any other.
pub(super) fn check(read: &PlanSource, problems: &Problems<'_>) {
    let Some(lab) = &read.plan.lab else {
        return;
    };
    let mut reported = BTreeSet::new();
    for scenario in expand::scenarios(&read.plan) {
        let Some(requested) = scenario.parameters.congestion() else {
            continue;
        };
        let site = scenario.parameters.site().unwrap_or(&lab.prober.value);
        let scenes = read.scenes.iter();
        let mut sites = scenes.flat_map(|scene| &scene.topology.sites);
        let locked = sites
            .find(|lab_site| lab_site.name == *site && lab_site.congestion_control.is_some())
            .and_then(|site| site.congestion_control.as_ref())
            .filter(|locked| *locked != requested);
        let mut written = read.plan.congestion_controls.iter();
        if let Some(locked) = locked
            && reported.insert((site.clone(), requested.clone()))
            && let Some(written) = written.find(|placed| placed.value == *requested)
        {
            let message = format!(
                "congestion control '{requested}' is refused at site '{site}': the topology has \
                 congestion_control = \"{locked}\" there, and its routes lock it"
            );
            let remedy = "remove congestion here, or congestion_control from the site";
            problems.add(written.span.clone(), Fault::new(message, remedy));
        }
    }
}
