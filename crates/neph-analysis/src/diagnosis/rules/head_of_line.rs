//! Head-of-line blocking at the sender. A message waits behind the bytes of an earlier one, held back by
//! TCP's window or queued at the client's interface.

use std::collections::BTreeMap;

use neph_model::{Seq, Span, Stage};

use crate::diagnosis::{Agreement, Doing, Found, Leaving, Need, Ordered, Place, Rule, Run, Sight};
use crate::numbers::{millis, percent};
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "head-of-line",
    title: "head-of-line blocking at the sender",
    limits: "The rule sees requests that wait in the client host behind others of the same connection. Other rules report why the window is closed: distance, loss, a slow link, a slow receiver.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES), Need::SendStamps],
    look,
};

/// Minimum share of messages that wait: fewer come from slow start or a lost segment.
const SHARE: f64 = 0.3;
/// Minimum wait in milliseconds ...
const MIN_MS: f64 = 1.0;
/// ... and as a share of a round trip.
const MIN_SHARE: f64 = 0.2;
/// Minimum share of a scenario's experiments that show it, and two of them if there are several. A single
/// window may be stuck at random.
const EXPERIMENTS: f64 = 0.4;
/// Minimum number of messages.
const MESSAGES: usize = 10;

/// The result of an experiment.
struct Blocked {
    /// The waiting times of the messages that waited, in milliseconds.
    waits: Ordered,
    worst: Vec<Seq>,
    messages: usize,
    /// Time between the departures of two messages, p90, in milliseconds.
    skew: f64,
    round_trip: f64,
    /// Number of messages that waited behind bytes in the interface's queue, not behind the window.
    queued: usize,
}

impl Blocked {
    fn of(run: &Run<'_>) -> Option<Self> {
        let mut waits: Vec<(f64, Seq)> = Vec::new();
        let mut gaps: Vec<f64> = Vec::new();
        let mut before: Option<(u32, f64, bool)> = None;
        let (mut messages, mut queued) = (0, 0);
        for (one, times) in run.replies() {
            let Some(leaving) = Leaving::of(run.flow, one) else {
                continue;
            };
            // Connection setup belongs to another rule.
            let due = Span::from_nanos(one.intended.nanos()).millis_f64();
            let written = due + times.at(Stage::Lateness);
            let left = written + leaving.waited;
            messages += 1;
            if let Some((connection, earlier, in_queue)) = before
                && connection == one.connection
            {
                gaps.push(left - earlier);
                // The previous message had not departed when this one was written.
                if earlier > written {
                    waits.push((earlier - written, one.seq));
                    queued += usize::from(in_queue);
                }
            }
            let in_queue = 2.0 * leaving.queued > leaving.waited;
            before = Some((one.connection, left, in_queue));
        }
        waits.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(Self {
            worst: waits.iter().map(|(_, seq)| *seq).collect(),
            waits: waits.into_iter().map(|(wait, _)| wait).collect(),
            messages,
            skew: gaps.into_iter().collect::<Ordered>().at(0.9)?,
            round_trip: run.path()?,
            queued,
        })
    }

    /// What delays the earlier bytes.
    fn why(&self) -> &'static str {
        if 2 * self.queued > self.waits.len() {
            "with bytes still in the interface queue"
        } else {
            "with bytes held back by the send window"
        }
    }

    fn share(&self) -> f64 {
        real(self.waits.len()) / real(self.messages.max(1))
    }

    fn middle(&self) -> f64 {
        self.waits.median().unwrap_or(0.0)
    }

    /// Mean wait of a message, including messages that do not wait.
    fn each(&self) -> f64 {
        self.share() * self.middle()
    }

    fn ratio(&self) -> f64 {
        let long = self.middle() / MIN_MS.max(MIN_SHARE * self.round_trip);
        long.min(self.share() / SHARE)
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    // A place is reported once per cause (itself, the plan's load): where it adds the most latency.
    let mut worst: BTreeMap<(Place, bool), Found> = BTreeMap::new();
    for runs in sight.grouped(|run| run.scenario.index).into_values() {
        let Some((whose, found)) = reported(sight, &runs) else {
            continue;
        };
        let place = (runs[0].place(), whose.is_load());
        let known = worst.get(&place);
        if known.is_none_or(|known| known.cost < found.cost) {
            worst.insert(place, found);
        }
    }
    worst.into_values().collect()
}

fn reported<'a>(sight: &Sight<'a>, runs: &[&Run<'a>]) -> Option<(Doing<'a>, Found)> {
    let seen: Vec<(&Run<'_>, Blocked)> = runs
        .iter()
        .filter_map(|run| Some((*run, Blocked::of(run)?)))
        .filter(|(_, blocked)| blocked.messages >= MESSAGES)
        .collect();
    let ratio = seen.iter().map(|(_, one)| one.ratio()).collect::<Ordered>();
    let shown = seen.iter().filter(|(_, one)| one.ratio() >= 1.0).count();
    let is_chance = shown < 2 && seen.len() > 1;
    if is_chance || real(shown) < EXPERIMENTS * real(seen.len()) {
        return None;
    }
    let blocked = || seen.iter().filter(|(_, one)| one.ratio() >= 1.0);
    let (run, worst) = blocked().max_by(|(_, a), (_, b)| a.middle().total_cmp(&b.middle()))?;
    let confidence = Agreement {
        noun: "experiment",
        shown,
        of: seen.len(),
        ratio: ratio.greatest()?,
    };
    let whose = sight.whose(run, worst.each(), |calm| {
        let calm = calm.iter().filter_map(|run| Blocked::of(run));
        calm.map(|one| one.each()).max_by(f64::total_cmp)
    });
    let scenario = run.scenario;
    let cause = format!(
        "{}: messages of {} every {} wait in the sender behind the previous message, {}: {} of {} ({}), {} at the median and up to {}. The time between departures reaches {} (p90) instead of {}; the RTT is {}.{}",
        sight.name(&run.place()),
        scenario.request_size.exact(),
        scenario.interval.exact(),
        worst.why(),
        worst.waits.len(),
        plural(worst.messages, "message"),
        percent(worst.share()),
        millis(worst.middle()),
        millis(worst.waits.greatest()?),
        millis(worst.skew),
        scenario.interval.exact(),
        millis(worst.round_trip),
        by_load(whose),
    );
    let mut found = Found::new(cause, remedy(whose), confidence.confidence())
        .costing(worst.middle())
        .with("share of messages that wait", worst.share(), "")
        .with("median wait", worst.middle(), "ms")
        .with("longest wait", worst.waits.greatest()?, "ms")
        .with("p90 of the time between departures", worst.skew, "ms")
        .with("RTT", worst.round_trip, "ms");
    for (run, one) in blocked() {
        found = found.seen_at(run, &one.worst);
    }
    Some((whose, found))
}

/// The part of the plan's load, as the end of the sentence.
fn by_load(whose: Doing<'_>) -> String {
    match whose {
        Doing::Own => String::new(),
        Doing::Load(load, calm) => format!(
            " The background load {load} causes it: without the load a message waits {} on average.",
            millis(calm)
        ),
        Doing::Unknown(load) => format!(" The background load {load} may cause it."),
    }
}

fn remedy(whose: Doing<'_>) -> String {
    let own = "send fewer or smaller messages, use several connections or QUIC streams, use BBR where loss closes the window, or use a nearer endpoint";
    let of_load = "reduce the load, use fair queueing (fq_codel, CAKE), or another path";
    whose.remedy(own, of_load)
}
