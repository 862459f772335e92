//! A load as text: a line each second, and a summary.

use neph_load::workload::{Demand, GeneratorLimit, WorkloadSecond};
use neph_load::{DurationQuantile, Durations};
use neph_model::ByteSize;
use neph_text::counted::counted;

use crate::cell::Cell;

use super::run::{LoadRun, share};

/// The headings of the lines of [`second_line`].
pub fn heading() -> String {
    "  second  responses/s  in flight       p50       p90       p99       max  errors  lateness  CPU"
        .to_owned()
}

/// A second as a line: response times, unsuccessful requests, the largest lateness of the generator, and the
/// share of a core of its busiest thread.
pub fn second_line(second: &WorkloadSecond) -> String {
    let tally = &second.tally;
    let number = second.index + 1;
    let quantile = |permille| quantile_text(tally.response_quantile(permille));
    let (median, p90, p99) = (quantile(500), quantile(900), quantile(990));
    let (max, lateness) = (tally.response.max().cell(), tally.lateness.max().cell());
    let (successes, in_flight) = (tally.successes(), second.in_flight + second.waiting);
    let unsuccessful = tally.unsuccessful();
    let cpu = format!("{:.0} %", second.thread_cpu * 100.0);
    let remark = match (second.is_void, second.is_warmup) {
        (true, _) => "  void",
        (false, true) => "  warm-up",
        (false, false) => "",
    };
    format!(
        "{number:>8}  {successes:>11}  {in_flight:>9}  {median:>8}  {p90:>8}  {p99:>8}  {max:>8}  \
         {unsuccessful:>6}  {lateness:>8}  {cpu:>4}{remark}"
    )
}

/// A percentile, or the word in its place.
fn quantile_text(quantile: DurationQuantile) -> String {
    match quantile {
        DurationQuantile::At(time) => time.to_string(),
        DurationQuantile::Lost => "error".to_owned(),
        DurationQuantile::Needs(_) => "-".to_owned(),
    }
}

/// The load as a whole.
pub fn summary(run: &LoadRun<'_>) -> String {
    let measured = run.measured;
    let tally = &measured.tally;
    let mut text = format!(
        "\n{}: {} responses/s over {} ({})\n",
        demand_text(run),
        rate_text(run.rate()),
        measured.measured,
        counted(tally.successes(), "response"),
    );
    let unsuccessful = tally.unsuccessful();
    text.push_str(&times_line("response time", &tally.response, unsuccessful));
    text.push_str(&times_line("service time ", &tally.service, unsuccessful));
    text.push_str(&outcome_lines(run));
    text.push_str(&concurrency_line(run));
    text.push_str(&generator_lines(run));
    for threshold in run.thresholds {
        let detail = threshold
            .detail
            .as_deref()
            .map_or_else(String::new, |detail| format!(" ({detail})"));
        text.push_str(&format!(
            "  {}: {}{detail}\n",
            threshold.condition, threshold.result
        ));
    }
    text
}

/// Responses per second.
fn rate_text(rate: f64) -> String {
    if rate < 1_000.0 {
        return format!("{rate:.1}");
    }
    format!("{rate:.0}")
}

fn demand_text(run: &LoadRun<'_>) -> String {
    match &run.spec.demand {
        Demand::Closed(workers) => {
            let count = counted(workers.count.into(), "worker");
            format!("{count}, think time {}", workers.think)
        }
        Demand::Open(arrivals) => format!("Arrivals {arrivals}"),
    }
}

fn times_line(name: &str, times: &Durations, unsuccessful: u64) -> String {
    let mut parts = vec![
        format!("min {}", times.min().cell()),
        format!("mean {}", times.mean().cell()),
        format!("sd {}", times.deviation().cell()),
    ];
    let mut missing = Vec::new();
    for (name, permille) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
        let quantile = times.quantile(permille, unsuccessful);
        parts.push(format!("{name} {}", quantile_text(quantile)));
        if let DurationQuantile::Needs(needed) = quantile {
            missing.push(format!("{name} needs {needed}"));
        }
    }
    parts.push(format!("max {}", times.max().cell()));
    let mut text = format!("  {name}  {}", parts.join(", "));
    if !missing.is_empty() {
        text.push_str(&format!("; {} requests", missing.join(", ")));
    }
    text.push('\n');
    text
}

fn outcome_lines(run: &LoadRun<'_>) -> String {
    let tally = &run.measured.tally;
    let mut text = format!(
        "  {} of {} without success ({:.2} %)",
        tally.unsuccessful(),
        counted(tally.ended(), "request"),
        run.unsuccessful_percent(),
    );
    let errors = tally.statuses.range(400..);
    let errors = errors.map(|(status, count)| format!("{count} status {status}"));
    let failures = tally.failures.iter();
    let failures = failures.map(|(failure, count)| format!("{count} {}", failure.text()));
    let reasons: Vec<String> = errors.chain(failures).collect();
    if !reasons.is_empty() {
        text.push_str(&format!(": {}", reasons.join(", ")));
    }
    let unended = tally.due - tally.ended().min(tally.due);
    if unended > 0 {
        text.push_str(&format!("; {unended} not ended"));
    }
    text.push_str(&format!(
        "\n  {} opened, {} of requests, {} of responses",
        counted(tally.connections, "connection"),
        ByteSize(tally.sent_bytes),
        ByteSize(tally.received_bytes),
    ));
    if tally.retries > 0 {
        text.push_str(&format!(
            "; {} repeated on a new connection",
            counted(tally.retries, "request")
        ));
    }
    text.push('\n');
    text
}

fn concurrency_line(run: &LoadRun<'_>) -> String {
    let Some(concurrency) = run.concurrency() else {
        return String::new();
    };
    let mut text = format!("  {concurrency:.2} requests at the same time on average");
    if let (Demand::Closed(workers), Some(law)) = (&run.spec.demand, run.workers_by_little()) {
        text.push_str(&format!(
            "; by Little's law {law:.2} workers (of {})",
            workers.count
        ));
    }
    text.push('\n');
    text
}

fn generator_lines(run: &LoadRun<'_>) -> String {
    let (tally, validity) = (&run.measured.tally, &run.measured.validity);
    let lateness = |permille| quantile_text(tally.lateness.quantile(permille, 0));
    let mut text = format!(
        "  generator: lateness p50 {}, p99 {}, max {}; {} of {} void; {:.0} % of a core\n",
        lateness(500),
        lateness(990),
        tally.lateness.max().cell(),
        validity.void_seconds,
        counted(validity.seconds.into(), "second"),
        cpu_percent(run),
    );
    if !validity.is_generated() {
        let percent = share(validity.void_seconds.into(), validity.seconds.into()) * 100.0;
        text.push_str(&format!(
            "  not generated as requested: in {percent:.0} % of the seconds, more than 1 % of the requests \
             were sent more than {} late. Response times include this lateness, service times do not\n",
            run.spec.lateness_bound
        ));
    }
    for limit in &validity.limits {
        text.push_str(&format!(
            "  limit of the generator: {}\n",
            limit_text(*limit, run)
        ));
    }
    text
}

/// CPU time of the generator's threads, percent of a core.
fn cpu_percent(run: &LoadRun<'_>) -> f64 {
    let lasted = run.measured.lasted.secs_f64();
    if lasted > 0.0 {
        run.measured.tally.cpu.secs_f64() * 100.0 / lasted
    } else {
        0.0
    }
}

fn limit_text(limit: GeneratorLimit, run: &LoadRun<'_>) -> String {
    let max = run.measured.connection_limit;
    match limit {
        GeneratorLimit::Cpu => {
            "a thread was busy all the time. Use more --threads, or more hosts".to_owned()
        }
        GeneratorLimit::Ports => {
            "no free local port. Keep connections, or extend net.ipv4.ip_local_port_range"
                .to_owned()
        }
        GeneratorLimit::Sockets => {
            "no free file descriptor. Raise the limit (ulimit -n), or share --connections"
                .to_owned()
        }
        GeneratorLimit::Connections => format!(
            "{} of {} had to wait for one of {max} connections. Allow more --connections, or raise ulimit -n",
            run.measured.tally.waited,
            counted(run.measured.tally.due, "request"),
        ),
    }
}
