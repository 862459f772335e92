//! The caption of flows, message by message.

use neph_analysis::text::plural;

/// What a page of flows shows.
#[derive(Clone, Copy)]
pub(super) struct Content {
    pub(super) has_congestion: bool,
    pub(super) has_changes: bool,
    /// Flows on all pages.
    pub(super) shown_flows: usize,
    /// All flows, also those whose messages were not kept.
    pub(super) total_flows: usize,
}

pub(super) fn caption(content: Content) -> String {
    let shaded = if content.has_congestion {
        " Shaded: three or more consecutive messages above it by more than the tolerance, attributed to a queue. A path that no other flow used and that was left within 30 s looks the same."
    } else {
        ""
    };
    let changed = if content.has_changes {
        " A dashed line is a path change; its head is filled if a reordered message, the TTL or a trace confirms it."
    } else {
        ""
    };
    let chosen = if content.shown_flows < content.total_flows {
        format!(
            " Shown: {} of {}, chosen by path changes and congestion from those whose messages neph kept.",
            content.shown_flows,
            plural(content.total_flows, "flow")
        )
    } else {
        String::new()
    };
    format!(
        "Each dot is a message. The line is the estimated base latency: it changes only if several messages agree on another value.{shaded}{changed} Each panel has its own scale. Values outside are counted above it.{chosen}"
    )
}
