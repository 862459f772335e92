//! The summary: the distribution of each layer, the parts of the time, and what is missing.

use neph_model::{ClockOffset, Ledger, OneWay, SEGMENT, Span, StageSet, Unanswered};
use neph_stats::RunningSummary;

use super::answers::{answers, backends};
use super::columns::Column;
use super::entries::percents;
use super::merged;
use super::{FlowMeasured, PingResult};
use super::{Planned, PlannedFlows};
use crate::cell::OrDash;
use crate::syn_answers;
use neph_text::counted::counted;

/// The flow as a line.
pub fn title(planned: &Planned) -> String {
    let spec = &planned.spec;
    let flow = flow_text(planned);
    let every = spec.schedule.interval;
    let sizes = if spec.reflector {
        format!(
            ", request {} B, reply {} B",
            spec.request_size, spec.response_size
        )
    } else {
        String::new()
    };
    format!(
        "{} ({}), {flow}, every {every}{sizes}",
        spec.target,
        spec.address.ip()
    )
}

/// The peer of the measurement: no claim about a peer that did not identify itself.
fn flow_text(planned: &Planned) -> String {
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
pub fn text(planned_flows: &PlannedFlows, watched: &PingResult) -> String {
    let mut text = String::new();
    for (planned, watched) in planned_flows.flows.iter().zip(&watched.flows) {
        text.push_str(&format!("\n--- {} ---\n", planned.spec.target));
        text.push_str(&counts(watched));
        text.push_str(&answers(planned, watched));
        if watched.tally.replies > 0 {
            if planned.spec.target.kind().is_segment() {
                let refused = watched.refused();
                let accepted = watched.tally.replies.saturating_sub(refused);
                let printed = syn_answers::sentence(accepted, refused);
                text.push_str(&(printed + "\n"));
            }
            text.push_str(&layers(watched));
            text.push_str(&stages(watched));
            text.push_str(&backends(watched));
            text.push_str(&directions(planned, watched));
            text.push_str(&tcp(planned, watched));
            text.push_str(&merged::lines(watched.entries.merged(), &planned.spec));
        }
    }
    text
}

fn counts(watched: &FlowMeasured) -> String {
    let tally = &watched.tally;
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
    if watched.connections > 1 {
        let repeats = u64::from(watched.connections - 1);
        line.push_str(&format!(", {}", counted(repeats, "reconnect")));
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
fn row(name: &str, values: &RunningSummary, none: Unanswered) -> Option<Row> {
    let mean = values.mean()?;
    let above = usize::try_from(none.count()).unwrap_or(usize::MAX);
    let mut cells = vec![span(values.min()?), span(mean)];
    for quantile in values.quantiles(above, [0.5, 0.9, 0.99]) {
        cells.push(match quantile {
            Ok(quantile) => quantile
                .value()
                .number()
                .map_or_else(|| none.word().to_owned(), span),
            Err(_) => "-".to_owned(),
        });
    }
    cells.push(span(values.max()?));
    cells.push(values.sd().or_dash(span));
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
fn span(nanos: f64) -> String {
    Span::from_nanos(nanos.round() as i64).to_string()
}

const HEADINGS: [&str; 7] = ["min", "mean", "p50", "p90", "p99", "max", "sd"];

fn heading(name: &str) -> String {
    let mut line = format!("{name:<34}{:>8}", "n");
    for heading in HEADINGS {
        line.push_str(&format!("{heading:>11}"));
    }
    line + "\n"
}

fn render(row: &Row) -> String {
    let mut line = format!("{:<34}{:>8}", row.name, row.n);
    for cell in &row.cells {
        line.push_str(&format!("{cell:>11}"));
    }
    line
}

pub(super) fn values(watched: &FlowMeasured, column: Column) -> &RunningSummary {
    static NONE: RunningSummary = RunningSummary::new();
    let at = Column::ALL.iter().position(|known| *known == column);
    at.and_then(|at| watched.values.get(at)).unwrap_or(&NONE)
}

fn layers(watched: &FlowMeasured) -> String {
    let (response, service) = (
        watched.tally.without_response(),
        watched.tally.without_service(),
    );
    let none = Unanswered::default();
    let rows = [
        ("response time (since intended)", Column::Response, response),
        ("service time (since sent)", Column::Service, service),
        ("TCP (acknowledged - sent)", Column::Tcp, none),
        ("network (kernel timestamps)", Column::Network, none),
        (
            "network + peer (kernel times)",
            Column::NetworkAndPeer,
            none,
        ),
    ];
    let mut text = heading("round-trip time");
    for (name, column, none) in rows {
        if let Some(row) = row(name, values(watched, column), none) {
            text.push_str(&(render(&row) + "\n"));
        }
    }
    if !values(watched, Column::Response).is_exact() {
        text.push_str("  quantiles are within 0.2 %: there are too many messages to keep each\n");
    }
    let few = watched.tally.replies < 299;
    if few {
        text.push_str("  '-': too few messages for that quantile (p50 needs 6, p90 29, p99 299)\n");
    }
    text
}

/// Each entry of the ledgers with its share of the response times of all replies.
fn stages(watched: &FlowMeasured) -> String {
    let mut text = heading("stage");
    text.truncate(text.trim_end().len());
    text.push_str(&format!("{:>10}\n", "share"));
    let shares: Vec<f64> = watched
        .entries
        .shares()
        .map(|(_, _, share)| share)
        .collect();
    let percents = percents(&shares);
    for ((set, entry, _), share) in watched.entries.shares().zip(percents) {
        if let Some(row) = row(&short(set), &entry.values, Unanswered::default()) {
            text.push_str(&format!("{}{share:>8.1} %\n", render(&row)));
        }
    }
    text
}

/// An entry's name, on one line of the table.
fn short(set: StageSet) -> String {
    let name = set.to_string();
    if !set.is_merged() {
        return name;
    }
    name.replace("peer application", "app")
        .replace(" + peer ", " + ")
}

fn directions(planned: &Planned, watched: &FlowMeasured) -> String {
    let same_clock = planned.discovery.same_clock && watched.backends.may_share_our_clock();
    let offset = if same_clock {
        Some(ClockOffset::SAME_CLOCK)
    } else {
        watched.offset()
    };
    let both = offset
        .zip(watched.last.as_ref())
        .and_then(|(offset, last)| {
            Ledger::directions(&last.marks, offset)
                .map(|(forward, reverse)| (offset, forward, reverse))
        });
    let Some((offset, forward, reverse)) = both else {
        return String::new();
    };
    let report = |delay: OneWay| format!("{} +- {}", delay.delay, delay.bound);
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
        report(forward),
        report(reverse)
    )
}

/// The values of TCP itself. A message within the window is sent before the path can limit its
/// rate. TCP's delivery rate is then only the message's size over some time, and is not shown.
fn tcp(planned: &Planned, watched: &FlowMeasured) -> String {
    let Some(state) = watched
        .last
        .and_then(|last| last.tcp_at_ack.or(last.tcp_at_send))
    else {
        return String::new();
    };
    let mut line = format!(
        "TCP at the end: window {} segments, srtt {}, {} retransmissions",
        state.cwnd,
        Span::from_micros(i64::from(state.srtt_us)),
        watched.retransmissions.all
    );
    if watched.retransmissions.spurious > 0 {
        line.push_str(&format!(
            " ({} spurious: the peer had the segments already)",
            watched.retransmissions.spurious
        ));
    }
    if planned.spec.request_size as u64 > u64::from(state.cwnd) * SEGMENT.bytes() {
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let rate = state.delivery_rate as f64 * 8.0 / 1e6;
        line.push_str(&format!(", delivery {rate:.2} Mbit/s"));
    }
    line + "\n"
}
