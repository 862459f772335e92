//! Head-of-line blocking at the sender: a message waits behind an earlier one's bytes, which TCP's
//! window does not let go yet, or which stand in our own interface's queue.

use std::collections::BTreeMap;

use neph_model::{Seq, Span, Stage};

use crate::diagnosis::{Agreement, Doing, Found, Leaving, Need, Ordered, Place, Rule, Run, Sight};
use crate::numbers::{millis, percent};
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "head-of-line",
    title: "head-of-line blocking at the sender",
    limits: "It sees requests wait in our own host behind others of the same connection. Why the window is closed (distance, loss, a slow link, a slow reader) is other rules' to say; a queue on the way, or at the peer, it does not see.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES), Need::SendStamps],
    look,
};

/// So many of the messages wait: fewer are the connection's first growth or a lost segment.
const SHARE: f64 = 0.3;
/// Those that wait do so for at least so many milliseconds ...
const LEAST_MS: f64 = 1.0;
/// ... and for this share of a round trip.
const LEAST_SHARE: f64 = 0.2;
/// It shows in so many of a scenario's experiments, and in two of them where there are several: the
/// window of one may have been stuck by chance.
const EXPERIMENTS: f64 = 0.4;
/// So many messages at least.
const MESSAGES: usize = 10;

/// What an experiment shows.
struct Blocked {
    /// How long each that waited did, in milliseconds.
    waits: Ordered,
    worst: Vec<Seq>,
    messages: usize,
    /// Between the departures of two messages, at the 90th percentile, in milliseconds.
    skew: f64,
    round_trip: f64,
    /// Of those that waited, behind how many bytes that were in our interface's queue rather than
    /// held back by the window.
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
            // A connection that had to be opened first is another rule's.
            let due = Span::from_nanos(one.intended.nanos()).millis_f64();
            let written = due + times.at(Stage::Lateness);
            let left = written + leaving.waited;
            messages += 1;
            if let Some((connection, earlier, in_queue)) = before
                && connection == one.connection
            {
                gaps.push(left - earlier);
                // The one before had not left when this one was written.
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

    /// What keeps the bytes before.
    fn why(&self) -> &'static str {
        if 2 * self.queued > self.waits.len() {
            "whose bytes stand in our own interface's queue"
        } else {
            "whose bytes the window does not let go"
        }
    }

    fn share(&self) -> f64 {
        real(self.waits.len()) / real(self.messages.max(1))
    }

    fn middle(&self) -> f64 {
        self.waits.median().unwrap_or(0.0)
    }

    /// How long a message waits on average, those included that do not.
    fn each(&self) -> f64 {
        self.share() * self.middle()
    }

    fn ratio(&self) -> f64 {
        let long = self.middle() / LEAST_MS.max(LEAST_SHARE * self.round_trip);
        long.min(self.share() / SHARE)
    }
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    // A place is told of once, where it costs most: by itself, and under the plan's load.
    let mut worst: BTreeMap<(Place, bool), Found> = BTreeMap::new();
    for runs in sight.grouped(|run| run.scenario.index).into_values() {
        let Some((whose, found)) = told(sight, &runs) else {
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

fn told<'a>(sight: &Sight<'a>, runs: &[&Run<'a>]) -> Option<(Doing<'a>, Found)> {
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
        "{}: {} every {} wait in the sender behind the message before, {}: {} of {} ({}), for {} at the median and up to {}. They leave up to {} apart instead of every {}, over a path of {}.{}",
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
        .with("messages that wait", worst.share(), "")
        .with("wait at the median", worst.middle(), "ms")
        .with("longest wait", worst.waits.greatest()?, "ms")
        .with("90th percentile between two departures", worst.skew, "ms")
        .with("round trip", worst.round_trip, "ms");
    for (run, one) in blocked() {
        found = found.seen_at(run, &one.worst);
    }
    Some((whose, found))
}

/// What the plan's load has to do with it, as the sentence's end.
fn by_load(whose: Doing<'_>) -> String {
    match whose {
        Doing::Own => String::new(),
        Doing::Load(load, calm) => format!(
            " The plan's load {load} does it: without it a message waits for {} on average.",
            millis(calm)
        ),
        Doing::Unknown(load) => format!(" The plan makes the load {load} meanwhile."),
    }
}

fn remedy(whose: Doing<'_>) -> String {
    let own = "send less or less often, use several connections (or QUIC streams) for messages that need not wait for each other, BBR where losses close the window, or a nearer endpoint";
    let of_load = "this is what sharing the way with the load costs: less of it, a queue that gives every flow its turn (fq_codel, CAKE), or a way of its own";
    whose.remedy(own, of_load)
}
