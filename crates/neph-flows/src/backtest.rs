//! Backtest of advice: the latency of the advised port some time after the advice, compared with that of all
//! ports then.
//!
//! Uses only what was reported by the moment of the advice: a path change is reported some messages later, or
//! more. Exceptions: class limits and withdrawn changes are those of the whole measurement.

use std::collections::BTreeMap;

use neph_model::{Instant, Local, Span};
use neph_stats::quantile_needs;

use crate::horizon::{AdvisedVersusRandom, Horizon, has_enough_times};
use crate::share::{Share, share, share_of_cases};
use crate::view::{FleetView, FlowHistory, PathChange, Segment};

/// Times after the advice at which it is evaluated.
const HORIZONS: [Span; 6] = [
    Span::from_secs(10),
    Span::from_secs(30),
    Span::from_secs(60),
    Span::from_secs(300),
    Span::from_secs(1800),
    Span::from_secs(7200),
];
/// Maximum number of moments at which advice is given.
const MAX_EVALUATION_TIMES: i64 = 400;
/// Minimum number of consecutive periods per horizon.
const MIN_PERIODS: u64 = 2;

/// Minimum duration of a measurement that can show that advice is better than a random port, which is right
/// in a share `random` of all cases. `None` if that is always.
pub(crate) fn min_duration(horizon: Span, random: f64) -> Option<Span> {
    let times = (MIN_PERIODS..=1000).find(|times| has_enough_times(*times, random))?;
    // One more, for the time until flows have a base latency.
    Some(horizon.times(i64::try_from(times).ok()? + 1))
}

/// A flow, and since when each of its segments was known.
#[derive(Debug)]
struct ObservedFlow<'a> {
    history: &'a FlowHistory,
    known_since: Vec<Instant<Local>>,
}

impl<'a> ObservedFlow<'a> {
    /// `changes` has the `reported_at` moment of each change, by slot, port and moment.
    fn new(view: &FleetView, flow: &'a FlowHistory, changes: &ReportedTimes) -> Self {
        // The moment when the first base latency was reported is not kept: it takes a window.
        let interval = view.fleet.interval;
        let learning_time = interval.times(i64::from(view.settings.detection.window));
        let known_since = |(index, segment): (usize, &Segment)| {
            let key = (flow.slot.0, flow.source_port, segment.from);
            match changes.get(&key) {
                Some(reported_at) if index > 0 => *reported_at,
                _ => segment.from + learning_time + segment.base,
            }
        };
        Self {
            history: flow,
            known_since: flow.segments.iter().enumerate().map(known_since).collect(),
        }
    }

    /// Its segment at a moment, as far as known then; `None` if it had been silent for `silence`.
    fn segment_known_at(&self, moment: Instant<Local>, silence: Span) -> Option<&'a Segment> {
        let is_alive = self.history.segments.last()?.until >= moment - silence;
        let known_count = self.known_since.partition_point(|since| *since <= moment);
        let segment = self.history.segments.get(known_count.checked_sub(1)?)?;
        is_alive.then_some(segment)
    }
}

/// When each change was reported.
type ReportedTimes = BTreeMap<(u32, u16, Instant<Local>), Instant<Local>>;

/// The score of the advice of each moment, at each horizon that fits into the measurement. Empty for flows
/// that are replaced by new flows: their ports do not last.
pub(crate) fn backtest(view: &FleetView, flows: &[&FlowHistory]) -> Vec<Horizon> {
    if view.fleet.lifetime.is_some() {
        return Vec::new();
    }
    let reported_at = |change: &PathChange| {
        let key = (change.slot.0, change.source_port, change.at);
        (key, change.reported)
    };
    let changes: ReportedTimes = view.changes.iter().map(reported_at).collect();
    let flows_with_base = flows.iter().filter(|flow| !flow.segments.is_empty());
    let observed: Vec<ObservedFlow> = flows_with_base
        .map(|flow| ObservedFlow::new(view, flow, &changes))
        .collect();
    let Some(from) = evaluation_start(&observed) else {
        return Vec::new();
    };
    let silence = view.silence();
    let scores = HORIZONS.iter().map_while(|after| {
        let duration = (view.until - from - *after).nanos();
        // Four moments per bin, so that short measurements have some.
        let mut step = Span::from_nanos((view.settings.bin.nanos() / 4).max(1));
        while duration / step.nanos() > MAX_EVALUATION_TIMES {
            step = step.times(2);
        }
        let moments = (0..=duration.div_euclid(step.nanos())).map(|n| from + step.times(n));
        let moments: Vec<Instant<Local>> = moments.collect();
        let score = compute_score(&observed, &moments, (*after, silence));
        // The number of consecutive periods of this length.
        let times = u64::try_from((view.until - from).nanos() / after.nanos()).unwrap_or(0);
        score.to_horizon(*after, times)
    });
    scores.collect()
}

/// When 90 % of the flows had a base latency: a late flow does not delay the others.
fn evaluation_start(observed: &[ObservedFlow<'_>]) -> Option<Instant<Local>> {
    let mut first_times: Vec<Instant<Local>> = observed
        .iter()
        .filter_map(|flow| flow.known_since.first().copied())
        .collect();
    first_times.sort_unstable();
    first_times
        .get((first_times.len() * 9).div_ceil(10).checked_sub(1)?)
        .copied()
}

/// Sums for a score: of the advised ports, and of all.
#[derive(Debug, Default)]
struct Score {
    advised: BaseCounts,
    random: BaseCounts,
}

fn compute_score(
    observed: &[ObservedFlow<'_>],
    moments: &[Instant<Local>],
    (after, silence): (Span, Span),
) -> Score {
    let mut score = Score::default();
    for moment in moments {
        if let Some(chosen_flow) = choose_flow(observed, *moment, silence) {
            score
                .advised
                .add(chosen_flow.history.at(*moment + after), 1);
        }
    }
    for flow in observed {
        let evaluable_times = moments
            .iter()
            .filter(|moment| flow.segment_known_at(**moment, silence).is_some());
        let segments: Vec<Option<&Segment>> = evaluable_times
            .map(|moment| flow.history.at(*moment + after))
            .collect();
        for group in segments.chunk_by(|a, b| a == b) {
            score.random.add(group[0], group.len() as u64);
        }
    }
    score
}

impl Score {
    fn to_horizon(&self, after: Span, times: u64) -> Option<Horizon> {
        let moments = self.advised.cases();
        let times = times.min(moments);
        if times < MIN_PERIODS {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let on_low = share_of_cases(self.advised.low, moments, times as f64)?;
        let advised_versus_random = |p: f64| {
            let is_enough = quantile_needs(p).is_ok_and(|needs| times >= needs as u64);
            Some(AdvisedVersusRandom {
                advised: self.advised.quantile(p).filter(|_| is_enough)?,
                random: self.random.quantile(p)?,
            })
        };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a count"
        )]
        let hits = (on_low.share * times as f64).round() as u64;
        Some(Horizon {
            after,
            on_low: Share {
                hits,
                n: times,
                ..on_low
            },
            random_on_lowest_class: share(self.random.low, self.random.cases())?.share,
            p50: advised_versus_random(0.5),
            p99: advised_versus_random(0.99),
        })
    }
}

/// Where flows were: how often at each base latency.
#[derive(Debug, Default)]
struct BaseCounts {
    bases: BTreeMap<Span, u64>,
    /// Flows that had gone silent: they count above all others.
    silent: u64,
    /// Flows in the lowest class.
    low: u64,
}

impl BaseCounts {
    fn add(&mut self, segment: Option<&Segment>, times: u64) {
        let Some(segment) = segment else {
            self.silent += times;
            return;
        };
        *self.bases.entry(segment.base).or_default() += times;
        if segment.class == Some(0) {
            self.low += times;
        }
    }

    fn cases(&self) -> u64 {
        self.bases.values().sum::<u64>() + self.silent
    }

    /// The quantile `p` of the base latencies; `None` if it falls on silent flows.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank"
    )]
    fn quantile(&self, p: f64) -> Option<Span> {
        let rank = (self.cases() as f64 * p).ceil() as u64;
        let mut cumulated = 0;
        let mut bases = self.bases.iter();
        let entry = bases.find(|(_, count)| {
            cumulated += **count;
            cumulated >= rank
        });
        entry.map(|(base, _)| *base)
    }
}

/// The port that one would choose at a moment, from what is known then. Among the flows in the lowest class
/// it is the one with the longest stay.
fn choose_flow<'a, 'b>(
    observed: &'b [ObservedFlow<'a>],
    moment: Instant<Local>,
    silence: Span,
) -> Option<&'b ObservedFlow<'a>> {
    let candidates = observed
        .iter()
        .filter_map(|flow| Some((flow, flow.segment_known_at(moment, silence)?)));
    let best = candidates.min_by_key(|(flow, segment)| {
        let class = segment.class.unwrap_or(u16::MAX);
        (class, segment.from, segment.base, flow.history.source_port)
    });
    best.map(|(flow, _)| flow)
}

#[cfg(test)]
mod tests;
