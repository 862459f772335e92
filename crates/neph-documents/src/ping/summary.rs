//! The summary: the distribution of each layer, the parts of the time, and what is missing.

use neph_model::{ClockOffset, Ledger, OneWay, SEGMENT, Span, StageSet, Unanswered};
use neph_stats::RunningSummary;

use super::answers::{answer_lines, backends_line};
use super::columns::Column;
use super::entries::round_percents;
use super::merged;
use super::{FlowTotals, PingResult};
use super::{PlannedFlow, PlannedFlows};
use crate::cell::OrDash;
use crate::syn_answers;
use neph_text::counted::counted;

/// The flow as a line.
pub fn flow_title(planned: &PlannedFlow) -> String {
    let spec = &planned.spec;
    let peer = peer_text(planned);
    let interval = spec.schedule.interval;
    let sizes = if spec.reflector {
        format!(
            ", request {} B, reply {} B",
            spec.request_size, spec.response_size
        )
    } else {
        String::new()
    };
    format!(
        "{} ({}), {peer}, every {interval}{sizes}",
        spec.target,
        spec.address.ip()
    )
}

/// The peer of the measurement: no claim about a peer that did not identify itself.
fn peer_text(planned: &PlannedFlow) -> String {
    let (spec, discovery) = (&planned.spec, &planned.discovery);
    let is_silent = discovery.silence.is_some();
    let kind = spec.target.kind();
    let properties = kind.properties();
    if spec.reflector {
        return "neph reflector".to_owned();
    }
    if kind.is_segment() && !neph_probe::can_build_syns() {
        return "measured by connection attempts, broken off at once".to_owned();
    }
    // With UDP, silence on TCP shows nothing.
    if kind.uses_connection() && discovery.untrusted {
        return "a server with an untrusted certificate".to_owned();
    }
    if kind.uses_connection() && is_silent && !discovery.accepted {
        return "no answer yet".to_owned();
    }
    let server = match discovery.http {
        _ if !properties.has_status => "",
        Some(_) => "an HTTP server: ",
        None => "an unknown server: ",
    };
    format!("{server}{}", properties.method)
}

/// The summary as text.
pub fn summary_text(planned_flows: &PlannedFlows, result: &PingResult) -> String {
    let mut text = String::new();
    for (planned, totals) in planned_flows.flows.iter().zip(&result.flows) {
        text.push_str(&format!("\n--- {} ---\n", planned.spec.target));
        text.push_str(&counts_line(totals));
        text.push_str(&answer_lines(planned, totals));
        if totals.tally.replies > 0 {
            if planned.spec.target.kind().is_segment() {
                let refused = totals.refusal_count();
                let accepted = totals.tally.replies.saturating_sub(refused);
                let sentence = syn_answers::sentence(accepted, refused);
                text.push_str(&(sentence + "\n"));
            }
            text.push_str(&layers_table(totals));
            text.push_str(&stages_table(totals));
            text.push_str(&backends_line(totals));
            text.push_str(&directions_line(planned, totals));
            text.push_str(&tcp_line(planned, totals));
            text.push_str(&merged::lines(totals.entries.merged_sets(), &planned.spec));
        }
    }
    text
}

fn counts_line(totals: &FlowTotals) -> String {
    let tally = &totals.tally;
    let replies = match tally.replies {
        1 => "1 reply".to_owned(),
        count => format!("{count} replies"),
    };
    let mut line = format!("{}, {replies}", counted(tally.messages, "message"));
    let share = |part: u64| {
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let percent = part as f64 * 100.0 / tally.messages.max(1) as f64;
        format!("{percent:.2} %")
    };
    if tally.errors > 0 {
        let errors = counted(tally.errors, "error");
        line.push_str(&format!(", {errors} ({})", share(tally.errors)));
    }
    line.push_str(&format!(", {} lost ({})", tally.lost, share(tally.lost)));
    for (count, text) in [
        (tally.failed, format!("{} not sent", tally.failed)),
        (tally.late, format!("{} late", tally.late)),
        (tally.duplicates, counted(tally.duplicates, "duplicate")),
        (tally.reordered, format!("{} reordered", tally.reordered)),
    ] {
        if count > 0 {
            line.push_str(&format!(", {text}"));
        }
    }
    if totals.connections > 1 {
        let reconnects = u64::from(totals.connections - 1);
        line.push_str(&format!(", {}", counted(reconnects, "reconnect")));
    }
    line + "\n"
}

/// One row of the table.
struct Row {
    name: String,
    n: usize,
    cells: Vec<String>,
}

/// `none`: messages of its population that have no value, and rank above all values.
fn build_row(name: &str, values: &RunningSummary, unanswered: Unanswered) -> Option<Row> {
    let mean = values.mean()?;
    let unanswered_count = usize::try_from(unanswered.count()).unwrap_or(usize::MAX);
    let mut cells = vec![span_text(values.min()?), span_text(mean)];
    for quantile in values.quantiles(unanswered_count, [0.5, 0.9, 0.99]) {
        cells.push(match quantile {
            Ok(quantile) => quantile
                .value()
                .number()
                .map_or_else(|| unanswered.word().to_owned(), span_text),
            Err(_) => "-".to_owned(),
        });
    }
    cells.push(span_text(values.max()?));
    cells.push(values.sd().or_dash(span_text));
    Some(Row {
        name: name.to_owned(),
        n: values.n(),
        cells,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "nanoseconds of a latency fit"
)]
fn span_text(nanos: f64) -> String {
    Span::from_nanos(nanos.round() as i64).to_string()
}

const HEADINGS: [&str; 7] = ["min", "mean", "p50", "p90", "p99", "max", "sd"];

fn heading_line(name: &str) -> String {
    let mut line = format!("{name:<34}{:>8}", "n");
    for heading in HEADINGS {
        line.push_str(&format!("{heading:>11}"));
    }
    line + "\n"
}

fn render_row(row: &Row) -> String {
    let mut line = format!("{:<34}{:>8}", row.name, row.n);
    for cell in &row.cells {
        line.push_str(&format!("{cell:>11}"));
    }
    line
}

pub(super) fn column_values(totals: &FlowTotals, column: Column) -> &RunningSummary {
    static EMPTY: RunningSummary = RunningSummary::new();
    let index = Column::ALL.iter().position(|other| *other == column);
    index
        .and_then(|index| totals.values.get(index))
        .unwrap_or(&EMPTY)
}

fn layers_table(totals: &FlowTotals) -> String {
    let (response, service) = (
        totals.tally.without_response(),
        totals.tally.without_service(),
    );
    let unanswered = Unanswered::default();
    let rows = [
        ("response time (since intended)", Column::Response, response),
        ("service time (since sent)", Column::Service, service),
        ("TCP (acknowledged - sent)", Column::Tcp, unanswered),
        ("network (kernel timestamps)", Column::Network, unanswered),
        (
            "network + peer (kernel times)",
            Column::NetworkAndPeer,
            unanswered,
        ),
    ];
    let mut text = heading_line("round-trip time");
    for (name, column, unanswered) in rows {
        if let Some(row) = build_row(name, column_values(totals, column), unanswered) {
            text.push_str(&(render_row(&row) + "\n"));
        }
    }
    if !column_values(totals, Column::Response).is_exact() {
        text.push_str("  quantiles are within 0.2 %: there are too many messages to keep each\n");
    }
    let has_few_replies = totals.tally.replies < 299;
    if has_few_replies {
        text.push_str("  '-': too few messages for that quantile (p50 needs 6, p90 29, p99 299)\n");
    }
    text
}

/// Each entry of the ledgers with its share of the response times of all replies.
fn stages_table(totals: &FlowTotals) -> String {
    let mut text = heading_line("stage");
    text.truncate(text.trim_end().len());
    text.push_str(&format!("{:>10}\n", "share"));
    let shares: Vec<f64> = totals.entries.shares().map(|(_, _, share)| share).collect();
    let percents = round_percents(&shares);
    for ((set, entry, _), share) in totals.entries.shares().zip(percents) {
        if let Some(row) = build_row(&short_name(set), &entry.values, Unanswered::default()) {
            text.push_str(&format!("{}{share:>8.1} %\n", render_row(&row)));
        }
    }
    text
}

/// An entry's name, on one line of the table.
fn short_name(set: StageSet) -> String {
    let name = set.to_string();
    if !set.is_merged() {
        return name;
    }
    name.replace("peer application", "app")
        .replace(" + peer ", " + ")
}

fn directions_line(planned: &PlannedFlow, totals: &FlowTotals) -> String {
    let same_clock = planned.discovery.same_clock && totals.backends.may_share_local_clock();
    let offset = if same_clock {
        Some(ClockOffset::SAME_CLOCK)
    } else {
        totals.offset()
    };
    let delays = offset
        .zip(totals.last_message.as_ref())
        .and_then(|(offset, last)| {
            Ledger::directions(&last.marks, offset)
                .map(|(forward, reverse)| (offset, forward, reverse))
        });
    let Some((offset, forward, reverse)) = delays else {
        return String::new();
    };
    let delay_text = |delay: OneWay| format!("{} +- {}", delay.delay, delay.bound);
    let clocks = if same_clock {
        "same clock".to_owned()
    } else {
        format!(
            "offset of the peer's timestamps {} +- {}",
            offset.value(),
            offset.bound()
        )
    };
    format!(
        "one-way delay of the last message: forward {}, reverse {} ({clocks})\n",
        delay_text(forward),
        delay_text(reverse)
    )
}

/// The values of TCP itself. A message within the window is sent before the path can limit its
/// rate. TCP's delivery rate is then only the message's size over some time, and is not shown.
fn tcp_line(planned: &PlannedFlow, totals: &FlowTotals) -> String {
    let Some(state) = totals
        .last_message
        .and_then(|last| last.tcp_at_ack.or(last.tcp_at_send))
    else {
        return String::new();
    };
    let mut line = format!(
        "TCP at the end: window {} segments, srtt {}, {} retransmissions",
        state.cwnd,
        Span::from_micros(i64::from(state.srtt_us)),
        totals.retransmissions.total
    );
    if totals.retransmissions.spurious > 0 {
        line.push_str(&format!(
            " ({} spurious: the peer had the segments already)",
            totals.retransmissions.spurious
        ));
    }
    if planned.spec.request_size as u64 > u64::from(state.cwnd) * SEGMENT.bytes() {
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let rate = state.delivery_rate as f64 * 8.0 / 1e6;
        line.push_str(&format!(", delivery {rate:.2} Mbit/s"));
    }
    line + "\n"
}
