//! The agents of a controller, and its schedules.

use std::collections::BTreeMap;

use neph_model::{AgentName, CampaignId, Labels, OrderId, Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use crate::sections::{Pairs, Sections};
use crate::version::Version;
use crate::when;

crate::rows! {
    /// An agent that is enrolled.
    pub struct AgentRow {
        /// Its name.
        agent: AgentName => left "AGENT" by |row| row.agent.to_string(),
        /// Whether it is connected to the controller now.
        connected: bool => left "STATE" by |row| {
            if row.connected { "connected" } else { "away" }.to_owned()
        },
        /// What its site is, in the words of who runs it; empty while it is away.
        labels: Labels => left "LABELS" by |row| {
            if row.labels.is_empty() { "-".to_owned() } else { row.labels.to_string() }
        },
        /// The version of its program; `null` while it is away.
        version: Option<String> => left "VERSION",
        /// Orders that it carries out; `null` while it is away.
        running: Option<u32> => right "RUNNING",
        /// Its clock minus the controller's; `null` while that is not known.
        clock_offset_ns: Option<Span> => right "CLOCK" by |row| match (row.clock_offset_ns, row.clock_bound_ns) {
            (Some(offset), Some(bound)) => format!("{offset} ± {bound}"),
            _ => "-".to_owned(),
        },
        /// How far that may be wrong, either way.
        clock_bound_ns: Option<Span>,
        /// Orders and targets that its policy has refused since its start, by the reason.
        refusals: BTreeMap<String, u64> => left "REFUSED" by |row| {
            let each = row.refusals.iter().map(|(reason, count)| format!("{reason}: {count}"));
            let each: Vec<_> = each.collect();
            if each.is_empty() { "-".to_owned() } else { each.join(", ") }
        },
        /// When it was heard last; `null` while it is away.
        last_seen_unix_ns: Option<Wall> => left "LAST SEEN" by |row| {
            row.last_seen_unix_ns.map_or_else(|| "-".to_owned(), when::utc)
        },
        /// When it was enrolled.
        enrolled_unix_ns: Wall => left "ENROLLED" by |row| when::utc(row.enrolled_unix_ns),
    }
}

crate::rows! {
    /// An operator that is enrolled.
    pub struct OperatorRow {
        /// Its name.
        operator: AgentName => left "OPERATOR" by |row| row.operator.to_string(),
        /// When it was enrolled.
        enrolled_unix_ns: Wall => left "ENROLLED" by |row| when::utc(row.enrolled_unix_ns),
        /// SHA-256 of its certificate, as hexadecimal digits.
        fingerprint: String => left "CERTIFICATE",
    }
}

crate::rows! {
    /// A line of an agent's policy.
    pub struct PolicyRow {
        /// The key in `agent.toml`.
        key: String => left "KEY",
        /// What it allows.
        value: String => left "VALUE",
    }
}

crate::rows! {
    /// How far an agent's clock was from the controller's.
    pub struct ClockRow {
        /// When.
        at_unix_ns: Wall => left "TIME" by |row| when::utc(row.at_unix_ns),
        /// Its clock minus the controller's.
        offset_ns: Span => right "OFFSET",
        /// How far that may be wrong, either way.
        bound_ns: Span => right "ERROR BOUND",
    }
}

crate::rows! {
    /// An order that an agent was sent.
    pub struct AgentOrderRow {
        /// Its id.
        order: OrderId => left "ORDER" by |row| row.order.to_string(),
        /// Its kind: experiments, throughput, traceroute, pings, load, reflector.
        kind: String => left "KIND",
        /// How many experiments it has; 1 for another order.
        parts: usize => right "PARTS",
        /// When it was sent.
        sent_unix_ns: Wall => left "SENT" by |row| when::utc(row.sent_unix_ns),
        /// How it stands: sent, running, ended (its result waits to be stored), stored.
        state: &'static str => left "STATE",
        /// Since when.
        changed_unix_ns: Wall => left "SINCE" by |row| when::utc(row.changed_unix_ns),
        /// Why it failed; `null` if it did not.
        failure: Option<String> => left "FAILURE",
    }
}

/// All that a controller knows of one agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentDocument {
    /// The version of these keys.
    pub schema: Version,
    /// What `neph agents` lists of it.
    pub agent: AgentRow,
    /// SHA-256 of its certificate, as hexadecimal digits.
    pub fingerprint: String,
    /// Since when it is connected; `null` while it is away.
    pub connected_unix_ns: Option<Wall>,
    /// Results that it kept when it connected; `null` while it is away.
    pub holds: Option<usize>,
    /// Whether a campaign measures from it.
    pub measures: bool,
    /// Its policy; empty while it was not connected since the controller's start.
    pub policy: Vec<PolicyRow>,
    /// Its clock over the last four hours, every five minutes, since the controller's start.
    pub clock: Vec<ClockRow>,
    /// Its last orders since the controller's start, oldest first.
    pub orders: Vec<AgentOrderRow>,
}

impl AgentDocument {
    /// The text form.
    pub fn text(&self) -> String {
        let mut sections = Sections::default();
        let of = |wall: Option<Wall>| wall.map_or_else(|| "-".to_owned(), when::utc);
        let facts = Pairs::of(&self.agent)
            .and("CONNECTED SINCE", of(self.connected_unix_ns))
            .and("CERTIFICATE", self.fingerprint.clone())
            .and(
                "MEASURES",
                if self.measures {
                    "for a campaign"
                } else {
                    "nothing"
                },
            );
        let facts = match self.holds {
            Some(holds) => facts.and("RESULTS KEPT", format!("{holds} when it connected")),
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
    /// A schedule of a controller.
    pub struct ScheduleRow {
        /// Its name.
        schedule: AgentName => left "SCHEDULE" by |row| row.schedule.to_string(),
        /// From one run to the next.
        every_ns: Span => right "EVERY" by |row| row.every_ns.exact(),
        /// When the next run is due; `null` after the last one.
        next_unix_ns: Option<Wall> => left "NEXT" by |row| {
            row.next_unix_ns.map_or_else(|| "-".to_owned(), when::utc)
        },
        /// No run is due from then on; `null` if there is no end.
        until_unix_ns: Option<Wall>,
        /// What became of the last run.
        last: Option<String> => left "LAST RUN",
        /// Runs that ended with everything measured, as far as the history goes back.
        complete: u64 => right "COMPLETE",
        /// Runs that ended otherwise.
        incomplete: u64 => right "INCOMPLETE",
        /// Runs that were missed.
        missed: u64 => right "MISSED",
        /// Runs that were left out because the one before was not over.
        left_out: u64 => right "SKIPPED",
        /// The plan.
        plan: String => left "PLAN",
        /// The workspace that has its campaigns.
        workspace: String => left "WORKSPACE",
    }
}

crate::rows! {
    /// What became of a run of a schedule.
    pub struct ScheduledRunRow {
        /// When it was due; of several that were missed, the first.
        due_unix_ns: Wall => left "DUE" by |row| when::utc(row.due_unix_ns),
        /// How many: more than 1 only where runs were missed.
        count: u64 => right "RUNS",
        /// When it began; `null` if it did not.
        began_unix_ns: Option<Wall> => left "BEGAN" by |row| {
            row.began_unix_ns.map_or_else(|| "-".to_owned(), when::utc)
        },
        /// When it was seen to have ended; `null` before.
        ended_unix_ns: Option<Wall> => left "ENDED" by |row| {
            row.ended_unix_ns.map_or_else(|| "-".to_owned(), when::utc)
        },
        /// Its campaign; `null` where there is none, or none is known yet.
        campaign: Option<CampaignId> => left "CAMPAIGN" by |row| {
            row.campaign.map_or_else(|| "-".to_owned(), |id| id.to_string())
        },
        /// running, complete, incomplete, interrupted, failed, missed or left out; and why.
        outcome: String => left "OUTCOME",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_an_agent_is_shown_in_sections() {
        let at = Wall::from_unix_nanos(1_700_000_000_000_000_000);
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
                last_seen_unix_ns: Some(at),
                enrolled_unix_ns: at,
            },
            fingerprint: "ab".to_owned(),
            connected_unix_ns: Some(at),
            holds: Some(3),
            measures: true,
            policy: vec![PolicyRow {
                key: "kinds".to_owned(),
                value: "udp".to_owned(),
            }],
            clock: Vec::new(),
            orders: vec![AgentOrderRow {
                order: OrderId::new(),
                kind: "experiments".to_owned(),
                parts: 2,
                sent_unix_ns: at,
                state: "running",
                changed_unix_ns: at,
                failure: None,
            }],
        };
        let text = document.text();
        for part in [
            "ams",
            "region=eu",
            "target: 2",
            "for a campaign",
            "3 when it connected",
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
