//! Metrics of a controller.

use neph_control::{AwayAgent, ControllerStatus, Monitor};
use neph_export::{Metric, MetricSource, Value};
use neph_model::{Span, Wall};
use neph_sys::clock;

use super::definitions::{
    CAMPAIGN, CLOCK_BOUND, CLOCK_OFFSET, CONNECTED_AGENTS, ENROLLED_AGENTS, LABELS, ORDERS,
    REFUSALS, SILENCE,
};

/// The metrics of a controller.
#[derive(Debug)]
pub(crate) struct ControlMetrics(pub(crate) Monitor);

impl MetricSource for ControlMetrics {
    fn snapshot(&self) -> Vec<Metric> {
        build_metrics(&self.0.read(), Wall::from_unix_nanos(clock::wall().0))
    }
}

fn build_metrics(status: &ControllerStatus, now: Wall) -> Vec<Metric> {
    let mut enrolled = Metric::new(&ENROLLED_AGENTS);
    let mut connected = Metric::new(&CONNECTED_AGENTS);
    let mut silence = Metric::new(&SILENCE);
    if let Some(names) = &status.enrolled {
        enrolled.add(&[], Value::Count(names.len() as u64));
        for name in names {
            let is_connected = status.connected.iter().any(|agent| agent.agent == *name);
            connected.add(&[name.as_str()], Value::Count(is_connected.into()));
            if let Some(AwayAgent { received, .. }) = status.away.get(name) {
                silence.add(&[name.as_str()], elapsed_since(*received, now));
            }
        }
    }
    let [mut labels, mut orders, mut refusals, mut offset, mut bound] =
        [&LABELS, &ORDERS, &REFUSALS, &CLOCK_OFFSET, &CLOCK_BOUND].map(Metric::new);
    for connected_agent in &status.connected {
        let agent = connected_agent.agent.as_str();
        orders.add(&[agent], Value::Count(connected_agent.running.into()));
        silence.add(&[agent], elapsed_since(connected_agent.received, now));
        for (key, value) in connected_agent.labels.iter() {
            labels.add(&[agent, key, value], Value::Count(1));
        }
        for (reason, count) in &connected_agent.refusals {
            refusals.add(&[agent, reason], Value::Count(*count));
        }
        if let Some(clock) = connected_agent.clock {
            offset.add(&[agent], Value::Time(clock.offset));
            bound.add(&[agent], Value::Time(clock.bound));
        }
    }
    let campaign = Metric::of(&CAMPAIGN, &[], Value::Count(status.has_campaign.into()));
    vec![
        enrolled, connected, labels, orders, refusals, offset, bound, silence, campaign,
    ]
}

/// If the clock was set back, the last contact is now, not in the future.
fn elapsed_since(received: Wall, now: Wall) -> Value {
    let nanos = now.unix_nanos().saturating_sub(received.unix_nanos());
    Value::Time(Span::from_nanos(nanos.max(0)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use neph_agent::remote::AgentClockOffset;
    use neph_control::ConnectedAgent;
    use neph_export::Page;
    use neph_model::Labels;

    use super::*;

    #[test]
    fn connected_and_away_agents_are_exported() {
        let wall = |seconds: i64| Wall::from_unix_nanos(seconds * 1_000_000_000);
        let presence = ConnectedAgent {
            agent: "ams".parse().expect("a name"),
            connected: wall(1),
            received: wall(98),
            version: None,
            results: 0,
            running: 2,
            clock: Some(AgentClockOffset {
                offset: Span::from_micros(-250),
                bound: Span::from_millis(1),
            }),
            refusals: BTreeMap::from([("kind".to_owned(), 3)]),
            labels: Labels::new(["region=eu".parse().expect("a label")]).expect("one"),
        };
        let away_agent = AwayAgent {
            received: wall(40),
            version: None,
            labels: Labels::default(),
        };
        let names = ["ams", "lju", "new"].map(|name| name.parse().expect("a name"));
        let status = ControllerStatus {
            enrolled: Some(names.to_vec()),
            connected: vec![presence],
            away: BTreeMap::from([("lju".parse().expect("a name"), away_agent)]),
            has_campaign: true,
        };
        let page = Page::of(&build_metrics(&status, wall(100))).text();
        for line in [
            "# TYPE neph_control_refusals_total counter",
            "neph_control_agents_enrolled 3",
            "neph_control_agent_connected{agent=\"ams\"} 1",
            "neph_control_agent_connected{agent=\"lju\"} 0",
            "neph_control_agent_label{agent=\"ams\",label=\"region\",value=\"eu\"} 1",
            "neph_control_orders_running{agent=\"ams\"} 2",
            "neph_control_refusals_total{agent=\"ams\",reason=\"kind\"} 3",
            "neph_control_clock_offset_seconds{agent=\"ams\"} -0.00025",
            "neph_control_clock_bound_seconds{agent=\"ams\"} 0.001",
            "neph_control_agent_silence_seconds{agent=\"ams\"} 2",
            "neph_control_agent_silence_seconds{agent=\"lju\"} 60",
            "neph_control_campaign_attached 1",
        ] {
            assert!(
                page.lines().any(|page_line| page_line == line),
                "{line}\n{page}"
            );
        }
        assert!(!page.contains("silence_seconds{agent=\"new\"}"), "{page}");
    }
}
