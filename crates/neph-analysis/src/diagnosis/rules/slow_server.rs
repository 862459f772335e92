//! A slow server: time between reading the request and writing the reply.

use std::collections::BTreeMap;

use neph_model::{Seq, Stage};

use crate::data::Exchange;
use crate::diagnosis::{
    Agreement, LoadAttribution, Need, Rule, RuleInput, RuleResult, Run, SitePair, SortedValues,
    Times,
};
use crate::numbers::{millis, percent};

pub(crate) const RULE: Rule = Rule {
    name: "slow-server",
    title: "slow server",
    limits: "The rule needs the timestamps of a neph reflector; for a third-party server, server processing and network are one stage. It ignores requests with a retransmitted segment. It does not show why the server or its backend is slow.",
    covers: &[],
    needs: &[Need::Replies(MIN_MESSAGES), Need::PeerTimestamps],
    evaluate,
};

/// Smallest share of server processing in the time after the last byte of a message departed. Earlier waits
/// say nothing about the server.
const MIN_SHARE: f64 = 0.3;
/// Smallest server processing time that is reported. An immediate reply takes tens of microseconds, on a busy
/// host some hundred.
const MIN_MS: f64 = 0.5;
/// Smallest share of server processing in the median time of all requests, also of those that waited in a
/// stall. Where stalls take a hundred times as long, a remedy for the rest changes nothing.
const SHARE_WITH_STALLS: f64 = 0.02;
/// Without the plan's load the server is faster if it takes less than this share.
const MAX_CALM_SHARE: f64 = 0.8;
/// Minimum number of messages for a median.
const MIN_MESSAGES: usize = 6;

/// The server's part of an experiment's messages, medians in milliseconds.
struct ServerPart {
    /// The server application processed the request.
    application: f64,
    /// The request waited to be read by the server application.
    kernel: f64,
    /// Both, of the same message.
    time: f64,
    /// From the departure of the request's last byte to the reply.
    from_last_byte: f64,
    /// From sending to the reply, of all requests: also those that waited in a stall.
    service: f64,
    slowest: Vec<Seq>,
}

impl ServerPart {
    fn of(run: &Run<'_>) -> Option<Self> {
        let replies = intact(run);
        if replies.len() < MIN_MESSAGES {
            return None;
        }
        let median_of = |stage: Stage| {
            let times: SortedValues = replies.iter().map(|(_, times)| times.at(stage)).collect();
            times.median()
        };
        let server_stages = [Stage::PeerApp, Stage::PeerKernel];
        let time: SortedValues = replies
            .iter()
            .map(|(_, times)| times.sum(&server_stages))
            .collect();
        let before = [
            Stage::Connect,
            Stage::Handshake,
            Stage::Compose,
            Stage::SendWindow,
        ];
        let from_last_byte = replies.iter().filter_map(|(exchange, times)| {
            Some(exchange.service?.millis_f64() - times.sum(&before))
        });
        let exchanges = run.flow.exchanges.iter();
        let answered = exchanges.filter(|exchange| exchange.response.is_some());
        let service = answered.filter_map(|exchange| Some(exchange.service?.millis_f64()));
        let mut by_application: Vec<(f64, Seq)> = replies
            .iter()
            .map(|(exchange, times)| (times.at(Stage::PeerApp), exchange.seq))
            .collect();
        by_application.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(Self {
            application: median_of(Stage::PeerApp)?,
            kernel: median_of(Stage::PeerKernel)?,
            time: time.median()?,
            from_last_byte: from_last_byte.collect::<SortedValues>().median()?,
            service: service.collect::<SortedValues>().median()?,
            slowest: by_application.into_iter().map(|(_, seq)| seq).collect(),
        })
    }

    fn ratio(&self) -> f64 {
        let min = MIN_MS.max(MIN_SHARE * self.from_last_byte);
        self.time / min.max(SHARE_WITH_STALLS * self.service)
    }
}

/// The replied messages, without those of several segments that had a retransmission. The server's kernel
/// delivers the bytes behind a lost segment only after its retransmission.
fn intact<'r>(run: &'r Run<'_>) -> Vec<(&'r Exchange, Times)> {
    let is_one_segment =
        run.scenario.request_size.is_one_segment() || run.flow.flow.probe.is_datagram();
    let mut last_count: Option<(u32, u32)> = None;
    let mut intact_replies = Vec::new();
    for (exchange, times) in run.replies() {
        let before = last_count.filter(|(connection, _)| *connection == exchange.connection);
        let before = before.map_or(0, |(_, count)| count);
        if is_one_segment || exchange.retransmissions == Some(before) {
            intact_replies.push((exchange, times));
        }
        last_count = Some((
            exchange.connection,
            exchange.retransmissions.unwrap_or(before),
        ));
    }
    intact_replies
}

/// The server's part of a scenario's messages: medians over its experiments.
struct ScenarioProcessing<'r> {
    parts: Vec<(&'r Run<'r>, ServerPart)>,
    application: f64,
    kernel: f64,
    /// Both, of the same message, median: a part of `from_last_byte`.
    time: f64,
    from_last_byte: f64,
    ratio: f64,
}

impl<'r> ScenarioProcessing<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Option<Self> {
        let parts = runs
            .iter()
            .filter_map(|run| Some((*run, ServerPart::of(run)?)));
        let parts: Vec<(&Run<'_>, ServerPart)> = parts.collect();
        let median_of = |value: fn(&ServerPart) -> f64| {
            let values = parts.iter().map(|(_, part)| value(part));
            values.collect::<SortedValues>().median()
        };
        Some(Self {
            application: median_of(|part| part.application)?,
            kernel: median_of(|part| part.kernel)?,
            time: median_of(|part| part.time)?,
            from_last_byte: median_of(|part| part.from_last_byte)?,
            ratio: median_of(ServerPart::ratio)?,
            parts,
        })
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    // A server is reported once per cause (itself, the plan's load): where it adds the most latency.
    let mut worst: BTreeMap<(SitePair, bool), RuleResult> = BTreeMap::new();
    for runs in input.grouped(|run| run.scenario.index).into_values() {
        let Some(processing) =
            ScenarioProcessing::of(&runs).filter(|processing| processing.ratio >= 1.0)
        else {
            continue;
        };
        let attribution = attribute_effect(input, runs[0], &processing);
        let result = diagnose_group(&runs, &processing, attribution);
        let key = (runs[0].pair(), attribution.is_load());
        let previous = worst.get(&key);
        if previous.is_none_or(|previous| previous.added_ms < result.added_ms) {
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
    processing: &ScenarioProcessing<'_>,
) -> LoadAttribution<'a> {
    let mut faster_calm_time = None;
    let attribution = input.attribute_effect(run, processing.time, |calm| {
        let calm = ScenarioProcessing::of(calm)?;
        let is_faster = calm.ratio < 1.0 && calm.time < MAX_CALM_SHARE * processing.time;
        faster_calm_time = is_faster.then_some(calm.time);
        Some(calm.time)
    });
    match (attribution, run.scenario.stress(), faster_calm_time) {
        (LoadAttribution::NotLoad, Some(load), Some(calm)) => LoadAttribution::Load(load, calm),
        _ => attribution,
    }
}

fn diagnose_group(
    runs: &[&Run<'_>],
    processing: &ScenarioProcessing<'_>,
    attribution: LoadAttribution<'_>,
) -> RuleResult {
    let parts = &processing.parts;
    let confidence = Agreement {
        noun: "experiment",
        observed: parts.iter().filter(|(_, part)| part.ratio() >= 1.0).count(),
        total: runs.len(),
        ratio: processing.ratio,
    };
    let cause = format!(
        "{}: server processing takes {} of the {} from the last byte of a request to its reply ({}; {}){}.",
        runs[0].pair().endpoint,
        millis(processing.time),
        millis(processing.from_last_byte),
        percent(processing.time / processing.from_last_byte),
        runs[0].scenario.label(),
        reason(processing, attribution),
    );
    let mut result = RuleResult::new(
        cause,
        remedy(processing, attribution),
        confidence.confidence(),
    )
    .with_added_latency(processing.time)
    .with("peer application", processing.application, "ms")
    .with("peer kernel", processing.kernel, "ms")
    .with(
        "last byte of the request to the reply",
        processing.from_last_byte,
        "ms",
    );
    if let LoadAttribution::Load(_, calm) = attribution {
        result = result.with("without the background load", calm, "ms");
    }
    for (run, part) in parts {
        result = result.observed_at(run, &part.slowest);
    }
    result
}

/// The reason for the processing time, as the end of the sentence.
fn reason(processing: &ScenarioProcessing<'_>, attribution: LoadAttribution<'_>) -> String {
    let activity = if processing.application >= processing.kernel {
        "the server application works, or waits for a backend, between reading a request and answering it"
    } else {
        "the server application does not read requests that have arrived"
    };
    match attribution {
        LoadAttribution::NotLoad => format!(": {activity}"),
        LoadAttribution::Load(load, calm) => {
            let calm = millis(calm);
            format!(" under the background load {load}, and {calm} without it: the load causes it")
        }
        LoadAttribution::Unknown(load) => format!(" under the background load {load}: {activity}"),
    }
}

fn remedy(processing: &ScenarioProcessing<'_>, attribution: LoadAttribution<'_>) -> String {
    let usual_remedy = if processing.application >= processing.kernel {
        "profile the server: computation, locks, and backends"
    } else {
        "give the server more CPU: cores, fewer neighbours, more accepting threads"
    };
    let load_remedy = "reduce the number of neighbours, or give the server dedicated cores";
    attribution.remedy(usual_remedy, load_remedy)
}
