//! How long an experiment takes, and the trace of its flows after it.

use neph_model::{BitRate, Measure, Scenario, Span, TransferDirection, reply_size};

use crate::plan::Plan;

/// What an experiment takes: its schedule, not the wait for its last reply.
pub fn length(scenario: &Scenario) -> Span {
    let count = i64::try_from(scenario.messages).unwrap_or(i64::MAX);
    scenario.interval.times(count)
}

/// Payload of an experiment, bytes: what the site that measures sends, and what it is sent. A transfer
/// without a rate has none that is known. Saturates.
pub(crate) fn payloads(scenario: &Scenario) -> (u64, u64) {
    let messages = scenario.messages_of_all_flows();
    let test = match scenario.measure() {
        Measure::Throughput(test) => test,
        Measure::Transactions(_) => return (0, 0),
        media @ Measure::Media(_) => {
            let rate = media.target_rate().map_or(0, BitRate::bits_per_second);
            return (0, (rate / 8).saturating_mul(messages));
        }
        Measure::Messages => {
            let reply = reply_size(scenario.probe(), scenario.response_size);
            let bytes = |size: u64| messages.saturating_mul(size);
            return (bytes(scenario.request_size.bytes()), bytes(reply.bytes()));
        }
    };
    let rate = test.rate.map_or(0, BitRate::bits_per_second);
    let bytes = (rate / 8).saturating_mul(messages);
    match test.direction {
        TransferDirection::Up => (bytes, 0),
        TransferDirection::Down => (0, bytes),
        TransferDirection::Both => (bytes, bytes),
    }
}

/// Probes a second to each distance, and how long the last
/// answer is waited for.
const TRACE_PROBES_PER_SECOND: i64 = 50;
const LAST_ANSWER_TIMEOUT: Span = Span::from_secs(1);

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
    let probe_time = Span::from_nanos(1_000_000_000 / TRACE_PROBES_PER_SECOND);
    TraceTime {
        usual: probe_time.times(probes) + LAST_ANSWER_TIMEOUT,
        slow: Span::from_secs(1).times(probes) + LAST_ANSWER_TIMEOUT,
    }
}
