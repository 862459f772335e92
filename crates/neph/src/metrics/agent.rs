//! Metrics of an agent.

use neph_agent::remote::{AgentStatus, StatusBoard};
use neph_export::{Metric, MetricSource, Value};
use neph_model::AgentName;

use super::definitions::{
    AGENT_BOUND, AGENT_CONNECTED, AGENT_CONNECTIONS, AGENT_DAY_LIMIT, AGENT_OFFSET, AGENT_ORDERS,
    AGENT_REFUSALS, AGENT_SENT_TODAY,
};

/// The metrics of an agent.
#[derive(Debug)]
pub(crate) struct AgentMetrics {
    pub(crate) name: AgentName,
    pub(crate) status: StatusBoard,
}

impl MetricSource for AgentMetrics {
    fn snapshot(&self) -> Vec<Metric> {
        build_metrics(self.name.as_str(), &self.status.read())
    }
}

fn build_metrics(agent: &str, status: &AgentStatus) -> Vec<Metric> {
    let gauge = |definition, value| Metric::of(definition, &[agent], value);
    let mut metrics = vec![
        gauge(&AGENT_CONNECTED, Value::Count(status.is_connected.into())),
        gauge(&AGENT_CONNECTIONS, Value::Count(status.connections)),
        gauge(&AGENT_ORDERS, Value::Count(status.running.into())),
        gauge(&AGENT_SENT_TODAY, Value::Count(status.spent_today)),
    ];
    metrics.extend(
        status
            .day_bytes
            .map(|max| gauge(&AGENT_DAY_LIMIT, Value::Count(max))),
    );
    let mut refusals = Metric::new(&AGENT_REFUSALS);
    for (reason, count) in &status.refusals {
        refusals.add(&[agent, reason], Value::Count(*count));
    }
    metrics.push(refusals);
    if let Some(clock) = status.clock() {
        metrics.push(gauge(&AGENT_OFFSET, Value::Time(clock.offset)));
        metrics.push(gauge(&AGENT_BOUND, Value::Time(clock.bound)));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use neph_export::Page;

    use super::*;

    #[test]
    fn an_agents_work_and_refusals_are_exported() {
        let mut status = AgentStatus {
            is_connected: true,
            connections: 4,
            running: 1,
            spent_today: 5_000,
            day_bytes: Some(100_000),
            ..AgentStatus::default()
        };
        status.refusals.insert("bytes a day".to_owned(), 7);
        let page = Page::of(&build_metrics("ams", &status)).text();
        for line in [
            "neph_agent_connected{agent=\"ams\"} 1",
            "neph_agent_connections_total{agent=\"ams\"} 4",
            "neph_agent_orders_running{agent=\"ams\"} 1",
            "neph_agent_sent_today_bytes{agent=\"ams\"} 5000",
            "neph_agent_day_limit_bytes{agent=\"ams\"} 100000",
            "neph_agent_refusals_total{agent=\"ams\",reason=\"bytes a day\"} 7",
        ] {
            assert!(
                page.lines().any(|page_line| page_line == line),
                "{line}\n{page}"
            );
        }
        assert!(!page.contains("clock"), "nothing is known of it: {page}");
    }
}
