//! The agents of a controller, and its schedules.

use std::collections::BTreeMap;

use neph_model::{AgentName, CampaignId, Labels, OrderId, Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use crate::sections::{Pairs, Sections};
use crate::version::Version;
use crate::wall_time;

crate::rows! {
    /// An enrolled agent.
    pub struct AgentRow {
        /// Name of the agent.
        agent: AgentName => left "AGENT" by |row| row.agent.to_string(),
        /// Whether the agent is connected to the controller.
        connected: bool => left "STATE" by |row| {
            if row.connected { "connected" } else { "away" }.to_owned()
        },
        /// Labels of the agent's site; empty if the agent has not connected since the controller's start.
        labels: Labels => left "LABELS" by |row| {
            if row.labels.is_empty() { "-".to_owned() } else { row.labels.to_string() }
        },
        /// Version of neph at the agent; null if the agent has not connected since the controller's start.
        version: Option<String> => left "VERSION",
        /// Number of running orders; null if the agent is not connected.
        running: Option<u32> => right "RUNNING",
        /// The agent's clock minus the controller's; null if not known.
        clock_offset_ns: Option<Span> => right "CLOCK" by |row| match (row.clock_offset_ns, row.clock_bound_ns) {
            (Some(offset), Some(bound)) => format!("{offset} ± {bound}"),
            _ => "-".to_owned(),
        },
        /// Error bound of the offset; null if not known.
        clock_bound_ns: Option<Span>,
        /// Number of orders and targets that the agent's policy refused since the agent's start, by
        /// reason.
        refusals: BTreeMap<String, u64> => left "REFUSED" by |row| {
            let refusals = row.refusals.iter().map(|(reason, count)| format!("{reason}: {count}"));
            let refusals: Vec<_> = refusals.collect();
            if refusals.is_empty() { "-".to_owned() } else { refusals.join(", ") }
        },
        /// When the last message of the agent arrived; null if not known.
        last_seen_unix_ns: Option<Wall> => left "LAST SEEN" by |row| {
            row.last_seen_unix_ns.map_or_else(|| "-".to_owned(), wall_time::utc)
        },
        /// When it was enrolled.
        enrolled_unix_ns: Wall => left "ENROLLED" by |row| wall_time::utc(row.enrolled_unix_ns),
    }
}

crate::rows! {
    /// An enrolled operator.
    pub struct OperatorRow {
        /// Name of the operator.
        operator: AgentName => left "OPERATOR" by |row| row.operator.to_string(),
        /// When it was enrolled.
        enrolled_unix_ns: Wall => left "ENROLLED" by |row| wall_time::utc(row.enrolled_unix_ns),
        /// SHA-256 of its certificate, hexadecimal.
        fingerprint: String => left "CERTIFICATE",
    }
}

crate::rows! {
    /// An entry of an agent's policy.
    pub struct PolicyRow {
        /// Key in `agent.toml`.
        key: String => left "KEY",
        /// What the policy allows.
        value: String => left "VALUE",
    }
}

crate::rows! {
    /// The clock offset between an agent and the controller at one moment.
    pub struct ClockRow {
        /// Time of the measurement.
        at_unix_ns: Wall => left "TIME" by |row| wall_time::utc(row.at_unix_ns),
        /// The agent's clock minus the controller's.
        offset_ns: Span => right "OFFSET",
        /// Error bound of the offset.
        bound_ns: Span => right "ERROR BOUND",
    }
}

crate::rows! {
    /// An order that was sent to an agent.
    pub struct AgentOrderRow {
        /// Id of the order.
        order: OrderId => left "ORDER" by |row| row.order.to_string(),
        /// Kind: `experiments`, `throughput`, `traceroute`, `pings`, `load`, `capture` or
        /// `reflector`.
        kind: String => left "KIND",
        /// Number of experiments; 1 for other kinds.
        parts: usize => right "PARTS",
        /// When it was sent.
        sent_unix_ns: Wall => left "SENT" by |row| wall_time::utc(row.sent_unix_ns),
        /// State: `sent`, `running`, `ended` (the result is not stored yet) or `stored`.
        state: &'static str => left "STATE",
        /// When this state began.
        changed_unix_ns: Wall => left "SINCE" by |row| wall_time::utc(row.changed_unix_ns),
        /// Why it failed; null otherwise.
        failure: Option<String> => left "FAILURE",
    }
}

/// An agent with its policy, its clock and its orders.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentDocument {
    /// Version of this schema.
    pub schema: Version,
    /// The agent, as in `neph agents`.
    pub agent: AgentRow,
    /// SHA-256 of its certificate, hexadecimal.
    pub fingerprint: String,
    /// When the agent connected; null if it is not connected.
    pub connected_unix_ns: Option<Wall>,
    /// Number of results that the agent had when it connected; null if it is not connected.
    pub results_pending: Option<usize>,
    /// Whether the agent measures for a campaign.
    pub in_campaign: bool,
    /// Policy of the agent; empty if it has not connected since the controller's start.
    pub policy: Vec<PolicyRow>,
    /// Clock offsets of the last four hours, one per five minutes, since the controller's start.
    pub clock: Vec<ClockRow>,
    /// Last orders of the agent since the controller's start, oldest first.
    pub orders: Vec<AgentOrderRow>,
}

impl AgentDocument {
    /// The text form.
    pub fn text(&self) -> String {
        let mut sections = Sections::default();
        let time_text = |wall: Option<Wall>| wall.map_or_else(|| "-".to_owned(), wall_time::utc);
        let facts = Pairs::of(&self.agent)
            .with_pair("CONNECTED SINCE", time_text(self.connected_unix_ns))
            .with_pair("CERTIFICATE", self.fingerprint.clone())
            .with_pair(
                "MEASURES",
                if self.in_campaign {
                    "for a campaign"
                } else {
                    "nothing"
                },
            );
        let facts = match self.results_pending {
            Some(pending) => {
                facts.with_pair("RESULTS KEPT", format!("{pending} (at its last connect)"))
            }
            None => facts,
        };
        sections.pairs("Agent", &facts);
        sections.table("Policy", &self.policy);
        sections.table("Orders", &self.orders);
        sections.table("Clock", &self.clock);
        sections.text()
    }
}

crate::rows! {
    /// A schedule of a controller: a plan that runs repeatedly.
    pub struct ScheduleRow {
        /// Name of the schedule.
        schedule: AgentName => left "SCHEDULE" by |row| row.schedule.to_string(),
        /// Time from one run to the next.
        every_ns: Span => right "EVERY" by |row| row.every_ns.exact(),
        /// When the next run is due; `null` after the last one.
        next_unix_ns: Option<Wall> => left "NEXT" by |row| {
            row.next_unix_ns.map_or_else(|| "-".to_owned(), wall_time::utc)
        },
        /// End of the schedule, from which no run is due; null without an end.
        until_unix_ns: Option<Wall>,
        /// Outcome of the last run; null before the first one.
        last: Option<String> => left "LAST RUN",
        /// Runs that measured everything, as far as the history is stored.
        complete: u64 => right "COMPLETE",
        /// Runs that did not measure everything, as far as the history is stored.
        incomplete: u64 => right "INCOMPLETE",
        /// Missed runs, as far as the history is stored.
        missed: u64 => right "MISSED",
        /// Runs that were skipped because the previous run had not ended.
        skipped: u64 => right "SKIPPED",
        /// Path of the plan.
        plan: String => left "PLAN",
        /// Workspace of its campaigns.
        workspace: String => left "WORKSPACE",
    }
}

crate::rows! {
    /// A run of a schedule with its outcome.
    pub struct ScheduledRunRow {
        /// When the run was due; for several missed runs, the first.
        due_unix_ns: Wall => left "DUE" by |row| wall_time::utc(row.due_unix_ns),
        /// Number of runs; above 1 for missed runs only.
        count: u64 => right "RUNS",
        /// When the run began; null if it did not.
        began_unix_ns: Option<Wall> => left "BEGAN" by |row| {
            row.began_unix_ns.map_or_else(|| "-".to_owned(), wall_time::utc)
        },
        /// When its end was detected; null before.
        ended_unix_ns: Option<Wall> => left "ENDED" by |row| {
            row.ended_unix_ns.map_or_else(|| "-".to_owned(), wall_time::utc)
        },
        /// Id of its campaign; null if there is none or it is not known yet.
        campaign: Option<CampaignId> => left "CAMPAIGN" by |row| {
            row.campaign.map_or_else(|| "-".to_owned(), |id| id.to_string())
        },
        /// `running`, `complete`, `incomplete`, `interrupted`, `failed`, `missed` or `left out`,
        /// with the reason.
        outcome: String => left "OUTCOME",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_document_is_printed_in_sections() {
        let time = Wall::from_unix_nanos(1_700_000_000_000_000_000);
        let document = AgentDocument {
            schema: Version,
            agent: AgentRow {
                agent: "ams".parse().expect("a name"),
                connected: true,
                labels: Labels::new(["region=eu".parse().expect("a label")]).expect("one"),
                version: Some("0.1.0".to_owned()),
                running: Some(1),
                clock_offset_ns: Some(Span::from_nanos(1500)),
                clock_bound_ns: Some(Span::from_nanos(500)),
                refusals: BTreeMap::from([("target".to_owned(), 2)]),
                last_seen_unix_ns: Some(time),
                enrolled_unix_ns: time,
            },
            fingerprint: "ab".to_owned(),
            connected_unix_ns: Some(time),
            results_pending: Some(3),
            in_campaign: true,
            policy: vec![PolicyRow {
                key: "kinds".to_owned(),
                value: "udp".to_owned(),
            }],
            clock: Vec::new(),
            orders: vec![AgentOrderRow {
                order: OrderId::new(),
                kind: "experiments".to_owned(),
                parts: 2,
                sent_unix_ns: time,
                state: "running",
                changed_unix_ns: time,
                failure: None,
            }],
        };
        let text = document.text();
        for part in [
            "ams",
            "region=eu",
            "target: 2",
            "for a campaign",
            "3 (at its last connect)",
            "kinds",
            "experiments",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !text.contains("ERROR BOUND"),
            "an empty section is left out"
        );
    }
}
