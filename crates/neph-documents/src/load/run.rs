//! A load with what was asked for: the input of its document and of its text. Its rates.

use neph_load::workload::{Demand, WorkloadMeasured, WorkloadSpec};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

/// A load that was generated, with its request.
#[derive(Clone, Copy, Debug)]
pub struct LoadRun<'a> {
    /// The URL without credentials.
    pub url: &'a str,
    /// What was asked for.
    pub spec: &'a WorkloadSpec,
    /// What was measured.
    pub measured: &'a WorkloadMeasured,
    /// Results of the conditions of `--fail`.
    pub thresholds: &'a [ThresholdRow],
}

/// The result of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThresholdRow {
    /// The condition.
    pub condition: String,
    /// `held`, `exceeded`, or `unknown` with too few requests.
    pub result: &'static str,
    /// The measured value, or why it is unknown; null if the condition held.
    pub detail: Option<String>,
}

impl LoadRun<'_> {
    /// Successful responses per second.
    pub fn rate(&self) -> f64 {
        per_second(self.measured.tally.successes(), self.measured.measured)
    }

    /// Requests without success as a share of all, percent.
    pub fn unsuccessful_percent(&self) -> f64 {
        let tally = &self.measured.tally;
        share(tally.unsuccessful(), tally.ended()) * 100.0
    }

    /// Mean number of requests between their intended time and their response, by Little's law: rate of
    /// successful responses times their mean response time.
    pub fn concurrency(&self) -> Option<f64> {
        let mean = self.measured.tally.response.mean()?;
        Some(self.rate() * mean.secs_f64())
    }

    /// Workers by Little's law: rate times (mean response time + mean think time). `None` in an open loop,
    /// and with requests without success.
    pub fn workers_by_little(&self) -> Option<f64> {
        let Demand::Closed(workers) = &self.spec.demand else {
            return None;
        };
        let tally = &self.measured.tally;
        if tally.unsuccessful() > 0 {
            return None;
        }
        let cycle = tally.response.mean()? + workers.think.mean();
        Some(self.rate() * cycle.secs_f64())
    }
}

/// Events per second.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
pub(super) fn per_second(count: u64, time: Span) -> f64 {
    let seconds = time.secs_f64();
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

/// A part of a whole, 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
