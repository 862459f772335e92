//! How long an experiment takes, and the trace of its flows after it.

use neph_model::{Scenario, Span};

use crate::plan::Plan;

/// What an experiment takes: its schedule, not the wait for its last reply.
pub fn length(scenario: &Scenario) -> Span {
    let count = i64::try_from(scenario.messages).unwrap_or(i64::MAX);
    scenario.interval.times(count)
}

/// Probes a second to each distance, and how long the last
/// answer is waited for.
const TRACED_A_SECOND: i64 = 50;
const PATIENCE: Span = Span::from_secs(1);

/// How long tracing the flows of a scenario's fleet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceTime {
    /// At the pace at which routers are asked; nothing without a trace.
    pub usual: Span,
    /// Where a router answers once a second, as Linux does.
    pub slow: Span,
}

/// How long the trace of a scenario's fleet takes, after its experiment.
pub fn trace_time(plan: &Plan, scenario: &Scenario) -> TraceTime {
    let (Some(trace), Some(flows)) = (plan.flow_trace, scenario.flows()) else {
        return TraceTime::default();
    };
    let probes = i64::from(trace.flows.min(flows)) * i64::from(trace.limits.queries);
    let each = Span::from_nanos(1_000_000_000 / TRACED_A_SECOND);
    TraceTime {
        usual: each.times(probes) + PATIENCE,
        slow: Span::from_secs(1).times(probes) + PATIENCE,
    }
}
