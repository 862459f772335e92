//! The summary as text: losses by direction, latency classes, path changes and unfairness.

use neph_agent::refusal_warnings;
use neph_flows::{FleetView, PairView};
use neph_model::{ProbeKind, Warning};
use neph_probe::FleetTally;

use super::FlowsResult;
use super::lines::{percent, time_of_day};
use super::{advice, dip, moves, unfair};
use crate::cell::OrDash;
use crate::syn_answers;
use neph_text::counted::counted;

/// Number of ports that are shown of a class.
const MAX_SHOWN_PORTS: usize = 5;

/// Why paths are not evaluated.
const MOSTLY_LOST: &str = "classes, inflation and path changes not evaluated: more than half of the messages were lost or late\n";

/// The whole text.
pub fn text(result: &FlowsResult) -> String {
    let view = &result.view;
    let mut text = String::new();
    for (endpoint, pair) in view.pairs.iter().enumerate() {
        text.push_str(&format!("\n--- {} ---\n", pair.endpoint));
        let tally = &pair.tally;
        text.push_str(&outcomes_text(pair, view.flows_of(endpoint).count()));
        if tally.replies == 0 {
            if view.advice.get(endpoint).is_some() {
                text.push_str("\nadvice\nno advice: no answer\n");
            }
            continue;
        }
        if let Some(at) = pair.forgotten {
            text.push_str(&format!(
                "what flows did before {} was too much to keep; below is what came after\n",
                time_of_day(at, &result.clock)
            ));
        }
        if pair.mostly_lost {
            text.push_str(MOSTLY_LOST);
        } else {
            text.push_str(&classes_table(view, endpoint));
            text.push_str(&moves::text(
                view,
                endpoint,
                pair,
                result.uncompared.get(endpoint),
            ));
        }
        text.push_str(&inequality_text(view, endpoint, pair));
        if let Some(transfers) = result.transfers.get(endpoint) {
            text.push_str(&transfers.text());
        }
        if let Some(advice) = view.advice.get(endpoint) {
            text.push_str(&advice::text(advice, &view.fleet, endpoint));
        }
    }
    for reason in &result.no_reply_reasons {
        text.push_str(&format!("\n{reason}\n"));
    }
    if let Some(reason) = &result.not_sent_reason {
        text.push_str(&format!(
            "\n{} not sent; the first: {reason}\n",
            counted(view.tally.failed, "message")
        ));
    }
    text.push_str(&syn_answers_text(view.fleet.probe, &result.sender_tally));
    text.push_str(&host_effects(result));
    text
}

/// The outcomes of messages, by direction if known.
fn outcomes_text(pair: &PairView, flows: usize) -> String {
    let tally = &pair.tally;
    let mut line = format!(
        "{}, {}, {}, {} lost ({})",
        counted(flows as u64, "flow"),
        counted(tally.messages(), "message"),
        replies_text(tally.replies),
        tally.lost,
        percent(tally.loss().map_or(0.0, |loss| loss.share))
    );
    line.push_str(&loss_directions_text(pair));
    for (count, text) in [
        (tally.failed, format!("{} not sent", tally.failed)),
        (tally.copies, counted(tally.copies, "duplicate")),
        (
            tally.reordered_forward,
            format!(
                "{} reordered on the forward path",
                counted(tally.reordered_forward, "request")
            ),
        ),
        (
            tally.reordered_reverse,
            format!(
                "{} reordered on the reverse path",
                replies_text(tally.reordered_reverse)
            ),
        ),
    ] {
        if count > 0 {
            line.push_str(&format!("; {text}"));
        }
    }
    line + "\n"
}

/// The direction of losses; empty if not known.
fn loss_directions_text(pair: &PairView) -> String {
    let tally = &pair.tally;
    let late = pair.late.unwrap_or(0);
    let mut parts = Vec::new();
    if late > 0 {
        parts.push(format!("{late} came back after the timeout"));
    }
    if tally.lost_forward + tally.lost_reverse > 0 {
        parts.push(format!("{} on the forward path", tally.lost_forward));
        parts.push(format!("{} on the reverse path", tally.lost_reverse));
    }
    if parts.is_empty() {
        return String::new();
    }
    let known_count = late + tally.lost_forward + tally.lost_reverse;
    if known_count < tally.lost {
        parts.push(format!("of {} it is not known", tally.lost - known_count));
    }
    format!(": {}", parts.join(", "))
}

/// `1 reply`, `2 replies`.
fn replies_text(number: u64) -> String {
    match number {
        1 => "1 reply".to_owned(),
        count => format!("{count} replies"),
    }
}

fn classes_table(view: &FleetView, endpoint: usize) -> String {
    let classes = &view.classes[endpoint];
    if classes.is_empty() {
        return no_base_text(view, endpoint);
    }
    let mut text =
        "\nclass        base     of time   flows    left  joined  left/flow/h     lost  ports\n"
            .to_owned();
    let moves = &view.pairs[endpoint].moved;
    for (index, class) in classes.iter().enumerate() {
        let rate = moves.get(index).filter(|_| !view.pairs[endpoint].too_short);
        let rate = rate.or_dash(|moves| format!("{:.1}", moves.per_flow_hour));
        text.push_str(&format!(
            "{:>5}  {:>10}  {:>10}  {:>6}  {:>6}  {:>6}  {:>11}  {:>7}  {}\n",
            index + 1,
            class.base,
            percent(class.share),
            class.flows,
            class.left,
            class.joined,
            rate,
            class.loss().or_dash(|loss| percent(loss.share)),
            ports_text(view, endpoint, index)
        ));
    }
    text + "\n"
}

/// Why no flow has a base latency.
fn no_base_text(view: &FleetView, endpoint: usize) -> String {
    let rule = view.settings.detection;
    let reply_counts = view.flows_of(endpoint).map(|flow| flow.tally.replies);
    let max = reply_counts.max().unwrap_or(0);
    if max < u64::from(rule.window) {
        return format!(
            "no flow had a base latency: each had {} at most, and it takes {}: measure longer, or ask more often\n",
            replies_text(max),
            rule.window
        );
    }
    format!(
        "no flow had a base latency: {} of {} round trips never lay within {}\n",
        rule.quorum, rule.window, rule.tolerance
    )
}

/// Some source ports that were in the class at the end.
fn ports_text(view: &FleetView, endpoint: usize, class: usize) -> String {
    let mut ports = view.ports_in(endpoint, class);
    let shown_ports: Vec<String> = ports
        .by_ref()
        .take(MAX_SHOWN_PORTS)
        .map(|port| port.to_string())
        .collect();
    let ellipsis = if ports.next().is_some() { " ..." } else { "" };
    shown_ports.join(" ") + ellipsis
}

/// Inflation, unfairness, bimodality.
fn inequality_text(view: &FleetView, endpoint: usize, pair: &PairView) -> String {
    let mut text = String::new();
    if let Some(inflation) = &pair.inflation {
        text.push_str(&format!(
            "inflation:     {} ({} over {}, {})\n",
            percent(inflation.ratio - 1.0),
            inflation.highest,
            inflation.lowest,
            counted(inflation.flows, "flow")
        ));
    }
    text.push_str(&unfair::text(&view.latency_bins[endpoint], view.bin()));
    if let Some(dip) = &pair.bimodality {
        text.push_str(&dip::text(dip, view.settings.detection.tolerance));
    }
    text
}

/// How targets answered SYNs: whether they have a listener.
fn syn_answers_text(probe: ProbeKind, tally: &FleetTally) -> String {
    if !probe.is_segment() || tally.replies == 0 {
        return String::new();
    }
    let text = syn_answers::sentence(tally.replies - tally.refused, tally.refused);
    format!("\n{text}\n")
}

/// The warnings that explain the result: a busy host is no reason if no target answered at all.
fn explaining_warnings<'a>(warnings: &'a [Warning], tally: &FleetTally) -> &'a [Warning] {
    if tally.replies + tally.late > 0 {
        warnings
    } else {
        &[]
    }
}

/// The effects of the client host and the reflectors; empty if there are none.
fn host_effects(result: &FlowsResult) -> String {
    let tally = &result.sender_tally;
    let warnings = &result.warnings;
    let is_slow = warnings
        .iter()
        .any(|warning| matches!(warning, Warning::ReflectorSlow { .. }));
    let mut text = String::new();
    for (count, sentence) in [
        (
            tally.dropped_here,
            "replies were dropped by this host, which read too slowly: they are among the lost; ask for fewer messages a second",
        ),
        (
            tally.late,
            if is_slow {
                "replies came after their timeout and count as lost"
            } else {
                "replies came after their timeout and count as lost; --timeout is too short for this network"
            },
        ),
        (
            tally.implausible_replies,
            "replies do not repeat their request, or have times that cannot be true (before the request, or longer than the round trip): they were left out",
        ),
        (
            tally.unstamped,
            "messages have no kernel timestamps: their RTTs include delays in neph itself",
        ),
    ] {
        if count > 0 {
            text.push_str(&format!("{count} {sentence}\n"));
        }
    }
    for warning in explaining_warnings(warnings, tally) {
        text.push_str(&format!("{warning}; {}\n", warning.advice()));
    }
    for (endpoint, refused) in &result.refused {
        for warning in refusal_warnings(refused) {
            text.push_str(&format!(
                "{}: {warning}; {}\n",
                endpoint.name,
                warning.advice()
            ));
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use neph_flows::FlowTally;

    use super::*;

    #[test]
    fn late_replies_are_lost_in_neither_direction() {
        let loss_text = |late, [total, forward, reverse]: [u64; 3]| {
            let tally = FlowTally {
                lost: total,
                lost_forward: forward,
                lost_reverse: reverse,
                ..FlowTally::default()
            };
            loss_directions_text(&PairView {
                tally,
                late,
                ..PairView::default()
            })
        };
        assert_eq!(
            loss_text(Some(26970), [26999, 22, 7]),
            ": 26970 came back after the timeout, 22 on the forward path, 7 on the reverse path"
        );
        assert_eq!(
            loss_text(Some(3), [5, 0, 0]),
            ": 3 came back after the timeout, of 2 it is not known"
        );
        assert_eq!(
            loss_text(None, [5, 2, 1]),
            ": 2 on the forward path, 1 on the reverse path, of 2 it is not known"
        );
        assert_eq!(loss_text(Some(0), [5, 0, 0]), "");
    }

    #[test]
    fn a_busy_host_does_not_explain_missing_replies() {
        let warnings = [Warning::CpuSaturated { percent: 100.0 }];
        let warning_count = |replies, late| {
            let tally = FleetTally {
                replies,
                late,
                ..FleetTally::default()
            };
            explaining_warnings(&warnings, &tally).len()
        };
        assert_eq!(
            (
                warning_count(0, 0),
                warning_count(0, 1),
                warning_count(1, 0)
            ),
            (0, 1, 1)
        );
    }

    #[test]
    fn syn_answers_show_whether_the_port_is_open_or_closed() {
        let text = |replies, refused| {
            let tally = FleetTally {
                replies,
                refused,
                ..FleetTally::default()
            };
            syn_answers_text(ProbeKind::Syn, &tally)
        };
        assert!(text(4096, 4096).contains("all 4096 answers were RST: the port is closed"));
        assert!(text(9, 0).contains("all 9 answers were SYN-ACK: the port is open"));
        assert!(text(9, 4).contains("5 were SYN-ACK") && text(9, 4).contains("4 RST"));
        assert_eq!(text(0, 0), "");
        assert_eq!(
            syn_answers_text(
                ProbeKind::Udp,
                &FleetTally {
                    replies: 1,
                    ..FleetTally::default()
                }
            ),
            ""
        );
    }
}
