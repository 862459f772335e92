//! The table of all metrics except those of `neph watch`. docs/metrics.md shows it.

pub(super) mod live;
pub(super) mod run;

use neph_export::{Definition, Kind, Unit};

const fn gauge(
    name: &'static str,
    label_names: &'static [&'static str],
    help: &'static str,
) -> Definition {
    Definition {
        name,
        help,
        unit: Unit::None,
        kind: Kind::Gauge,
        label_names,
    }
}

const fn counter(
    name: &'static str,
    label_names: &'static [&'static str],
    help: &'static str,
) -> Definition {
    Definition {
        kind: Kind::Counter,
        ..gauge(name, label_names, help)
    }
}

const fn with_unit(unit: Unit, definition: &Definition) -> Definition {
    Definition {
        unit,
        ..*definition
    }
}

/// Histogram bounds of times.
const fn time_histogram(
    name: &'static str,
    label_names: &'static [&'static str],
    help: &'static str,
) -> Definition {
    Definition {
        unit: Unit::Seconds,
        kind: Kind::Histogram,
        ..gauge(name, label_names, help)
    }
}

pub(super) static BUILD: Definition = gauge(
    "neph_build_info",
    &["version", "commit"],
    "Always 1. The labels have the version and the commit of the program.",
);

pub(super) static ENROLLED_AGENTS: Definition = gauge(
    "neph_control_agents_enrolled",
    &[],
    "Agents that are enrolled.",
);
pub(super) static CONNECTED_AGENTS: Definition = gauge(
    "neph_control_agent_connected",
    &["agent"],
    "1 if the agent is connected, 0 if it is enrolled and not connected.",
);
pub(super) static LABELS: Definition = gauge(
    "neph_control_agent_label",
    &["agent", "label", "value"],
    "1 for each label of the connected agent.",
);
pub(super) static ORDERS: Definition = gauge(
    "neph_control_orders_running",
    &["agent"],
    "Orders that the connected agent carries out.",
);
pub(super) static REFUSALS: Definition = counter(
    "neph_control_refusals_total",
    &["agent", "reason"],
    "Number of orders and targets that the connected agent has refused since its start.",
);
pub(super) static CLOCK_OFFSET: Definition = with_unit(
    Unit::Seconds,
    &gauge(
        "neph_control_clock_offset_seconds",
        &["agent"],
        "Clock of the agent minus clock of the controller.",
    ),
);
pub(super) static CLOCK_BOUND: Definition = with_unit(
    Unit::Seconds,
    &gauge(
        "neph_control_clock_bound_seconds",
        &["agent"],
        "Error bound of the clock offset, in each direction.",
    ),
);
pub(super) static SILENCE: Definition = with_unit(
    Unit::Seconds,
    &gauge(
        "neph_control_agent_silence_seconds",
        &["agent"],
        "Time since the agent's last message. Absent until the agent has connected to the running controller.",
    ),
);
pub(super) static CAMPAIGN: Definition = gauge(
    "neph_control_campaign_attached",
    &[],
    "1 while a campaign uses the controller.",
);

pub(super) static AGENT_CONNECTED: Definition = gauge(
    "neph_agent_connected",
    &["agent"],
    "1 while a controller is connected.",
);
pub(super) static AGENT_CONNECTIONS: Definition = counter(
    "neph_agent_connections_total",
    &["agent"],
    "Connections to controllers since the agent's start.",
);
pub(super) static AGENT_ORDERS: Definition = gauge(
    "neph_agent_orders_running",
    &["agent"],
    "Orders that the agent carries out.",
);
pub(super) static AGENT_SENT_TODAY: Definition = with_unit(
    Unit::Bytes,
    &gauge(
        "neph_agent_sent_today_bytes",
        &["agent"],
        "Bytes that the agent has sent since 00:00 UTC, as its policy counts them.",
    ),
);
pub(super) static AGENT_DAY_LIMIT: Definition = with_unit(
    Unit::Bytes,
    &gauge(
        "neph_agent_day_limit_bytes",
        &["agent"],
        "Bytes that the agent's policy allows a day; absent without a limit.",
    ),
);
pub(super) static AGENT_REFUSALS: Definition = counter(
    "neph_agent_refusals_total",
    &["agent", "reason"],
    "Number of orders and targets that the agent has refused since its start.",
);
pub(super) static AGENT_OFFSET: Definition = with_unit(
    Unit::Seconds,
    &gauge(
        "neph_agent_clock_offset_seconds",
        &["agent"],
        "Clock of the agent minus clock of the controller.",
    ),
);
pub(super) static AGENT_BOUND: Definition = with_unit(
    Unit::Seconds,
    &gauge(
        "neph_agent_clock_bound_seconds",
        &["agent"],
        "Error bound of the clock offset, in each direction; it grows while no controller answers.",
    ),
);

/// All metrics, in the order of their page.
#[cfg(test)]
fn all_definitions() -> Vec<&'static Definition> {
    let host_definitions = [
        &BUILD,
        &ENROLLED_AGENTS,
        &CONNECTED_AGENTS,
        &LABELS,
        &ORDERS,
        &REFUSALS,
        &CLOCK_OFFSET,
        &CLOCK_BOUND,
        &SILENCE,
        &CAMPAIGN,
        &AGENT_CONNECTED,
        &AGENT_CONNECTIONS,
        &AGENT_ORDERS,
        &AGENT_SENT_TODAY,
        &AGENT_DAY_LIMIT,
        &AGENT_REFUSALS,
        &AGENT_OFFSET,
        &AGENT_BOUND,
    ];
    [&host_definitions[..], &run::ALL, &live::ALL].concat()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    const START_MARK: &str = "<!-- metrics -->\n";
    const END_MARK: &str = "<!-- end of metrics -->\n";

    fn render_table() -> String {
        let mut text = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
        for definition in all_definitions() {
            let kind = match definition.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            let labels: Vec<String> = definition
                .label_names
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let (name, labels, help) = (definition.name, labels.join(", "), definition.help);
            text.push_str(&format!("| `{name}` | {kind} | {labels} | {help} |\n"));
        }
        text
    }

    #[test]
    fn the_page_shows_this_table() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = fs::read_to_string(&path).expect("docs/metrics.md");
        let (head, rest) = page.split_once(START_MARK).expect("the mark");
        let (_, tail) = rest.split_once(END_MARK).expect("the second mark");
        let expected_page = format!("{head}{START_MARK}{}{END_MARK}{tail}", render_table());
        if std::env::var_os("NEPH_BLESS").is_some() {
            fs::write(&path, expected_page).expect("a page of ours");
        } else {
            assert!(
                page == expected_page,
                "NEPH_BLESS=1 cargo test -p neph --lib metrics"
            );
        }
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for definition in all_definitions() {
            let name = definition.name;
            let total = if definition.kind == Kind::Counter {
                "_total"
            } else {
                ""
            };
            let suffix = format!("{}{total}", definition.unit.suffix());
            assert!(
                name.starts_with("neph_") && name.ends_with(&suffix),
                "{name}"
            );
            let is_total = name.ends_with("_total");
            assert_eq!(is_total, definition.kind == Kind::Counter, "{name}");
            assert!(definition.help.ends_with('.'), "{name}");
            for flow in ["flow", "port", "slot", "experiment"] {
                assert!(
                    !definition.label_names.contains(&flow),
                    "{name} has one series a {flow}"
                );
            }
        }
    }

    #[test]
    fn every_metric_of_the_sources_is_in_the_table() {
        let sources = [
            include_str!("definitions.rs"),
            include_str!("definitions/run.rs"),
            include_str!("definitions/live.rs"),
        ];
        let definitions = sources
            .iter()
            .flat_map(|source| source.lines())
            .filter(|line| line.starts_with("pub(") && line.contains(") static "));
        let tables = definitions.clone().filter(|line| line.contains(": ["));
        assert_eq!(
            definitions.count() - tables.count(),
            all_definitions().len()
        );
    }
}
