//! Advice held against the past: what would have come of taking the best port at a moment, a while
//! later, against what all ports had then.

use neph_model::{Instant, Own, Span};
use neph_stats::{Sorted, rough_quantile};
use serde::Serialize;

use crate::fairness::span;
use crate::pair::Share;
use crate::share::share;
use crate::view::{FleetView, FlowHistory, Segment};

/// How long after advice it is looked whether it still holds.
const HORIZONS: [Span; 6] = [
    Span::from_secs(10),
    Span::from_secs(30),
    Span::from_secs(60),
    Span::from_secs(300),
    Span::from_secs(1800),
    Span::from_secs(7200),
];
/// Moments at which advice is taken, at least and at most.
const LEAST: u8 = 10;
const MOST: i64 = 400;

/// How advice fared a while after it was given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Horizon {
    /// How long after.
    pub after: Span,
    /// In how many of the moments the advised port was in the lowest class then. Moments that are
    /// nearer to each other than `after` look at the same time twice: the interval is then too
    /// narrow.
    pub on_low: Share,
    /// The share of all flows that were in the lowest class then: what chance gives.
    pub random_on_low: f64,
    /// Median of the advised ports' base latencies, and of all flows'.
    pub p50: Against,
    /// The same of the 99th percentile.
    pub p99: Against,
}

/// What was advised beside what a random flow has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Against {
    /// With the advice.
    pub advised: Span,
    /// With a random flow.
    pub random: Span,
}

impl Against {
    /// What the advice saves; below zero where it costs.
    pub fn gain(&self) -> Span {
        self.random - self.advised
    }
}

/// How long a measurement has to be before advice can be tested at all.
pub(crate) fn least_time(bin: Span) -> Span {
    HORIZONS[0] + step(bin).times(i64::from(LEAST) + 1)
}

/// Advice is taken twice in a bin, so that short measurements have enough moments.
fn step(bin: Span) -> Span {
    Span::from_nanos((bin.nanos() / 4).max(1))
}

/// The advice of each moment scored at each horizon for which there are moments enough.
pub(crate) fn backtest(view: &FleetView, flows: &[&FlowHistory]) -> Vec<Horizon> {
    let begun = flows.iter().filter_map(|flow| flow.segments.first());
    let Some(from) = begun.map(|segment| segment.from).max() else {
        return Vec::new();
    };
    let told = HORIZONS.iter().map_while(|after| {
        let room = view.until - from - *after;
        let mut apart = step(view.settings.bin);
        while room.nanos() / apart.nanos() > MOST {
            apart = apart.times(2);
        }
        let moments = (1..=room.nanos() / apart.nanos()).map(|n| from + apart.times(n));
        score(flows, moments, *after)
    });
    told.collect()
}

/// What a score is made of.
#[derive(Debug, Default)]
struct Tally {
    advised: Vec<f64>,
    random: Vec<f64>,
    advised_low: u64,
    random_low: u64,
}

fn score(
    flows: &[&FlowHistory],
    moments: impl Iterator<Item = Instant<Own>>,
    after: Span,
) -> Option<Horizon> {
    let mut tally = Tally::default();
    for moment in moments {
        let Some(chosen) = choose(flows, moment) else {
            continue;
        };
        let Some(then) = at(chosen, moment + after) else {
            continue;
        };
        tally.advised.push(nanos(then.base));
        tally.advised_low += u64::from(then.class == Some(0));
        for segment in flows.iter().filter_map(|flow| at(flow, moment + after)) {
            tally.random.push(nanos(segment.base));
            tally.random_low += u64::from(segment.class == Some(0));
        }
    }
    if tally.advised.len() < usize::from(LEAST) {
        return None;
    }
    let all = tally.random.len() as u64;
    let on_low = share(tally.advised_low, tally.advised.len() as u64)?;
    let random_on_low = share(tally.random_low, all)?.share;
    let (advised, random) = (
        Sorted::sort(&mut tally.advised).ok()?,
        Sorted::sort(&mut tally.random).ok()?,
    );
    let against = |p: f64| {
        Some(Against {
            advised: span(rough_quantile(advised, p).ok()?),
            random: span(rough_quantile(random, p).ok()?),
        })
    };
    Some(Horizon {
        after,
        on_low,
        random_on_low,
        p50: against(0.5)?,
        p99: against(0.99)?,
    })
}

/// The port that one would take at a moment, of what is known then: of the flows with the lowest
/// base latency class the one that has been there longest.
fn choose<'a>(flows: &[&'a FlowHistory], moment: Instant<Own>) -> Option<&'a FlowHistory> {
    let there = flows
        .iter()
        .filter_map(|flow| Some((*flow, at(flow, moment)?)));
    let best = there.min_by_key(|(flow, segment)| {
        let class = segment.class.unwrap_or(u16::MAX);
        (class, segment.from, segment.base, flow.source_port)
    });
    best.map(|(flow, _)| flow)
}

/// Where a flow was at a moment.
fn at(flow: &FlowHistory, moment: Instant<Own>) -> Option<&Segment> {
    let next = flow
        .segments
        .partition_point(|segment| segment.from <= moment);
    let segment = flow.segments.get(next.checked_sub(1)?)?;
    (moment <= segment.until).then_some(segment)
}

#[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
fn nanos(span: Span) -> f64 {
    span.nanos() as f64
}
