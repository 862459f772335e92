//! A request/response test as text: a line each second, and a summary.

use neph_load::DurationQuantile;
use neph_load::rr::{RrMeasured, RrSecond};
use neph_load::throughput::Usage;
use neph_model::{ByteSize, Span};
use neph_text::counted::counted;
use neph_wire::throughput::RrKind;

use crate::cell::{Cell, OrDash};

use super::document::{lost_percent, per_transaction};

/// The headings of the lines of [`second_line`].
pub fn heading() -> String {
    "  second  transactions/s       min       p50       p99       max   lost  late  client CPU  server CPU"
        .to_owned()
}

/// A second as a line.
pub fn second_line(second: &RrSecond) -> String {
    let number = second.index + 1;
    let rate = rate_text(second.rate);
    let quantile = |permille| figure_text(second.rtts.quantile(permille, second.counts.lost));
    let (median, p99) = (quantile(500), quantile(990));
    let (min, max) = (second.rtts.min().cell(), second.rtts.max().cell());
    let (lost, late) = (second.counts.lost, second.counts.late);
    let client = cpu_text(second.client_thread, second.client_core);
    let server = cpu_text(second.server_thread, second.server_core);
    format!(
        "{number:>8}  {rate:>14}  {min:>8}  {median:>8}  {p99:>8}  {max:>8}  {lost:>5}  {late:>4}  \
         {client:>10}  {server:>10}"
    )
}

/// CPU use of the thread and of its core.
fn cpu_text(thread: f64, core: Option<f64>) -> String {
    let core = core.or_dash(|core| format!("{:.0}", core * 100.0));
    format!("{:.0}/{core} %", thread * 100.0)
}

/// Transactions per second.
fn rate_text(rate: f64) -> String {
    if rate < 100.0 {
        return format!("{rate:.1}");
    }
    format!("{rate:.0}")
}

/// A percentile, or the word in its place.
fn figure_text(figure: DurationQuantile) -> String {
    match figure {
        DurationQuantile::At(time) => time.to_string(),
        DurationQuantile::Lost => "lost".to_owned(),
        DurationQuantile::Needs(_) => "-".to_owned(),
    }
}

/// The test as a whole.
pub fn summary(measured: &RrMeasured) -> String {
    let (request, counts) = (&measured.spec.ask, &measured.counts);
    let name = match request.kind {
        RrKind::UdpRr => "UDP_RR",
        RrKind::TcpRr => "TCP_RR",
        RrKind::TcpCrr => "TCP_CRR",
    };
    let mut text = format!(
        "\n{name}: {} transactions/s over {}, {} in {} (request {}, reply {})\n",
        rate_text(measured.rate),
        counted(request.streams.into(), "stream"),
        counted(counts.transactions, "transaction"),
        measured.lasted,
        ByteSize(request.request_bytes.into()),
        ByteSize(request.reply_bytes.into()),
    );
    text.push_str(&rtt_lines(measured));
    text.push_str(&losses_line(measured));
    text.push_str(&end_line("client", &measured.client, counts.transactions));
    text.push_str(&end_line("server", &measured.server, counts.transactions));
    if let Some(fault) = &measured.fault {
        text.push_str(&format!("\nThe test broke off: {fault}\n"));
    }
    text
}

fn rtt_lines(measured: &RrMeasured) -> String {
    let (rtts, lost) = (&measured.rtts, measured.counts.lost);
    let quantiles = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];
    let mut parts = vec![
        format!("min {}", rtts.min().cell()),
        format!("mean {}", rtts.mean().cell()),
        format!("sd {}", rtts.deviation().cell()),
    ];
    let mut missing_quantiles = Vec::new();
    for (name, permille) in quantiles {
        let quantile = rtts.quantile(permille, lost);
        parts.push(format!("{name} {}", figure_text(quantile)));
        if let DurationQuantile::Needs(needed) = quantile {
            missing_quantiles.push(format!("{name} needs {needed}"));
        }
    }
    parts.push(format!("max {}", rtts.max().cell()));
    let mut text = format!("  RTT {}\n", parts.join(", "));
    let jitter = rtts.jitter().cell();
    text.push_str(&format!(
        "  jitter {jitter} (mean difference of consecutive RTTs)"
    ));
    if !missing_quantiles.is_empty() {
        text.push_str(&format!("; {} transactions", missing_quantiles.join(", ")));
    }
    text.push('\n');
    text
}

fn losses_line(measured: &RrMeasured) -> String {
    let (request, counts) = (&measured.spec.ask, &measured.counts);
    // TCP retransmits what is lost.
    if request.kind == RrKind::TcpRr {
        return String::new();
    }
    let share = lost_percent(counts.lost, counts.transactions);
    let mut text = format!("  {} lost ({share} %)", counts.lost);
    if let Some(requests) = measured.lost_requests().filter(|_| counts.lost > 0) {
        let replies = counts.lost.saturating_sub(requests);
        let (requests, replies) = (counted(requests, "request"), replies_text(replies));
        text.push_str(&format!(": {requests}, {replies}"));
    }
    if counts.lost > 0 {
        let lost = i64::try_from(counts.lost).unwrap_or(i64::MAX);
        let mean_wait = Span::from_nanos(counts.lost_wait.nanos() / lost);
        let (total_wait, timeout) = (counts.lost_wait, measured.spec.timeout);
        text.push_str(&format!(
            "; waited {mean_wait} for each, {total_wait} together (timeout {timeout})"
        ));
    }
    if request.kind == RrKind::UdpRr {
        let (late, duplicates) = (counts.late, counts.duplicates);
        text.push_str(&format!("; {late} late, {duplicates} duplicated"));
    }
    if counts.foreign > 0 {
        text.push_str(&format!("; {} of no transaction", counts.foreign));
    }
    text.push('\n');
    text
}

fn replies_text(replies: u64) -> String {
    if replies == 1 {
        return "1 reply".to_owned();
    }
    format!("{replies} replies")
}

fn end_line(name: &str, usage: &Usage, transactions: u64) -> String {
    let core = match (usage.core, usage.core_busy) {
        (Some(core), Some(busy)) => format!(", its core {core} {:.0} %", busy * 100.0),
        _ => String::new(),
    };
    let cpu_time = per_transaction(usage, transactions).cell();
    let mut text = format!(
        "  {name}: busiest thread {:.0} % of a core{core}; {cpu_time} CPU per transaction",
        usage.thread * 100.0,
    );
    if usage.rcvbuf_errors > 0 {
        text.push_str(&format!("; RcvbufErrors {}", usage.rcvbuf_errors));
    }
    text.push('\n');
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
