//! What must hold of guests: what the lab does in a site's namespace does not reach their kernels.

use std::ops::Range;

use neph_text::{Fault, Problems};

use crate::topology::Topology;

/// Checks that nothing in a guest's site needs the lab's kernel.
pub(super) fn check(topology: &Topology, span: &Range<usize>, problems: &Problems<'_>) {
    for guest in topology.guests() {
        let site = &topology.sites[guest.site];
        let add_problem = |message: String, remedy: &str| {
            problems.add(span.clone(), Fault::new(message, remedy));
        };
        let name = &site.name;
        let mut services = topology.services.iter();
        if let Some(service) = services.find(|service| service.site == guest.site) {
            let message = format!(
                "service '{}' is at '{name}', which is a guest",
                service.name
            );
            add_problem(message, "write its command into the 'run' of the [[guest]]");
        }
        let mut traffic = topology.traffic.iter();
        if let Some(traffic) =
            traffic.find(|traffic| [traffic.from, traffic.to].contains(&guest.site))
        {
            let message = format!(
                "traffic '{}' ends at '{name}', which is a guest",
                traffic.name
            );
            add_problem(message, "send it to the guest's host or past it");
        }
        let settings = [
            ("sysctls", !site.sysctls.is_empty()),
            ("congestion_control", site.congestion_control.is_some()),
        ];
        for (key, _) in settings.into_iter().filter(|(_, is_set)| *is_set) {
            let message = format!("'{name}' is a guest: '{key}' does not reach its kernel");
            add_problem(
                message,
                "write a sysctl -w line into the 'run' of the [[guest]]",
            );
        }
    }
}
