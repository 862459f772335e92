//! Metrics of campaigns.

use neph_export::Definition;

use super::{counter, gauge, time_histogram};

pub(in crate::metrics) static PLANNED_EXPERIMENTS: Definition = gauge(
    "neph_run_experiments",
    &["state"],
    "Experiments of the campaign, by state: complete, open, given_up.",
);
pub(in crate::metrics) static ENDED_EXPERIMENTS: Definition = counter(
    "neph_run_experiments_ended_total",
    &["site", "endpoint", "kind", "status"],
    "Experiments that ended in this process; every attempt counts: complete, failed, interrupted.",
);
pub(in crate::metrics) static MESSAGES: Definition = counter(
    "neph_run_messages_total",
    &["site", "endpoint", "kind", "outcome"],
    "Messages, as their results arrive: reply, error, lost, failed (not sent).",
);
pub(in crate::metrics) static RESPONSE_TIME: Definition = time_histogram(
    "neph_run_response_time_seconds",
    &["site", "endpoint", "kind"],
    "Response times of messages with a reply, since the scheduled send time. For fleets (many flows at a \
     time): network RTTs.",
);
pub(in crate::metrics) static JITTER: Definition = time_histogram(
    "neph_run_jitter_seconds",
    &["site", "endpoint", "kind"],
    "Absolute difference between the response times of consecutive replies in a flow.",
);
pub(in crate::metrics) static MISSED_STARTS: Definition = counter(
    "neph_run_starts_missed_total",
    &["site", "endpoint", "kind"],
    "Starts that an experiment missed: a site was not ready at the agreed time. Every attempt counts.",
);
pub(in crate::metrics) static TRANSFER: Definition = gauge(
    "neph_run_transfer",
    &["site", "endpoint", "measure", "quantity"],
    "Result of the last transfer. The value of the label quantity ends with the unit, such as _percent.",
);
pub(in crate::metrics) static FLAGS: Definition = counter(
    "neph_run_flags_total",
    &["site", "endpoint", "kind", "flag"],
    "Warnings (flags) of experiments that ended; each is a reason to doubt the result.",
);
pub(in crate::metrics) static ALARM: Definition = gauge(
    "neph_run_alarm",
    &["site", "endpoint", "kind", "rule"],
    "1 while the alarm is raised.",
);
pub(in crate::metrics) static ALARMS: Definition = counter(
    "neph_run_alarms_total",
    &["site", "endpoint", "kind", "rule"],
    "How often the alarm was raised.",
);

/// All metrics, in the order of their page.
#[cfg(test)]
pub(super) static ALL: [&Definition; 10] = [
    &PLANNED_EXPERIMENTS,
    &ENDED_EXPERIMENTS,
    &MISSED_STARTS,
    &MESSAGES,
    &RESPONSE_TIME,
    &JITTER,
    &TRANSFER,
    &FLAGS,
    &ALARM,
    &ALARMS,
];
