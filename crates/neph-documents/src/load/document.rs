//! A load as one document, and its lines of NDJSON.

use std::collections::BTreeMap;

use neph_load::Durations;
use neph_load::workload::{Demand, GeneratorLimit, RequestFailure, WorkloadSpec};
use neph_model::{Arrivals, Span, TimeDistribution};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rr::BucketDocument;
use crate::version::Version;

use super::run::{LoadRun, ThresholdRow};
use super::second::LoadSecondRow;

/// A load.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoadDocument {
    /// Version of this schema.
    pub schema: Version,
    /// URL without credentials.
    pub url: String,
    /// Address and port of the service.
    pub target: String,
    /// HTTP method.
    pub method: String,
    /// Whether connections were kept for further requests.
    pub keep_alive: bool,
    /// Who sent the requests.
    pub demand: DemandDocument,
    /// Seed of all random draws.
    pub seed: u64,
    /// Number of threads of the generator.
    pub threads: u32,
    /// Maximum number of connections.
    pub connection_limit: u64,
    /// Planned duration, with the warm-up.
    pub duration_ns: Span,
    /// First part of the duration, which is not measured.
    pub warmup_ns: Span,
    /// Maximum time from the sending of a request to the end of its response.
    pub timeout_ns: Span,
    /// A request that was sent later than this after its intended time is late.
    pub lateness_bound_ns: Span,
    /// Start, on the generator's clock.
    pub started_unix_ns: i64,
    /// Time from the start to the last request.
    pub lasted_ns: Span,
    /// Measured part of `lasted_ns`: without the warm-up.
    pub measured_ns: Span,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// Successful responses (status below 400) per second.
    pub responses_per_s: f64,
    /// Requests whose intended time lies in the measured part, by their outcome.
    pub requests: RequestsDocument,
    /// Time from the intended time to the end of the response; successful responses only.
    pub response_time: TimesDocument,
    /// Time from sending to the end of the response, including the opening of a connection if one had
    /// to be opened; successful responses only.
    pub service_time: TimesDocument,
    /// Time from the intended time until the generator took the request up.
    pub lateness: TimesDocument,
    /// Mean number of requests between their intended time and their response (Little's law); null
    /// without a successful response.
    pub concurrency: Option<f64>,
    /// Workers by Little's law: rate times the mean of response time plus think time. null in an open
    /// loop, and with unsuccessful requests.
    pub workers_by_little: Option<f64>,
    /// Whether the generator did what was asked: at most 1 % of the seconds are void.
    pub is_generated: bool,
    /// Measured seconds.
    pub measured_seconds: u32,
    /// Void seconds among them: the generator was late.
    pub void_seconds: u32,
    /// Limits of the generator that were met: `cpu`, `ports`, `sockets`, `connections`.
    pub generator_limits: Vec<&'static str>,
    /// CPU time of the generator's threads.
    pub cpu_ns: Span,
    /// Results of the conditions of `--fail`.
    pub thresholds: Vec<ThresholdRow>,
    /// Each second.
    pub seconds: Vec<LoadSecondRow>,
    /// Histogram of response times: buckets with responses, ascending, each at most one part in 512
    /// wide.
    pub histogram: Vec<BucketDocument>,
}

/// Who sent the requests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum DemandDocument {
    /// Workers that wait for each response.
    Closed {
        /// Number of workers.
        workers: u32,
        /// Time from a response to the next request of the worker.
        think_time: TimeDistribution,
        /// Time within which the workers started.
        ramp_ns: Span,
    },
    /// Requests that wait for no response.
    Open {
        /// When they arrive.
        arrivals: Arrivals,
    },
}

/// Requests by their outcome.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RequestsDocument {
    /// Requests whose intended time came.
    pub due: u64,
    /// Requests that had to wait for a connection.
    pub waited: u64,
    /// Sent requests, without repetitions.
    pub sent: u64,
    /// Successful responses (status below 400).
    pub successful: u64,
    /// Responses with status 400 or above.
    pub error_responses: u64,
    /// Requests without a complete response.
    pub failed: u64,
    /// Error responses and failed requests, percent of all that ended.
    pub unsuccessful_percent: f64,
    /// Requests that neph repeated, because the peer had closed their idle connection.
    pub retries: u64,
    /// Opened connections, also in the warm-up.
    pub connections: u64,
    /// Bytes of sent requests.
    pub sent_bytes: u64,
    /// Bytes of responses.
    pub received_bytes: u64,
    /// Complete responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed requests by reason: `timed_out`, `refused`, `unreachable`, `reset`, `closed`, `tls`,
    /// `invalid`,
    /// `no_port`, `no_socket`, `no_connection`, `other`.
    pub failures: BTreeMap<&'static str, u64>,
}

/// Times of requests. In percentiles, unsuccessful requests count as slower than every success.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TimesDocument {
    /// Number of times.
    pub count: u64,
    /// Minimum; null without one.
    pub min_ns: Option<Span>,
    /// Mean; null without one.
    pub mean_ns: Option<Span>,
    /// Standard deviation; null below two.
    pub sd_ns: Option<Span>,
    /// Median; null with fewer than 6 requests, or if unsuccessful ones decide it.
    pub p50_ns: Option<Span>,
    /// 90th percentile; null with fewer than 29 requests, or if unsuccessful ones decide it.
    pub p90_ns: Option<Span>,
    /// 99th percentile; null with fewer than 299 requests, or if unsuccessful ones decide it.
    pub p99_ns: Option<Span>,
    /// 99.9th percentile; null with fewer than 2995 requests, or if unsuccessful ones decide it.
    pub p999_ns: Option<Span>,
    /// Maximum; null without one.
    pub max_ns: Option<Span>,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadLine {
    /// A second.
    Second(Box<LoadSecondRow>),
    /// The last line.
    Summary(Box<LoadDocument>),
}

impl LoadDocument {
    /// The document of a load and its seconds.
    pub fn new(run: &LoadRun<'_>, seconds: Vec<LoadSecondRow>) -> Self {
        let (spec, measured) = (run.spec, run.measured);
        let (tally, validity) = (&measured.tally, &measured.validity);
        let unsuccessful = tally.unsuccessful();
        let buckets = tally.response.histogram().buckets();
        let limits = validity.limits.iter().map(|limit| limit_key(*limit));
        Self {
            schema: Version,
            url: run.url.to_owned(),
            target: spec.target.to_string(),
            method: spec.request.method.clone(),
            keep_alive: spec.request.keep_alive,
            demand: DemandDocument::of(spec),
            seed: spec.seed,
            threads: measured.threads,
            connection_limit: measured.connection_limit,
            duration_ns: spec.duration,
            warmup_ns: spec.warmup,
            timeout_ns: spec.timeout,
            lateness_bound_ns: spec.lateness_bound,
            started_unix_ns: measured.started.unix_nanos(),
            lasted_ns: measured.lasted,
            measured_ns: measured.measured,
            is_stopped: measured.is_stopped,
            responses_per_s: rounded(run.rate()),
            requests: RequestsDocument::of(run),
            response_time: TimesDocument::of(&tally.response, unsuccessful),
            service_time: TimesDocument::of(&tally.service, unsuccessful),
            lateness: TimesDocument::of(&tally.lateness, 0),
            concurrency: run.concurrency().map(rounded),
            workers_by_little: run.workers_by_little().map(rounded),
            is_generated: validity.is_generated(),
            measured_seconds: validity.seconds,
            void_seconds: validity.void_seconds,
            generator_limits: limits.collect(),
            cpu_ns: tally.cpu,
            thresholds: run.thresholds.to_vec(),
            seconds,
            histogram: buckets
                .map(|bucket| BucketDocument {
                    from_ns: bucket.from,
                    count: bucket.count,
                })
                .collect(),
        }
    }
}

impl DemandDocument {
    fn of(spec: &WorkloadSpec) -> Self {
        match &spec.demand {
            Demand::Closed(workers) => Self::Closed {
                workers: workers.count,
                think_time: workers.think.clone(),
                ramp_ns: workers.ramp,
            },
            Demand::Open(arrivals) => Self::Open {
                arrivals: arrivals.clone(),
            },
        }
    }
}

impl RequestsDocument {
    fn of(run: &LoadRun<'_>) -> Self {
        let tally = &run.measured.tally;
        let failures = tally.failures.iter();
        Self {
            due: tally.due,
            waited: tally.waited,
            sent: tally.sent,
            successful: tally.successes(),
            error_responses: tally.error_responses(),
            failed: tally.failed(),
            unsuccessful_percent: (run.unsuccessful_percent() * 1_000.0).round() / 1_000.0,
            retries: tally.retries,
            connections: tally.connections,
            sent_bytes: tally.sent_bytes,
            received_bytes: tally.received_bytes,
            statuses: tally.statuses.clone(),
            failures: failures
                .map(|(failure, count)| (failure_key(*failure), *count))
                .collect(),
        }
    }
}

impl TimesDocument {
    fn of(times: &Durations, unsuccessful: u64) -> Self {
        let quantile = |permille| times.quantile(permille, unsuccessful).time();
        Self {
            count: times.count(),
            min_ns: times.min(),
            mean_ns: times.mean(),
            sd_ns: times.deviation(),
            p50_ns: quantile(500),
            p90_ns: quantile(900),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns: times.max(),
        }
    }
}

/// Two digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn limit_key(limit: GeneratorLimit) -> &'static str {
    match limit {
        GeneratorLimit::Cpu => "cpu",
        GeneratorLimit::Ports => "ports",
        GeneratorLimit::Sockets => "sockets",
        GeneratorLimit::Connections => "connections",
    }
}

fn failure_key(failure: RequestFailure) -> &'static str {
    match failure {
        RequestFailure::TimedOut => "timed_out",
        RequestFailure::Refused => "refused",
        RequestFailure::Unreachable => "unreachable",
        RequestFailure::Reset => "reset",
        RequestFailure::Closed => "closed",
        RequestFailure::Tls => "tls",
        RequestFailure::Invalid => "invalid",
        RequestFailure::NoPort => "no_port",
        RequestFailure::NoSocket => "no_socket",
        RequestFailure::NoConnection => "no_connection",
        RequestFailure::Other => "other",
    }
}
