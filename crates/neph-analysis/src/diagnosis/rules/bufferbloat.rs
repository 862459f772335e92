//! Bufferbloat: a queue on the way that fills for seconds and drains again, many times the path's
//! own delay.

mod raised;

use neph_model::{Seq, Stage};

use crate::diagnosis::{
    Agreement, Crossing, Doing, Found, Need, Ordered, Place, Rule, Run, Sight, Stall,
    measure_without,
};
use crate::findings::capacity::{Capacity, Traffic};
use crate::numbers::millis;
use crate::words::real;
use raised::longest;

pub(crate) const RULE: Rule = Rule {
    name: "bufferbloat",
    title: "bufferbloat",
    limits: "It sees that a queue fills, not where it stands, and not who fills it, beyond comparing what the messages themselves ask of the link with what it carries. A queue that is full from an experiment's first message to its last it cannot tell from a long path.",
    covers: &["transmission"],
    needs: &[Need::Replies(MESSAGES), Need::Network],
    look,
};

/// A queue is told of from this many milliseconds above the path on: real-time media notice it ...
const LEAST_MS: f64 = 5.0;
/// ... and from this multiple of the path's own round trip on.
const LEAST_SHARE: f64 = 0.5;
/// A stretch lasts at least so many seconds: shorter ones are bursts, not a standing queue ...
const LEAST_SECONDS: f64 = 0.8;
/// ... and holds at least so many messages.
const MESSAGES: usize = 6;
/// The slowest twentieth aside: of replies that are sent again nobody tells us.
const GREATEST: f64 = 0.95;
/// The level of an empty queue: what the quickest tenth of the messages met.
const EMPTY: f64 = 0.1;
/// Outside the stretch at least this share of the messages must have met an empty queue: else the
/// path may simply be long.
const RESTED: f64 = 0.1;
/// A queue breathes; a longer path does not. Between its 10th and 90th percentile the delay varies
/// more than outside of the stretch by this share of what it adds ...
const BREATHES: f64 = 0.12;
/// ... and where it varies by less than this share, it is seen to fill or to drain too ...
const BREATHES_DEEPLY: f64 = 0.25;
/// ... by messages near the stretch's edges that took between these shares of what it adds.
const RAMP: std::ops::Range<f64> = 0.15..0.7;
/// Some dozen messages may vary by so much more than the path's jitter by chance.
const BY_CHANCE: f64 = 1.5;
/// A stretch that is no longer than so many stalls of the peer is one.
const AS_A_STALL: f64 = 1.5;
/// Beside the queue's delay our own host's is nothing.
const OWN: f64 = 0.1;
/// The share of the link's rate from which on the messages themselves fill it, and below which they
/// cannot.
const OWN_LOAD: f64 = 0.9;
const NO_LOAD: f64 = 0.5;

/// A stretch of raised delay.
struct Stretch {
    from: f64,
    to: f64,
    base: f64,
    /// Within it, in milliseconds.
    median: f64,
    greatest: f64,
    messages: Vec<Seq>,
    /// What the ICMP echoes beside it took in it and outside, at the median; where there are enough.
    echoes: Option<(f64, f64)>,
}

impl Stretch {
    fn added(&self) -> f64 {
        self.median - self.base
    }

    fn ratio(&self) -> f64 {
        self.added() / threshold(self.base)
    }

    /// Whether echoes did not wait in it: somebody prefers them, or they go another way.
    fn goes_past(&self) -> bool {
        self.echoes
            .is_some_and(|(inside, outside)| inside - outside < 0.25 * self.added())
    }

    fn echoes_in_words(&self) -> String {
        let Some((inside, outside)) = self.echoes else {
            return String::new();
        };
        let numbers = format!("{} instead of {}", millis(inside), millis(outside));
        if self.goes_past() {
            format!(
                " ICMP echoes do not wait in it ({numbers}): they are preferred or go another way, and a ping does not show it."
            )
        } else {
            format!(" ICMP echoes wait in it too ({numbers}).")
        }
    }
}

fn threshold(base: f64) -> f64 {
    LEAST_MS.max(LEAST_SHARE * base)
}

/// The longest stretch of an experiment in which its messages met a queue.
fn stretch(run: &Run<'_>) -> Option<Stretch> {
    // What was sent again took as long as that took: it shows no queue, neither full nor breathing.
    let once = run.crossings.iter().filter(|one| !one.is_resent);
    let all: Vec<Crossing> = once.copied().collect();
    let base = run.networks().at(EMPTY)?;
    let raised = |one: &Crossing| one.network > base + threshold(base);
    let (from, to) = longest(&all.iter().map(raised).collect::<Vec<bool>>())?;
    let inside = all.get(from..=to)?;
    let (first, last) = (inside.first()?, inside.last()?);
    let outside: Vec<&Crossing> = all[..from].iter().chain(&all[to + 1..]).collect();
    let rested: Vec<&Crossing> = outside.into_iter().filter(|one| !raised(one)).collect();
    let resting: Ordered = rested.iter().map(|one| one.network).collect();
    let times: Ordered = inside.iter().map(|one| one.network).collect();
    let found = Stretch {
        from: first.at,
        to: last.at,
        base,
        median: times.median()?,
        greatest: times.at(GREATEST)?,
        messages: inside.iter().map(|one| one.seq).collect(),
        echoes: echoes(run, (first.at, last.at)),
    };
    let jitter = resting.spread()?;
    let spread = times.spread()? - BY_CHANCE * jitter;
    let edges = [edge(&all, from), edge(&all, to)];
    let on_its_way = (base + 2.0 * jitter).max(base + RAMP.start * found.added())
        ..base + RAMP.end * found.added();
    let mut edges = edges.into_iter().flatten();
    let breathes = spread >= BREATHES_DEEPLY * found.added()
        || (spread >= BREATHES * found.added()
            && edges.any(|one| on_its_way.contains(&one.network)));
    // Of a peer that stands still again and again a single stall may look unlike the others.
    let stalls = run.stalls.peer.stalls.iter();
    let longest = stalls.map(Stall::length).fold(0.0, f64::max);
    let is_stall = 1e3 * (last.at - first.at) <= AS_A_STALL * longest;
    let is_long = last.at - first.at >= LEAST_SECONDS && inside.len() >= MESSAGES;
    let is_rested = real(rested.len()) >= RESTED * real(all.len());
    (breathes && is_long && is_rested && !is_stall && is_not_ours(run, &found)).then_some(found)
}

/// The messages around a stretch's first or last one.
fn edge(all: &[Crossing], place: usize) -> &[Crossing] {
    const AROUND: usize = 2;
    &all[place.saturating_sub(AROUND)..(place + AROUND + 1).min(all.len())]
}

/// Whether our own host was not what was slow: its stages in the stretch are nothing beside.
fn is_not_ours(run: &Run<'_>, stretch: &Stretch) -> bool {
    let (Some(first), Some(last)) = (stretch.messages.first(), stretch.messages.last()) else {
        return false;
    };
    let inside = run
        .replies()
        .filter(|(one, _)| (first..=last).contains(&&one.seq));
    let own: Ordered = inside
        .map(|(_, times)| times.sum(&[Stage::Lateness, Stage::OwnKernel]))
        .collect();
    own.median().is_some_and(|own| own <= OWN * stretch.added())
}

fn echoes(run: &Run<'_>, (from, to): (f64, f64)) -> Option<(f64, f64)> {
    const FEW: usize = 3;
    let flow = run.experiment.companion()?;
    let told = flow.exchanges.iter().filter_map(|one| {
        let at = neph_model::Span::from_nanos(one.intended.nanos()).secs_f64();
        Some((at, flow.round_trip(one)?.millis_f64()))
    });
    let (inside, outside): (Vec<_>, Vec<_>) = told.partition(|(at, _)| (from..=to).contains(at));
    let middle = |all: Vec<(f64, f64)>| {
        let times: Ordered = all.into_iter().map(|(_, time)| time).collect();
        (times.len() >= FEW).then(|| times.median()).flatten()
    };
    middle(inside).zip(middle(outside))
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let places = sight.places().into_iter();
    places
        .flat_map(|(place, runs)| {
            let seen = runs.iter().filter_map(|run| Some((*run, stretch(run)?)));
            // What the plan's load does is told apart from what is there without it.
            let (own, by_load): (Vec<_>, Vec<_>) =
                seen.partition(|(run, stretch)| !whose(sight, run, stretch).is_load());
            [own, by_load].map(|seen| told(sight, &place, &runs, &seen))
        })
        .flatten()
        .collect()
}

fn whose<'a>(sight: &Sight<'a>, run: &Run<'a>, seen: &Stretch) -> Doing<'a> {
    sight.whose(run, seen.added(), |calm| {
        let calm = calm.iter().map(|run| stretch(run));
        calm.map(|found| found.map_or(0.0, |found| found.added()))
            .max_by(f64::total_cmp)
    })
}

fn told<'a>(
    sight: &Sight<'a>,
    place: &Place,
    runs: &[&Run<'a>],
    seen: &[(&Run<'a>, Stretch)],
) -> Option<Found> {
    let (run, worst) = seen
        .iter()
        .max_by(|(_, a), (_, b)| a.added().total_cmp(&b.added()))?;
    let alike = runs
        .iter()
        .filter(|one| one.scenario.index == run.scenario.index);
    let shown = seen
        .iter()
        .filter(|(one, _)| one.scenario.index == run.scenario.index);
    let confidence = Agreement {
        noun: "experiment",
        shown: shown.count(),
        of: alike.count(),
        ratio: worst.ratio(),
    };
    let mut confidence = confidence.confidence();
    if worst.goes_past() {
        confidence.level = confidence.level.less();
        confidence.why.push_str("; ICMP echoes did not wait in it");
    }
    let shared = worst.echoes_in_words();
    let whose = Filler::of(sight, run, worst);
    let cause = format!(
        "{}: a queue on the way fills between {:.1} s and {:.1} s ({}): the network takes {} at the median and up to {} (the slowest twentieth aside), where the path alone takes {}, and recovers.{shared} {}",
        sight.name(place),
        worst.from,
        worst.to,
        run.scenario.label(),
        millis(worst.median),
        millis(worst.greatest),
        millis(worst.base),
        whose.in_words(),
    );
    let mut found = Found::new(cause, whose.remedy(), confidence)
        .costing(worst.added())
        .with("path alone", worst.base, "ms")
        .with("median in the stretch", worst.median, "ms")
        .with("greatest", worst.greatest, "ms")
        .with("from", worst.from, "s")
        .with("to", worst.to, "s");
    if let Some((inside, outside)) = worst.echoes {
        found = found.with("echo in the stretch", inside, "ms");
        found = found.with("echo outside", outside, "ms");
    }
    for (run, stretch) in seen {
        found = found.explaining(run, stretch.added());
        found = found.seen_at(run, &stretch.messages);
    }
    Some(found)
}

/// Who fills the queue, as far as the throughput checks and the plan's own load tell.
#[derive(Clone, Copy)]
enum Filler<'s> {
    /// The plan's load: without it messages wait for so many milliseconds.
    Plan(&'s str, f64),
    /// The plan's load, perhaps: nothing is measured without it.
    PlanPerhaps(&'s str),
    /// The messages themselves ask for this share of the link, or more than it carries.
    Own(f64),
    /// Others: the messages ask for this share of the link only.
    Others(f64),
    /// Others: the messages ask for this share of what the link carries at least.
    OthersMostly(f64),
    /// Others: a message alone is back before the next one goes. Where the messages ask for more
    /// than the link carries, each takes longer than the interval for its bytes alone.
    Strangers,
    Unknown,
    /// The messages ask for much of what the checks found, or these did not fill the link.
    Uncertain,
}

impl<'s> Filler<'s> {
    fn of(sight: &Sight<'s>, run: &Run<'s>, worst: &Stretch) -> Self {
        let asked = Self::as_asked(sight, run, worst.base);
        match (whose(sight, run, worst), asked) {
            (Doing::Load(load, calm), _) => Self::Plan(load, calm),
            (Doing::Unknown(load), asked) if !matches!(asked, Self::Own(_)) => {
                Self::PlanPerhaps(load)
            }
            _ => asked,
        }
    }

    /// By what the messages ask of the link.
    fn as_asked(sight: &Sight<'_>, run: &Run<'_>, base: f64) -> Self {
        let scenario = run.scenario;
        let checks = sight.data.throughputs.iter();
        // Another site reaches the endpoint over another link.
        let is_ours = |site: Option<&str>| site.unwrap_or_default() == run.site();
        let rates = checks.filter(|check| {
            check.endpoint == scenario.endpoint
                && is_ours(check.site.as_deref())
                && check.failure.is_none()
        });
        let beside = sight
            .runs
            .iter()
            .filter(|one| one.scenario.endpoint == scenario.endpoint && one.site() == run.site());
        let traffic = beside.map(|one| (one.scenario.request_size.bytes(), one.experiment));
        let capacity = Capacity::of(&rates.collect::<Vec<_>>(), Traffic::of(traffic));
        #[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
        let asked = scenario.request_size.bytes() as f64 * 8.0 / scenario.interval.secs_f64();
        match capacity {
            Some(Capacity::Found(rate)) if asked >= OWN_LOAD * rate => Self::Own(asked / rate),
            Some(Capacity::Found(rate)) if asked <= NO_LOAD * rate => Self::Others(asked / rate),
            Some(Capacity::AtLeast(rate)) if asked <= NO_LOAD * rate => {
                Self::OthersMostly(asked / rate)
            }
            None | Some(Capacity::AtLeast(_)) if base < scenario.interval.millis_f64() => {
                Self::Strangers
            }
            None => Self::Unknown,
            Some(_) => Self::Uncertain,
        }
    }

    fn in_words(self) -> String {
        use crate::numbers::percent;
        match self {
            Self::Plan(load, calm) => format!(
                "The plan's load {load} does it, by its traffic or by the CPU that it takes: without it messages wait so for {}.",
                millis(calm)
            ),
            Self::PlanPerhaps(load) => {
                format!("The plan makes the load {load} meanwhile, which may well be it.")
            }
            Self::Own(share) => format!(
                "The messages fill it themselves: they ask for {} of what the link carries.",
                percent(share)
            ),
            Self::Others(share) => format!(
                "Others fill it: the messages ask for {} of what the link carries.",
                percent(share)
            ),
            Self::OthersMostly(share) => format!(
                "Others fill it: the messages ask for {} at most of what the link carries.",
                percent(share)
            ),
            Self::Strangers => {
                "Others fill it: each message alone is back before the next one goes.".to_owned()
            }
            Self::Uncertain => {
                "The throughput checks do not tell whether the messages or others fill it."
                    .to_owned()
            }
            Self::Unknown => {
                "Whether the messages or others fill it, a throughput check would tell.".to_owned()
            }
        }
    }

    fn remedy(self) -> String {
        let managed = "manage the queue before the bottleneck (fq_codel, CAKE, or CoDel), or shape bulk transfers a little below the link's rate; BBR for the bulk transfer fills it less";
        match self {
            Self::Plan(..) => "this is what sharing with the load costs: less of it, or, where it is traffic, a managed queue (fq_codel, CAKE) and, where it takes a guest's CPU, a CPU of its own".to_owned(),
            Self::PlanPerhaps(_) => measure_without(managed),
            Self::Own(_) => {
                "send less, or less often: the link carries no more; a shorter queue would lose messages instead of delaying them".to_owned()
            }
            Self::Others(_)
            | Self::OthersMostly(_)
            | Self::Strangers
            | Self::Uncertain
            | Self::Unknown => managed.to_owned(),
        }
    }
}
