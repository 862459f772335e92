//! A slow server: time between reading the request and writing the reply.

use std::collections::BTreeMap;

use neph_model::{Seq, Stage};

use crate::data::Exchange;
use crate::diagnosis::{
    Agreement, LoadAttribution, Need, Ordered, Rule, RuleInput, RuleResult, Run, SitePair, Times,
};
use crate::numbers::{millis, percent};

pub(crate) const RULE: Rule = Rule {
    name: "slow-server",
    title: "slow server",
    limits: "The rule needs the timestamps of a neph reflector; for a third-party server, server processing and network are one stage. It ignores requests with a retransmitted segment. It does not show why the server or its backend is slow.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES), Need::PeerMarks],
    evaluate,
};

/// Smallest share of server processing in the time after the last byte of a message departed. Earlier waits
/// say nothing about the server.
const SHARE: f64 = 0.3;
/// Smallest server processing time that is reported. An immediate reply takes tens of microseconds, on a busy
/// host some hundred.
const MIN_MS: f64 = 0.5;
/// Smallest share of server processing in the median time of all requests, also of those that waited in a
/// stall. Where stalls take a hundred times as long, a remedy for the rest changes nothing.
const SHARE_WITH_STALLS: f64 = 0.02;
/// Without the plan's load the server is faster if it takes less than this share.
const QUICKER: f64 = 0.8;
/// Minimum number of messages for a median.
const MESSAGES: usize = 6;

/// The server's part of an experiment's messages, medians in milliseconds.
struct Part {
    /// The server application processed the request.
    work: f64,
    /// The request waited to be read by the server application.
    unread: f64,
    /// Both, of the same message.
    time: f64,
    /// From the departure of the request's last byte to the reply.
    after: f64,
    /// From sending to the reply, of all requests: also those that waited in a stall.
    service: f64,
    slowest: Vec<Seq>,
}

impl Part {
    fn of(run: &Run<'_>) -> Option<Self> {
        let replies = intact(run);
        if replies.len() < MESSAGES {
            return None;
        }
        let middle = |stage: Stage| {
            let times: Ordered = replies.iter().map(|(_, times)| times.at(stage)).collect();
            times.median()
        };
        let server_stages = [Stage::PeerApp, Stage::PeerKernel];
        let time: Ordered = replies
            .iter()
            .map(|(_, times)| times.sum(&server_stages))
            .collect();
        let before = [
            Stage::Connect,
            Stage::Handshake,
            Stage::Compose,
            Stage::SendWindow,
        ];
        let after = replies.iter().filter_map(|(exchange, times)| {
            Some(exchange.service?.millis_f64() - times.sum(&before))
        });
        let exchanges = run.flow.exchanges.iter();
        let answered = exchanges.filter(|exchange| exchange.response.is_some());
        let service = answered.filter_map(|exchange| Some(exchange.service?.millis_f64()));
        let mut by_work: Vec<(f64, Seq)> = replies
            .iter()
            .map(|(exchange, times)| (times.at(Stage::PeerApp), exchange.seq))
            .collect();
        by_work.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(Self {
            work: middle(Stage::PeerApp)?,
            unread: middle(Stage::PeerKernel)?,
            time: time.median()?,
            after: after.collect::<Ordered>().median()?,
            service: service.collect::<Ordered>().median()?,
            slowest: by_work.into_iter().map(|(_, seq)| seq).collect(),
        })
    }

    fn ratio(&self) -> f64 {
        let min = MIN_MS.max(SHARE * self.after);
        self.time / min.max(SHARE_WITH_STALLS * self.service)
    }
}

/// The replied messages, without those of several segments that had a retransmission. The server's kernel
/// delivers the bytes behind a lost segment only after its retransmission.
fn intact<'r>(run: &'r Run<'_>) -> Vec<(&'r Exchange, Times)> {
    let is_whole = run.scenario.request_size.is_one_segment() || run.flow.flow.probe.is_datagram();
    let mut counted: Option<(u32, u32)> = None;
    let mut retained = Vec::new();
    for (exchange, times) in run.replies() {
        let before = counted.filter(|(connection, _)| *connection == exchange.connection);
        let before = before.map_or(0, |(_, count)| count);
        if is_whole || exchange.retransmissions == Some(before) {
            retained.push((exchange, times));
        }
        counted = Some((
            exchange.connection,
            exchange.retransmissions.unwrap_or(before),
        ));
    }
    retained
}

/// The server's part of a scenario's messages: medians over its experiments.
struct Taken<'r> {
    parts: Vec<(&'r Run<'r>, Part)>,
    work: f64,
    unread: f64,
    /// Both, of the same message, median: a part of `after`.
    time: f64,
    after: f64,
    ratio: f64,
}

impl<'r> Taken<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Option<Self> {
        let parts = runs.iter().filter_map(|run| Some((*run, Part::of(run)?)));
        let parts: Vec<(&Run<'_>, Part)> = parts.collect();
        let middle = |value: fn(&Part) -> f64| {
            let values = parts.iter().map(|(_, part)| value(part));
            values.collect::<Ordered>().median()
        };
        Some(Self {
            work: middle(|part| part.work)?,
            unread: middle(|part| part.unread)?,
            time: middle(|part| part.time)?,
            after: middle(|part| part.after)?,
            ratio: middle(Part::ratio)?,
            parts,
        })
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    // A server is reported once per cause (itself, the plan's load): where it adds the most latency.
    let mut worst: BTreeMap<(SitePair, bool), RuleResult> = BTreeMap::new();
    for runs in input.grouped(|run| run.scenario.index).into_values() {
        let Some(taken) = Taken::of(&runs).filter(|taken| taken.ratio >= 1.0) else {
            continue;
        };
        let attribution = attribute_effect(input, runs[0], &taken);
        let result = diagnose_group(&runs, &taken, attribution);
        let key = (runs[0].pair(), attribution.is_load());
        let known = worst.get(&key);
        if known.is_none_or(|known| known.added_ms < result.added_ms) {
            worst.insert(key, result);
        }
    }
    worst.into_values().collect()
}

/// Also the load, if without it the rule does not match and the server is significantly faster. Then the
/// server application needs no profiling.
fn attribute_effect<'a>(
    input: &RuleInput<'a>,
    run: &Run<'a>,
    taken: &Taken<'_>,
) -> LoadAttribution<'a> {
    let mut quicker = None;
    let attribution = input.attribute_effect(run, taken.time, |calm| {
        let calm = Taken::of(calm)?;
        let is_quicker = calm.ratio < 1.0 && calm.time < QUICKER * taken.time;
        quicker = is_quicker.then_some(calm.time);
        Some(calm.time)
    });
    match (attribution, run.scenario.stress(), quicker) {
        (LoadAttribution::NotLoad, Some(load), Some(calm)) => LoadAttribution::Load(load, calm),
        _ => attribution,
    }
}

fn diagnose_group(
    runs: &[&Run<'_>],
    taken: &Taken<'_>,
    attribution: LoadAttribution<'_>,
) -> RuleResult {
    let parts = &taken.parts;
    let confidence = Agreement {
        noun: "experiment",
        shown: parts.iter().filter(|(_, part)| part.ratio() >= 1.0).count(),
        of: runs.len(),
        ratio: taken.ratio,
    };
    let cause = format!(
        "{}: server processing takes {} of the {} from the last byte of a request to its reply ({}; {}){}.",
        runs[0].pair().endpoint,
        millis(taken.time),
        millis(taken.after),
        percent(taken.time / taken.after),
        runs[0].scenario.label(),
        reason(taken, attribution),
    );
    let mut result = RuleResult::new(cause, remedy(taken, attribution), confidence.confidence())
        .with_added_latency(taken.time)
        .with("peer application", taken.work, "ms")
        .with("peer kernel", taken.unread, "ms")
        .with("last byte of the request to the reply", taken.after, "ms");
    if let LoadAttribution::Load(_, calm) = attribution {
        result = result.with("without the background load", calm, "ms");
    }
    for (run, part) in parts {
        result = result.observed_at(run, &part.slowest);
    }
    result
}

/// The reason for the processing time, as the end of the sentence.
fn reason(taken: &Taken<'_>, attribution: LoadAttribution<'_>) -> String {
    let doing = if taken.work >= taken.unread {
        "the server application works, or waits for a backend, between reading a request and answering it"
    } else {
        "the server application does not read requests that have arrived"
    };
    match attribution {
        LoadAttribution::NotLoad => format!(": {doing}"),
        LoadAttribution::Load(load, calm) => {
            let calm = millis(calm);
            format!(" under the background load {load}, and {calm} without it: the load causes it")
        }
        LoadAttribution::Unknown(load) => format!(" under the background load {load}: {doing}"),
    }
}

fn remedy(taken: &Taken<'_>, attribution: LoadAttribution<'_>) -> String {
    let usual_remedy = if taken.work >= taken.unread {
        "profile the server: computation, locks, and backends"
    } else {
        "give the server more CPU: cores, fewer neighbours, more accepting threads"
    };
    let of_load = "reduce the number of neighbours, or give the server dedicated cores";
    attribution.remedy(usual_remedy, of_load)
}
