//! Metrics of commands that measure in this process: ping, flows and hops.

use neph_export::Definition;

use super::{counter, gauge, time_histogram};

pub(in crate::metrics) static PING_MESSAGES: Definition = counter(
    "neph_ping_messages_total",
    &["site", "endpoint", "kind", "outcome"],
    "Messages that ended: reply, error, lost, failed (not sent).",
);
pub(in crate::metrics) static PING_RESPONSE_TIME: Definition = time_histogram(
    "neph_ping_response_time_seconds",
    &["site", "endpoint", "kind"],
    "Response times of messages with a reply, since the scheduled send time.",
);
pub(in crate::metrics) static PING_IPDV: Definition = time_histogram(
    "neph_ping_jitter_seconds",
    &["site", "endpoint", "kind"],
    "Absolute difference between the response times of consecutive replies in a flow.",
);
pub(in crate::metrics) static PING_EVENTS: Definition = counter(
    "neph_ping_events_total",
    &["site", "endpoint", "kind", "event"],
    "Events that are not messages, by kind: connected, connection_lost, connect_failed, late_reply, address_changed ...",
);
pub(in crate::metrics) static FLOWS_ACTIVE: Definition = gauge(
    "neph_flows_flows",
    &["site", "endpoint", "kind"],
    "Number of flows that are measured at the same time.",
);
pub(in crate::metrics) static FLOWS_MESSAGES: Definition = counter(
    "neph_flows_messages_total",
    &["site", "endpoint", "kind", "outcome"],
    "Messages that ended: reply, error, lost, failed (not sent).",
);
pub(in crate::metrics) static FLOWS_ROUND_TRIP: Definition = time_histogram(
    "neph_flows_round_trip_seconds",
    &["site", "endpoint", "kind"],
    "Network round trips of all flows.",
);
pub(in crate::metrics) static FLOWS_IPDV: Definition = time_histogram(
    "neph_flows_jitter_seconds",
    &["site", "endpoint", "kind"],
    "Absolute difference between consecutive RTTs in a flow.",
);
pub(in crate::metrics) static FLOWS_PATH_CHANGES: Definition = counter(
    "neph_flows_path_changes_total",
    &["site", "endpoint", "kind"],
    "Path changes that were detected, including those that were withdrawn later.",
);
pub(in crate::metrics) static FLOWS_PATH_CHANGES_WITHDRAWN: Definition = counter(
    "neph_flows_path_changes_withdrawn_total",
    &["site", "endpoint", "kind"],
    "Path changes that were detected and withdrawn, because later messages disproved them.",
);
pub(in crate::metrics) static HOPS_DELAY: Definition = time_histogram(
    "neph_hops_delay_seconds",
    &["segment", "direction"],
    "Delays of packets between two capture points, while both record.",
);
pub(in crate::metrics) static HOPS_ALARM_ACTIVE: Definition = gauge(
    "neph_hops_alarm",
    &["segment", "direction", "rule"],
    "1 while the alarm is raised.",
);
pub(in crate::metrics) static HOPS_ALARMS_RAISED: Definition = counter(
    "neph_hops_alarms_total",
    &["segment", "direction", "rule"],
    "How often the alarm was raised.",
);

/// All metrics, in the order of their page.
#[cfg(test)]
pub(super) static ALL: [&Definition; 13] = [
    &PING_MESSAGES,
    &PING_RESPONSE_TIME,
    &PING_IPDV,
    &PING_EVENTS,
    &FLOWS_ACTIVE,
    &FLOWS_MESSAGES,
    &FLOWS_ROUND_TRIP,
    &FLOWS_IPDV,
    &FLOWS_PATH_CHANGES,
    &FLOWS_PATH_CHANGES_WITHDRAWN,
    &HOPS_DELAY,
    &HOPS_ALARM_ACTIVE,
    &HOPS_ALARMS_RAISED,
];
