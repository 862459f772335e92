//! Backtest of advice: the latency of the advised port some time after the advice, compared with that of all
//! ports then.
//!
//! Uses only what was reported by the moment of the advice: a path change is reported some messages later, or
//! more. Exceptions: class limits and withdrawn changes are those of the whole measurement.

use std::collections::BTreeMap;

use neph_model::{Instant, Local, Span};
use neph_stats::quantile_needs;

use crate::horizon::{AdvisedVersusRandom, Horizon, is_enough};
use crate::share::{Share, share, share_worth};
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
const MAX_MOMENTS: i64 = 400;
/// Minimum number of consecutive periods per horizon.
const MIN_PERIODS: u64 = 2;

/// Minimum duration of a measurement that can show that advice is better than a random port, which is right
/// in a share `random` of all cases. `None` if that is always.
pub(crate) fn min_duration(horizon: Span, random: f64) -> Option<Span> {
    let times = (MIN_PERIODS..=1000).find(|times| is_enough(*times, random))?;
    // One more, for the time until flows have a base latency.
    Some(horizon.times(i64::try_from(times).ok()? + 1))
}

/// A flow, and since when each of its segments was known.
#[derive(Debug)]
struct ObservedFlow<'a> {
    history: &'a FlowHistory,
    known: Vec<Instant<Local>>,
}

impl<'a> ObservedFlow<'a> {
    /// `changes` has the `reported_at` moment of each change, by slot, port and moment.
    fn new(view: &FleetView, flow: &'a FlowHistory, changes: &Changes) -> Self {
        // The moment when the first base latency was reported is not kept: it takes a window.
        let window = view.fleet.interval;
        let first = window.times(i64::from(view.settings.detection.window));
        let known = |(index, segment): (usize, &Segment)| {
            let key = (flow.slot.0, flow.source_port, segment.from);
            match changes.get(&key) {
                Some(reported_at) if index > 0 => *reported_at,
                _ => segment.from + first + segment.base,
            }
        };
        Self {
            history: flow,
            known: flow.segments.iter().enumerate().map(known).collect(),
        }
    }

    /// Its segment at a moment, as far as known then; `None` if it had been silent for `silence`.
    fn known_at(&self, moment: Instant<Local>, silence: Span) -> Option<&'a Segment> {
        let is_alive = self.history.segments.last()?.until >= moment - silence;
        let next = self
            .known
            .partition_point(|known_since| *known_since <= moment);
        let segment = self.history.segments.get(next.checked_sub(1)?)?;
        is_alive.then_some(segment)
    }
}

/// When each change was reported.
type Changes = BTreeMap<(u32, u16, Instant<Local>), Instant<Local>>;

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
    let changes: Changes = view.changes.iter().map(reported_at).collect();
    let begun = flows.iter().filter(|flow| !flow.segments.is_empty());
    let observed: Vec<ObservedFlow> = begun
        .map(|flow| ObservedFlow::new(view, flow, &changes))
        .collect();
    let Some(from) = begin(&observed) else {
        return Vec::new();
    };
    let silence = view.silence();
    let scores = HORIZONS.iter().map_while(|after| {
        let room = (view.until - from - *after).nanos();
        // Four moments per bin, so that short measurements have some.
        let mut apart = Span::from_nanos((view.settings.bin.nanos() / 4).max(1));
        while room / apart.nanos() > MAX_MOMENTS {
            apart = apart.times(2);
        }
        let moments = (0..=room.div_euclid(apart.nanos())).map(|n| from + apart.times(n));
        let moments: Vec<Instant<Local>> = moments.collect();
        let score = score(&observed, &moments, (*after, silence));
        // The number of consecutive periods of this length.
        let times = u64::try_from((view.until - from).nanos() / after.nanos()).unwrap_or(0);
        score.to_horizon(*after, times)
    });
    scores.collect()
}

/// When 90 % of the flows had a base latency: a late flow does not delay the others.
fn begin(observed: &[ObservedFlow<'_>]) -> Option<Instant<Local>> {
    let mut first: Vec<Instant<Local>> = observed
        .iter()
        .filter_map(|flow| flow.known.first().copied())
        .collect();
    first.sort_unstable();
    first
        .get((first.len() * 9).div_ceil(10).checked_sub(1)?)
        .copied()
}

/// Sums for a score: of the advised ports, and of all.
#[derive(Debug, Default)]
struct Score {
    advised: BaseCounts,
    random: BaseCounts,
}

fn score(
    observed: &[ObservedFlow<'_>],
    moments: &[Instant<Local>],
    (after, silence): (Span, Span),
) -> Score {
    let mut score = Score::default();
    for moment in moments {
        if let Some(chosen) = choose(observed, *moment, silence) {
            score.advised.add(chosen.history.at(*moment + after), 1);
        }
    }
    for flow in observed {
        let known = moments
            .iter()
            .filter(|moment| flow.known_at(**moment, silence).is_some());
        let segments: Vec<Option<&Segment>> = known
            .map(|moment| flow.history.at(*moment + after))
            .collect();
        for same in segments.chunk_by(|a, b| a == b) {
            score.random.add(same[0], same.len() as u64);
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
        let on_low = share_worth(self.advised.low, moments, times as f64)?;
        let against = |p: f64| {
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
            p50: against(0.5),
            p99: against(0.99),
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
        let mut below = 0;
        let mut bases = self.bases.iter();
        let median = bases.find(|(_, count)| {
            below += **count;
            below >= rank
        });
        median.map(|(base, _)| *base)
    }
}

/// The port that one would choose at a moment, from what is known then. Among the flows in the lowest class
/// it is the one with the longest stay.
fn choose<'a, 'b>(
    observed: &'b [ObservedFlow<'a>],
    moment: Instant<Local>,
    silence: Span,
) -> Option<&'b ObservedFlow<'a>> {
    let there = observed
        .iter()
        .filter_map(|flow| Some((flow, flow.known_at(moment, silence)?)));
    let best = there.min_by_key(|(flow, segment)| {
        let class = segment.class.unwrap_or(u16::MAX);
        (class, segment.from, segment.base, flow.history.source_port)
    });
    best.map(|(flow, _)| flow)
}

#[cfg(test)]
mod tests;
