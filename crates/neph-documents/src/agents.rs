//! The agents of a controller.

use std::collections::BTreeMap;

use neph_model::{AgentName, Span, Wall};

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
            let each = row.refusals.iter().map(|(reason, count)| format!("{count} {reason}"));
            let each: Vec<_> = each.collect();
            if each.is_empty() { "-".to_owned() } else { each.join(", ") }
        },
        /// When it was heard last; `null` while it is away.
        heard_unix_ns: Option<Wall> => left "LAST HEARD" by |row| {
            row.heard_unix_ns.map_or_else(|| "-".to_owned(), when::utc)
        },
        /// When it was enrolled.
        enrolled_unix_ns: Wall => left "ENROLLED" by |row| when::utc(row.enrolled_unix_ns),
    }
}
