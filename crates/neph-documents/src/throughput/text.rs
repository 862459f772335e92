//! A throughput test as text: a line each second, and a summary with the limit in a sentence.

use neph_load::throughput::{DirectionResult, Measured, Second, TcpTotals, UdpTotals, Usage};
use neph_model::{ByteSize, Span};
use neph_text::counted::counted;
use neph_wire::throughput::{Protocol, TestRequest};

use crate::cell::{Cell, OrDash};

use super::direction::direction_word;

/// The headings of the lines of [`second_line`].
pub fn heading(request: &TestRequest) -> String {
    match request.protocol {
        Protocol::Tcp => {
            "  second  dir.       goodput  retransmitted      cwnd       rtt  sender CPU  receiver CPU"
        }
        Protocol::Udp => {
            "  second  dir.       goodput          sent     lost  reordered    jitter   PDV p95  sender \
             CPU  receiver CPU"
        }
    }
    .to_owned()
}

/// A second of one direction as a line.
pub fn second_line(second: &Second, request: &TestRequest) -> String {
    let number = second.index + 1;
    let direction = second.direction.map_or("", direction_word);
    let goodput = second.goodput.cell();
    let sender = cpu_text(second.sender_thread, second.sender_core);
    let receiver = cpu_text(second.receiver_thread, second.receiver_core);
    match request.protocol {
        Protocol::Tcp => {
            let cwnd = second.cwnd_bytes.map(ByteSize).cell();
            let (retransmitted, rtt) = (second.retransmissions, second.srtt.cell());
            format!(
                "{number:>8}  {direction:<4}{goodput:>14}  {retransmitted:>13}  {cwnd:>8}  {rtt:>8}  \
                 {sender:>10}  {receiver:>12}"
            )
        }
        Protocol::Udp => {
            let (lost, reordered) = (second.lost, second.reordered);
            let (sent, jitter) = (second.sent.cell(), second.jitter.cell());
            let pdv = second.pdv_p95.cell();
            format!(
                "{number:>8}  {direction:<4}{goodput:>14}  {sent:>12}  {lost:>7}  {reordered:>9}  {jitter:>8}  \
                 {pdv:>8}  {sender:>10}  {receiver:>12}"
            )
        }
    }
}

/// CPU use of the thread and of its core.
fn cpu_text(thread: f64, core: Option<f64>) -> String {
    let core = core.or_dash(|core| format!("{:.0}", core * 100.0));
    format!("{:.0}/{core} %", thread * 100.0)
}

/// The test as a whole.
pub fn summary(measured: &Measured) -> String {
    let mut text = String::new();
    for result in measured.results() {
        text.push_str(&direction_text(&result, &measured.test_request));
    }
    if let Some(fault) = &measured.fault {
        text.push_str(&format!("\nThe test broke off: {fault}\n"));
    }
    text
}

fn direction_text(result: &DirectionResult, request: &TestRequest) -> String {
    let totals = &result.totals;
    let streams = counted(request.streams.into(), "stream");
    let mut text = format!(
        "\n{}: {} goodput over {streams}, {} received in {} ({} sent)\n",
        direction_word(result.direction),
        totals.goodput,
        ByteSize(totals.received_bytes),
        totals.lasted,
        totals.sent,
    );
    if let Some(tcp) = &totals.tcp {
        text.push_str(&tcp_lines(tcp));
    }
    if let Some(udp) = &totals.udp {
        text.push_str(&udp_lines(udp));
    }
    let received = totals.received_bytes;
    text.push_str(&end_line("sender", &totals.sender, received));
    text.push_str(&end_line("receiver", &totals.receiver, received));
    text.push_str(&format!("  {}\n", result.limit.sentence));
    text
}

fn tcp_lines(tcp: &TcpTotals) -> String {
    let retransmitted = counted(tcp.retransmissions, "segment");
    format!(
        "  {retransmitted} of {} retransmitted; cwnd {} (mean); RTT {} (min), {} (mean), {} (max)\n",
        tcp.segments,
        ByteSize(tcp.cwnd_mean_bytes),
        tcp.min_rtt,
        tcp.srtt_mean,
        tcp.srtt_max,
    )
}

fn udp_lines(udp: &UdpTotals) -> String {
    let loss = udp.loss() * 100.0;
    let mut text = format!(
        "  {} of {} datagrams lost ({loss:.2} %), {} of them at the receiver's socket; {} reordered \
         (extent {}), {} duplicated\n",
        udp.lost, udp.sent, udp.socket_drops, udp.reordered, udp.reordering_extent, udp.duplicates,
    );
    let span = |nanos: Option<u64>| {
        let span = nanos.map(|nanos| Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)));
        span.cell()
    };
    let variation = &udp.variation;
    text.push_str(&format!(
        "  jitter {} (RFC 3550); PDV p50 {}, p95 {}, p99 {}, max {}; IPDV p50 {}, p99 {} (RFC 5481)\n",
        udp.jitter,
        span(variation.pdv_p50_ns),
        span(variation.pdv_p95_ns),
        span(variation.pdv_p99_ns),
        span(variation.pdv_max_ns),
        span(variation.ipdv_p50_ns),
        span(variation.ipdv_p99_ns),
    ));
    text
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn end_line(name: &str, usage: &Usage, received: u64) -> String {
    let per_gigabyte = usage.process.secs_f64() * 1e9 / received.max(1) as f64;
    let core = match (usage.core, usage.core_busy) {
        (Some(core), Some(busy)) => format!(", its core {core} {:.0} %", busy * 100.0),
        _ => String::new(),
    };
    let mut text = format!(
        "  {name}: busiest thread {:.0} % of a core{core}; {per_gigabyte:.3} CPU s per GB",
        usage.thread * 100.0,
    );
    if usage.rcvbuf_errors > 0 {
        text.push_str(&format!("; RcvbufErrors {}", usage.rcvbuf_errors));
    }
    text.push('\n');
    text
}
