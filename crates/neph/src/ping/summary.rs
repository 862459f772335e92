//! The summary: each layer's distribution side by side, where the time went, and what is missing.

use neph_model::{Answer, ClockOffset, Ledger, OneWay, ProbeKind, SEGMENT, Span, Stage, Tally};
use neph_stats::{Quantile, RunningSummary, StatsError};
use serde_json::{Value, json};

use super::causes::causes;
use super::columns::Column;
use super::flows::{Found, Planned};
use super::watch::{Everything, Watched};
use crate::counted::counted;
use crate::{awake, syn_answers, version};

/// What a flow is, in a line.
pub(super) fn title(planned: &Planned) -> String {
    let spec = &planned.spec;
    let who = who(planned);
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
        "{} ({}), {who}, every {every}{sizes}",
        spec.target,
        spec.address.ip()
    )
}

/// Whom it is measured with: nothing is claimed of somebody who said nothing.
fn who(planned: &Planned) -> &'static str {
    let (spec, discovery) = (&planned.spec, &planned.discovery);
    let is_silent = discovery.silence.is_some();
    match spec.target.kind() {
        _ if spec.reflector => "neph reflector",
        ProbeKind::Icmp => "ICMP echo",
        ProbeKind::Udp => "a STAMP reflector",
        ProbeKind::Syn if neph_probe::can_build_syns() => "TCP SYN, answered by SYN-ACK or RST",
        ProbeKind::Syn => "measured by connection attempts, broken off at once",
        _ if discovery.untrusted => "a server whose certificate is not trusted",
        _ if is_silent && !discovery.accepted => "nobody answers yet",
        ProbeKind::Tcp => "a TCP server: measured by connection attempts",
        ProbeKind::Ws if is_silent => "an unknown server: measured by WebSocket ping and pong",
        ProbeKind::Http if is_silent => "an unknown server: measured by GET",
        ProbeKind::Ws => "a WebSocket server: measured by ping and pong",
        ProbeKind::Http => "an HTTP server: measured by GET",
    }
}

/// The summary for people.
pub(super) fn text(found: &Found, watched: &Everything) -> String {
    let mut text = String::new();
    for (planned, watched) in found.flows.iter().zip(&watched.flows) {
        text.push_str(&format!("\n--- {} ---\n", planned.spec.target));
        text.push_str(&counts(watched));
        text.push_str(&answers(planned, watched));
        if watched.tally.replies > 0 {
            if planned.spec.target.kind() == ProbeKind::Syn {
                let refused = watched.refused();
                let accepted = watched.tally.replies.saturating_sub(refused);
                let said = syn_answers::sentence(accepted, refused);
                text.push_str(&(said + "\n"));
            }
            text.push_str(&layers(planned, watched));
            text.push_str(&stages(watched));
            text.push_str(&backends(watched));
            text.push_str(&directions(planned, watched));
            text.push_str(&tcp(planned, watched));
            text.push_str(&missing(planned, watched));
        }
    }
    text
}

fn counts(watched: &Watched) -> String {
    let tally = &watched.tally;
    let replies = match tally.replies {
        1 => "1 reply".to_owned(),
        many => format!("{many} replies"),
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
    for (count, told) in [
        (tally.failed, format!("{} not sent", tally.failed)),
        (tally.late, format!("{} late", tally.late)),
        (tally.duplicates, counted(tally.duplicates, "duplicate")),
        (tally.reordered, format!("{} reordered", tally.reordered)),
    ] {
        if count > 0 {
            line.push_str(&format!(", {told}"));
        }
    }
    if watched.connections > 1 {
        let again = u64::from(watched.connections - 1);
        line.push_str(&format!(", {}", counted(again, "reconnect")));
    }
    line + "\n"
}

/// Messages of the populations of response time and service time that have none.
const fn above(tally: &Tally) -> (u64, u64) {
    (tally.without_response_time(), tally.without_service_time())
}

/// What was answered, where the protocol has words for it, and why messages were not sent.
fn answers(planned: &Planned, watched: &Watched) -> String {
    let is_told = |answer: &Answer| match answer {
        // SYN answers have a sentence of their own.
        Answer::Syn(_) => planned.spec.target.kind() != ProbeKind::Syn,
        _ => true,
    };
    let told = watched.answers.iter().filter(|(answer, _)| is_told(answer));
    let lines = told.map(|(answer, count)| match answer {
        Answer::Local(fault) => {
            format!(
                "  {count} not sent: {}; {}\n",
                answer.words(),
                fault.remedy()
            )
        }
        _ => format!("  {count} x {}\n", answer.words()),
    });
    let lines: Vec<String> = lines.collect();
    let expected = planned.spec.expected_status;
    // Where all is as expected there is nothing to report.
    let all_expected = watched.answers.iter().all(|(answer, _)| match answer {
        Answer::HttpStatus(status) => expected.contains(status),
        _ => false,
    });
    if all_expected && watched.answers.iter().count() <= 1 {
        return String::new();
    }
    lines.concat()
}

fn answer_counts(watched: &Watched) -> Value {
    let counts = watched.answers.iter();
    Value::Object(
        counts
            .map(|(answer, count)| (answer.name().into_owned(), count.into()))
            .collect(),
    )
}

/// One row of the table.
struct Row {
    name: String,
    n: usize,
    cells: Vec<String>,
    mean: f64,
}

/// `above`: messages of its population that have no value, and rank above all values.
fn row(name: &str, values: &RunningSummary, above: u64) -> Option<Row> {
    let mean = values.mean()?;
    let above = usize::try_from(above).unwrap_or(usize::MAX);
    let mut cells = vec![span(values.least()?), span(mean)];
    for quantile in values.quantiles(above, [0.5, 0.9, 0.99]) {
        cells.push(match quantile {
            Ok(quantile) => quantile
                .value()
                .number()
                .map_or_else(|| "lost".to_owned(), span),
            Err(_) => "-".to_owned(),
        });
    }
    cells.push(span(values.greatest()?));
    cells.push(values.sd().map_or_else(|| "-".to_owned(), span));
    Some(Row {
        name: name.to_owned(),
        n: values.n(),
        cells,
        mean,
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

fn values(watched: &Watched, column: Column) -> &RunningSummary {
    static NONE: RunningSummary = RunningSummary::new();
    let at = Column::ALL.iter().position(|known| *known == column);
    at.and_then(|at| watched.values.get(at)).unwrap_or(&NONE)
}

fn layers(planned: &Planned, watched: &Watched) -> String {
    let network = if planned.spec.reflector {
        "network (kernel stamps)"
    } else {
        "network and peer (kernel stamps)"
    };
    let (response, service) = above(&watched.tally);
    let rows = [
        ("response time (from intended)", Column::Response, response),
        ("service time (from sending)", Column::Service, service),
        ("TCP (acknowledged - sent)", Column::Tcp, 0),
        (network, Column::Network, 0),
    ];
    let mut text = heading("round trips");
    for (name, column, lost) in rows {
        if let Some(row) = row(name, values(watched, column), lost) {
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

fn stages(watched: &Watched) -> String {
    let mut text = heading("where the time went");
    let all: f64 = row("", values(watched, Column::Response), 0).map_or(0.0, |row| row.mean);
    let mut merged_done = false;
    for stage in Stage::ALL {
        if watched.merged.contains(stage) && !merged_done {
            merged_done = true;
            let name = short(&watched.merged.to_string());
            text.push_str(&stage_line(&name, values(watched, Column::Merged), all));
        }
        text.push_str(&stage_line(
            stage.name(),
            values(watched, Column::Stage(stage)),
            all,
        ));
    }
    text
}

/// A merged entry's name, on one line of the table.
fn short(name: &str) -> String {
    name.replace("peer application", "app")
        .replace(" + peer ", " + ")
}

fn stage_line(name: &str, values: &RunningSummary, all: f64) -> String {
    let Some(row) = row(name, values, 0) else {
        return String::new();
    };
    let share = if all > 0.0 {
        row.mean / all * 100.0
    } else {
        0.0
    };
    format!("{}{share:>8.1} %\n", render(&row))
}

/// That several machines answer behind one address, which users want to know.
fn backends(watched: &Watched) -> String {
    let found = watched.backends.several().zip(watched.backends.apart());
    found.map_or_else(String::new, |(machines, apart)| {
        format!(
            "{machines} machines answer by turns at this address (their clocks are up to {apart} apart): \
             no clock offset and no one-way delay is estimated\n"
        )
    })
}

fn directions(planned: &Planned, watched: &Watched) -> String {
    let same_clock = planned.discovery.same_clock && watched.backends.may_share_our_clock();
    let offset = if same_clock {
        Some(ClockOffset::SAME_CLOCK)
    } else {
        watched.offset()
    };
    let both = offset
        .zip(watched.last.as_ref())
        .and_then(|(offset, last)| {
            Ledger::directions(&last.marks, offset).map(|(there, back)| (offset, there, back))
        });
    let Some((offset, there, back)) = both else {
        return String::new();
    };
    let tell = |way: OneWay| format!("{} +- {}", way.delay, way.bound);
    let clocks = if same_clock {
        "the peer reads the same clock".to_owned()
    } else {
        format!("clock offset {} +- {}", offset.value(), offset.bound())
    };
    format!(
        "last message: there {}, back {} ({clocks})\n",
        tell(there),
        tell(back)
    )
}

/// TCP's own view. A message that the window holds is gone before the path could set a rate: what
/// TCP calls its delivery rate then is the message's size over some time, and is not told.
fn tcp(planned: &Planned, watched: &Watched) -> String {
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
        state.retransmissions
    );
    if planned.spec.request_size as u64 > u64::from(state.cwnd) * SEGMENT.bytes() {
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let rate = state.delivery_rate as f64 * 8.0 / 1e6;
        line.push_str(&format!(", delivery {rate:.2} Mbit/s"));
    }
    line + "\n"
}

fn missing(planned: &Planned, watched: &Watched) -> String {
    if !watched.merged.is_merged() {
        return String::new();
    }
    let why = match (planned.spec.target.kind(), planned.spec.reflector) {
        (ProbeKind::Icmp | ProbeKind::Syn, _) => {
            "the peer's kernel answers and tells no marks".to_owned()
        }
        (_, false) => "the peer is no neph reflector and tells no marks".to_owned(),
        (_, true) => "a mark between them was not told".to_owned(),
    };
    format!("{} are told as one: {why}\n", watched.merged)
}

/// The summary as JSON.
pub(super) fn json(found: &Found, watched: &Everything) -> Value {
    let flows: Vec<Value> = found
        .flows
        .iter()
        .zip(&watched.flows)
        .map(|(planned, watched)| flow_json(planned, watched))
        .collect();
    let told = causes(found, watched);
    json!({
        "type": "summary",
        "version": version::VERSION,
        "commit": version::COMMIT,
        "cores_awake": awake::is_kept(),
        "flows": flows,
        "diagnoses": told.causes,
        "notes": told.notes,
        "blind": told.blind,
    })
}

fn flow_json(planned: &Planned, watched: &Watched) -> Value {
    let numbers = |column: Column, above: u64| numbers(values(watched, column), above);
    let (response, service) = above(&watched.tally);
    let stages: Vec<Value> = Stage::ALL
        .into_iter()
        .map(|stage| (stage.name().to_owned(), Column::Stage(stage)))
        .chain([(watched.merged.to_string(), Column::Merged)])
        .filter(|(_, column)| values(watched, *column).n() > 0)
        .map(|(name, column)| json!({ "stage": name, "ns": numbers(column, 0) }))
        .collect();
    json!({
        "target": planned.spec.target.to_string(),
        "address": planned.spec.address.to_string(),
        "reflector": planned.spec.reflector,
        "same_clock": planned.discovery.same_clock && watched.backends.may_share_our_clock(),
        "backends": watched.backends.several(),
        "interval_ns": planned.spec.schedule.interval.nanos(),
        "request_bytes": planned.spec.request_size,
        "response_bytes": planned.spec.response_size,
        "tally": watched.tally,
        "answers": answer_counts(watched),
        "refused": (planned.spec.target.kind() == ProbeKind::Syn).then(|| watched.refused()),
        "response_ns": numbers(Column::Response, response),
        "service_ns": numbers(Column::Service, service),
        "tcp_ns": numbers(Column::Tcp, 0),
        "network_ns": numbers(Column::Network, 0),
        "stages": stages,
    })
}

fn numbers(values: &RunningSummary, above: u64) -> Value {
    if values.n() == 0 {
        return Value::Null;
    }
    let above = usize::try_from(above).unwrap_or(usize::MAX);
    let [p50, p90, p99, p999] = values.quantiles(above, [0.5, 0.9, 0.99, 0.999]);
    let at = |quantile: Result<Quantile, StatsError>| {
        quantile.ok().map(|quantile| {
            json!({
                "value": quantile.value().number(),
                "low": quantile.low().number(),
                "high": quantile.high().number(),
            })
        })
    };
    json!({
        "n": values.n(), "without_value": above, "quantiles_exact": values.is_exact(),
        "mean": values.mean(), "sd": values.sd(), "min": values.least(), "max": values.greatest(),
        "p50": at(p50), "p90": at(p90), "p99": at(p99), "p999": at(p999),
    })
}
