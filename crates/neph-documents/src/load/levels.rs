//! `neph load --levels`: rate and response times by number of workers, the knee and the models.

use neph_analysis::queueing::fit::{Fit, Model};
use neph_analysis::queueing::level::Level;
use neph_analysis::queueing::levels::{LevelsAnalysis, Region, at_rate};
use neph_load::workload::Tally;
use neph_model::{Span, TimeDistribution};
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

use super::run::{per_second, share};

/// One run: a level in a block.
#[derive(Clone, Debug)]
pub struct LevelRun {
    /// From 0 on.
    pub block: u32,
    /// Number of workers.
    pub workers: u32,
    /// Counts without the warm-up.
    pub tally: Tally,
    /// Length of the measured part.
    pub measured: Span,
    /// Length of the warm-up that was cut off.
    pub warmup: Span,
    /// Whether the rule found the end of the warm-up.
    pub is_steady: bool,
    /// Whether the generator did what was asked.
    pub is_generated: bool,
}

impl LevelRun {
    /// The level, as models see it.
    pub fn level(&self, think: &TimeDistribution) -> Level {
        Level {
            workers: f64::from(self.workers),
            think: think.mean().secs_f64(),
            rate: per_second(self.tally.successes(), self.measured),
            response: self.tally.response.mean().map_or(0.0, Span::secs_f64),
        }
    }
}

/// Levels of a closed loop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LevelsDocument {
    /// Version of this schema.
    pub schema: Version,
    /// URL without credentials.
    pub url: String,
    /// Think time of the workers.
    pub think_time: TimeDistribution,
    /// Seed of all random draws and of the order of the runs.
    pub seed: u64,
    /// Complete blocks: passes over all levels, in random order.
    pub blocks: u32,
    /// Duration of a run, with its warm-up.
    pub duration_ns: Span,
    /// Each level, over all complete blocks.
    pub levels: Vec<LevelRow>,
    /// The number of workers from which on requests wait; null below three levels.
    pub knee: Option<KneeDocument>,
    /// Models, the best one first; empty below six levels.
    pub models: Vec<ModelDocument>,
    /// Times at shares of the capacity; empty without a knee.
    pub at_capacity: Vec<ShareRow>,
    /// Each run.
    pub runs: Vec<RunRow>,
}

crate::rows! {
    /// A level over all blocks.
    pub struct LevelRow {
        /// Number of workers.
        workers: u32 => right "WORKERS",
        /// Successful responses per second, mean over blocks.
        responses_per_s: f64 => right "RESPONSES/S" by |row| format!("{:.1}", row.responses_per_s),
        /// Lower end of its 95 % confidence interval over blocks; null below three blocks.
        responses_per_s_low: Option<f64> => right "95 % FROM" by |row| number(row.responses_per_s_low),
        /// Upper end; null below three blocks.
        responses_per_s_high: Option<f64> => right "TO" by |row| number(row.responses_per_s_high),
        /// Mean response time of all blocks; null without a successful response.
        mean_ns: Option<Span> => right "MEAN",
        /// Median; null with fewer than 6 requests, or if unsuccessful ones decide it.
        p50_ns: Option<Span> => right "P50",
        /// 90th percentile; null with fewer than 29 requests, or if unsuccessful ones decide it.
        p90_ns: Option<Span> => right "P90",
        /// 99th percentile; null with fewer than 299 requests, or if unsuccessful ones decide it.
        p99_ns: Option<Span> => right "P99",
        /// Requests without success, percent of all.
        unsuccessful_percent: f64 => right "ERRORS" by |row| format!("{:.2} %", row.unsuccessful_percent),
        /// Number of workers by Little's law.
        workers_by_little: f64 => right "LITTLE" by |row| format!("{:.2}", row.workers_by_little),
        /// `stable` below the interval of the knee, `overloaded` above, `knee` within; null if the knee is
        /// not known.
        region: Option<&'static str> => left "REGION",
        /// Remarks: the law of Little is violated, the generator was late or busy, no steady part.
        remarks: String => left "REMARKS",
    }
}

/// The knee.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KneeDocument {
    /// Number of workers where the asymptotes of the rate meet.
    pub workers: f64,
    /// Lower end of its 95 % confidence interval; null below three blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Mean rate of the plateau, responses per second.
    pub capacity_per_s: f64,
    /// Whether the highest level has at least 1.5 times the workers of the knee.
    pub is_reached: bool,
}

/// A fitted model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelDocument {
    /// `queue` (M/M/c//N), `asymptotes` or `scalability` (universal scalability law).
    pub model: &'static str,
    /// Service time of a request without waiting; null for `scalability`.
    pub service_ns: Option<Span>,
    /// Effective servers (c*); null for `scalability`.
    pub servers: Option<f64>,
    /// Rate of one worker without think time, per second; null for others than `scalability`.
    pub single_per_s: Option<f64>,
    /// Contention (sigma); null for others than `scalability`.
    pub contention: Option<f64>,
    /// Coherency (kappa); null for others than `scalability`.
    pub coherency: Option<f64>,
    /// Root of the mean squared residual, percent of the rate.
    pub error_percent: f64,
    /// Measured over modelled rate of each level minus 1, percent.
    pub residuals_percent: Vec<f64>,
}

crate::rows! {
    /// Times at a share of the capacity, between the two levels around it.
    pub struct ShareRow {
        /// Share of the capacity, percent.
        capacity_percent: u32 => right "CAPACITY" by |row| format!("{} %", row.capacity_percent),
        /// The rate.
        responses_per_s: f64 => right "RESPONSES/S" by |row| format!("{:.1}", row.responses_per_s),
        /// Mean response time; null outside of the levels.
        mean_ns: Option<Span> => right "MEAN",
        /// 99th percentile; null outside of the levels.
        p99_ns: Option<Span> => right "P99",
    }
}

crate::rows! {
    /// A run: a level in a block.
    pub struct RunRow {
        /// Number of the block, from 0.
        block: u32,
        /// Number of workers.
        workers: u32,
        /// Successful responses per second.
        responses_per_s: f64,
        /// Mean response time; null without a successful response.
        mean_ns: Option<Span>,
        /// 99th percentile; null with fewer than 299 requests, or if unsuccessful ones decide it.
        p99_ns: Option<Span>,
        /// Requests without success.
        unsuccessful: u64,
        /// Length of the warm-up that was cut off.
        warmup_ns: Span,
        /// Whether the rule (MSER-5) found the end of the warm-up.
        is_steady: bool,
        /// Whether the generator did what was asked.
        is_generated: bool,
    }
}

/// A number with one digit behind the point, or `-`.
fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// What the document is made of.
#[derive(Debug)]
pub struct LevelsInput<'a> {
    /// URL without credentials.
    pub url: &'a str,
    /// Think time of the workers.
    pub think: &'a TimeDistribution,
    /// Seed.
    pub seed: u64,
    /// Duration of a run.
    pub duration: Span,
    /// Number of complete blocks.
    pub blocks: u32,
    /// Runs of complete blocks.
    pub runs: &'a [LevelRun],
    /// What follows from them.
    pub analysis: &'a LevelsAnalysis,
}

impl LevelsDocument {
    /// The document of these runs.
    pub fn new(input: &LevelsInput<'_>) -> Self {
        let knee = input.analysis.knee.map(|knee| KneeDocument {
            workers: rounded(knee.workers),
            low: knee.low.map(rounded),
            high: knee.high.map(rounded),
            capacity_per_s: rounded(knee.capacity),
            is_reached: knee.is_reached,
        });
        let levels: Vec<LevelRow> = (0..input.analysis.levels.len())
            .map(|index| level_row(input, index))
            .collect();
        Self {
            schema: Version,
            url: input.url.to_owned(),
            think_time: input.think.clone(),
            seed: input.seed,
            blocks: input.blocks,
            duration_ns: input.duration,
            at_capacity: share_rows(&levels, knee),
            levels,
            knee,
            models: input.analysis.fits.iter().map(ModelDocument::of).collect(),
            runs: input.runs.iter().map(RunRow::of).collect(),
        }
    }
}

fn level_row(input: &LevelsInput<'_>, index: usize) -> LevelRow {
    let level = &input.analysis.levels[index];
    let mut tally = Tally::default();
    let mut remarks = Vec::new();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of workers"
    )]
    let workers = level.mean.workers.round() as u32;
    let runs = || input.runs.iter().filter(|run| run.workers == workers);
    runs().for_each(|run| tally.merge(&run.tally));
    let unsuccessful = share(tally.unsuccessful(), tally.ended());
    if level.mean.violates_little(unsuccessful) {
        remarks.push("violates Little's law: measure longer");
    }
    if runs().any(|run| !run.is_generated) {
        remarks.push("generator late or busy");
    }
    if runs().any(|run| !run.is_steady) {
        remarks.push("no steady part");
    }
    let region = match input.analysis.region(level.mean.workers) {
        Region::Stable => Some("stable"),
        Region::Overloaded => Some("overloaded"),
        Region::Unknown => {
            let is_known = input.analysis.knee.is_some_and(|knee| knee.is_reached);
            is_known.then_some("knee")
        }
    };
    LevelRow {
        workers,
        responses_per_s: rounded(level.mean.rate),
        responses_per_s_low: level.rate_low.map(rounded),
        responses_per_s_high: level.rate_high.map(rounded),
        mean_ns: tally.response.mean(),
        p50_ns: tally.response_quantile(500).time(),
        p90_ns: tally.response_quantile(900).time(),
        p99_ns: tally.response_quantile(990).time(),
        unsuccessful_percent: rounded(unsuccessful * 100.0),
        workers_by_little: rounded(level.mean.workers_by_little()),
        region,
        remarks: remarks.join(", "),
    }
}

/// Times at 50, 70 and 90 % of the capacity.
fn share_rows(levels: &[LevelRow], knee: Option<KneeDocument>) -> Vec<ShareRow> {
    let Some(knee) = knee.filter(|knee| knee.is_reached) else {
        return Vec::new();
    };
    let time = |of: fn(&LevelRow) -> Option<Span>, rate| {
        let known = levels
            .iter()
            .filter_map(|level| Some([level.responses_per_s, of(level)?.secs_f64()]));
        let seconds = at_rate(&known.collect::<Vec<[f64; 2]>>(), rate)?;
        #[expect(clippy::cast_possible_truncation, reason = "a response time")]
        Some(Span::from_nanos((seconds * 1e9).round() as i64))
    };
    let rows = [50_u32, 70, 90].map(|percent| {
        let rate = knee.capacity_per_s * f64::from(percent) / 100.0;
        ShareRow {
            capacity_percent: percent,
            responses_per_s: rounded(rate),
            mean_ns: time(|level| level.mean_ns, rate),
            p99_ns: time(|level| level.p99_ns, rate),
        }
    });
    rows.to_vec()
}

impl ModelDocument {
    fn of(fit: &Fit) -> Self {
        let percent = |value: f64| (value * 10_000.0).round() / 100.0;
        #[expect(clippy::cast_possible_truncation, reason = "a service time")]
        let span = |seconds: f64| Span::from_nanos((seconds * 1e9).round() as i64);
        let mut document = Self {
            model: "scalability",
            service_ns: None,
            servers: None,
            single_per_s: None,
            contention: None,
            coherency: None,
            error_percent: percent(fit.error),
            residuals_percent: fit.residuals.iter().copied().map(percent).collect(),
        };
        match fit.model {
            Model::Queue(station) | Model::Asymptotes(station) => {
                let is_queue = matches!(fit.model, Model::Queue(_));
                document.model = if is_queue { "queue" } else { "asymptotes" };
                document.service_ns = Some(span(station.service));
                document.servers = Some(rounded(station.servers));
            }
            Model::Scalability(law) => {
                let digits = |value: f64| (value * 1e6).round() / 1e6;
                document.single_per_s = Some(rounded(law.single));
                document.contention = Some(digits(law.contention));
                document.coherency = Some(digits(law.coherency));
            }
        }
        document
    }
}

impl RunRow {
    /// The row of a run.
    pub fn of(run: &LevelRun) -> Self {
        Self {
            block: run.block,
            workers: run.workers,
            responses_per_s: rounded(per_second(run.tally.successes(), run.measured)),
            mean_ns: run.tally.response.mean(),
            p99_ns: run.tally.response_quantile(990).time(),
            unsuccessful: run.tally.unsuccessful(),
            warmup_ns: run.warmup,
            is_steady: run.is_steady,
            is_generated: run.is_generated,
        }
    }
}

/// Two digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
