//! The parts of a result's text that are independent of the other classes.

use super::Class;
use crate::text::plural;

/// Which port to use, if it is known.
pub(super) fn remedy(fast: &Class) -> String {
    let best: Vec<String> = fast.ports.iter().take(3).map(u16::to_string).collect();
    let bind = match fast.flows_without_port {
        0 => format!(
            "bind the source port {} before connecting",
            best.join(" or ")
        ),
        _ => "measure with several fixed source ports and bind the fastest one before connecting"
            .to_owned(),
    };
    format!(
        "{bind} (in a plan: source_port), or ask the network operator for paths of equal latency"
    )
}

/// How many flows stayed on their paths.
pub(super) fn flows_text(flows: usize, disturbed_flows: usize) -> String {
    match disturbed_flows {
        0 => format!("Each of {}", plural(flows, "flow")),
        _ => format!(
            "Each of {} but {disturbed_flows} (most of their messages were delayed)",
            plural(flows, "flow"),
        ),
    }
}
