//! Bufferbloat: a queue on the path fills for seconds and drains. Its delay is many times the path's delay.

mod raised;

use neph_model::{Seq, Stage};

use crate::diagnosis::{
    Agreement, LoadAttribution, Need, NetworkTime, Rule, RuleInput, RuleResult, Run, SitePair,
    SortedValues, Stall, measure_without,
};
use crate::findings::capacity::{Capacity, Traffic};
use crate::numbers::millis;
use crate::text::to_f64;
use raised::longest_stretch;

pub(crate) const RULE: Rule = Rule {
    name: "bufferbloat",
    title: "bufferbloat",
    limits: "The rule detects that a queue fills, not where. It compares the rate of the messages with the rate of the link to find out who fills the queue. A queue that is full during the whole experiment looks like a longer path.",
    covers: &["transmission"],
    needs: &[Need::Replies(MIN_MESSAGES), Need::Network],
    evaluate,
};

/// Smallest queueing delay that is reported, in milliseconds: real-time media notice it ...
const MIN_DELAY_MS: f64 = 5.0;
/// ... and its smallest multiple of the path's round trip.
const MIN_DELAY_SHARE: f64 = 0.5;
/// Minimum duration of a stretch in seconds: shorter ones are bursts, not a standing queue ...
const MIN_SECONDS: f64 = 0.8;
/// ... and its minimum number of messages.
const MIN_MESSAGES: usize = 6;
/// Values above p95 are ignored: retransmitted replies cannot be recognised.
const HIGH_QUANTILE: f64 = 0.95;
/// Delay with an empty queue: p10 of the messages.
const EMPTY_QUEUE_QUANTILE: f64 = 0.1;
/// Outside the stretch at least this share of the messages must have met an empty queue. Otherwise the path
/// may simply be long.
const MIN_IDLE_SHARE: f64 = 0.1;
/// A queue fills and drains; a longer path does not. The p10 to p90 range of the delay must exceed the range
/// outside the stretch by this share of the added delay ...
const MIN_SPREAD: f64 = 0.12;
/// ... and if it exceeds it by less than this share, filling or draining must be visible too ...
const MIN_SPREAD_WITHOUT_EDGE: f64 = 0.25;
/// ... in messages near the stretch's edges that took between these shares of the added delay.
const EDGE_SHARES: std::ops::Range<f64> = 0.15..0.7;
/// In about a dozen messages the range may exceed the path's jitter by this factor at random.
const RANDOM_SPREAD_FACTOR: f64 = 1.5;
/// A stretch that is not longer than this many stalls of the peer is a stall.
const MAX_STALL_RATIO: f64 = 1.5;
/// The local delay must be below this share of the queueing delay.
const MAX_LOCAL_SHARE: f64 = 0.1;
/// Share of the link's rate from which the messages themselves fill the queue; below it they cannot.
const MIN_OWN_LOAD: f64 = 0.9;
const MAX_MINOR_LOAD: f64 = 0.5;

/// A stretch of increased delay.
struct QueuePeriod {
    from: f64,
    to: f64,
    base: f64,
    /// Median delay within the stretch, in milliseconds.
    median: f64,
    max: f64,
    messages: Vec<Seq>,
    /// Median of the ICMP echoes alongside, in the stretch and outside; `None` if there are too few.
    echo_times: Option<(f64, f64)>,
}

impl QueuePeriod {
    fn added(&self) -> f64 {
        self.median - self.base
    }

    fn ratio(&self) -> f64 {
        self.added() / threshold(self.base)
    }

    /// Whether the echoes did not wait in the queue: they have priority or take another path.
    fn is_bypassed_by_echoes(&self) -> bool {
        self.echo_times
            .is_some_and(|(inside, outside)| inside - outside < 0.25 * self.added())
    }

    fn echoes_text(&self) -> String {
        let Some((inside, outside)) = self.echo_times else {
            return String::new();
        };
        let numbers = format!("{} instead of {}", millis(inside), millis(outside));
        if self.is_bypassed_by_echoes() {
            format!(
                " ICMP echoes do not wait in it ({numbers}): they have priority or take another path, so ping does not show the queue."
            )
        } else {
            format!(" ICMP echoes wait in it too ({numbers}).")
        }
    }
}

fn threshold(base: f64) -> f64 {
    MIN_DELAY_MS.max(MIN_DELAY_SHARE * base)
}

/// The longest stretch of an experiment in which its messages met a queue.
fn queue_period(run: &Run<'_>) -> Option<QueuePeriod> {
    // A retransmitted message includes its retransmission delay. It does not show the level of a queue.
    let first_copies = run
        .network_times
        .iter()
        .filter(|time| !time.has_retransmission);
    let network_times: Vec<NetworkTime> = first_copies.copied().collect();
    let base = run.sorted_network_times().quantile(EMPTY_QUEUE_QUANTILE)?;
    let is_delayed = |network_time: &NetworkTime| network_time.network_ms > base + threshold(base);
    let (from, to) = longest_stretch(&network_times.iter().map(is_delayed).collect::<Vec<bool>>())?;
    let inside = network_times.get(from..=to)?;
    let (first, last) = (inside.first()?, inside.last()?);
    let outside: Vec<&NetworkTime> = network_times[..from]
        .iter()
        .chain(&network_times[to + 1..])
        .collect();
    let undelayed: Vec<&NetworkTime> = outside
        .into_iter()
        .filter(|network_time| !is_delayed(network_time))
        .collect();
    let undelayed_times: SortedValues = undelayed.iter().map(|time| time.network_ms).collect();
    let times: SortedValues = inside.iter().map(|time| time.network_ms).collect();
    let period = QueuePeriod {
        from: first.at_s,
        to: last.at_s,
        base,
        median: times.median()?,
        max: times.quantile(HIGH_QUANTILE)?,
        messages: inside.iter().map(|network_time| network_time.seq).collect(),
        echo_times: echo_times(run, (first.at_s, last.at_s)),
    };
    let jitter = undelayed_times.spread()?;
    let spread = times.spread()? - RANDOM_SPREAD_FACTOR * jitter;
    let edges = [from, to].map(|index| messages_around(&network_times, index));
    let edge_range = (base + 2.0 * jitter).max(base + EDGE_SHARES.start * period.added())
        ..base + EDGE_SHARES.end * period.added();
    let mut edges = edges.into_iter().flatten();
    let fills_and_drains = spread >= MIN_SPREAD_WITHOUT_EDGE * period.added()
        || (spread >= MIN_SPREAD * period.added()
            && edges.any(|network_time| edge_range.contains(&network_time.network_ms)));
    // If the peer stalls repeatedly, a single stall may differ from the others.
    let stalls = run.stalls.peer.stalls.iter();
    let longest = stalls.map(Stall::length).fold(0.0, f64::max);
    let is_stall = 1e3 * (last.at_s - first.at_s) <= MAX_STALL_RATIO * longest;
    let is_long = last.at_s - first.at_s >= MIN_SECONDS && inside.len() >= MIN_MESSAGES;
    let is_mostly_idle = to_f64(undelayed.len()) >= MIN_IDLE_SHARE * to_f64(network_times.len());
    (fills_and_drains && is_long && is_mostly_idle && !is_stall && is_not_local(run, &period))
        .then_some(period)
}

/// The messages around the first or last message of a stretch.
fn messages_around(network_times: &[NetworkTime], index: usize) -> &[NetworkTime] {
    const NEIGHBOURS: usize = 2;
    let end = (index + NEIGHBOURS + 1).min(network_times.len());
    &network_times[index.saturating_sub(NEIGHBOURS)..end]
}

/// Whether the client host was not the cause: its stages in the stretch are negligible.
fn is_not_local(run: &Run<'_>, queue_period: &QueuePeriod) -> bool {
    let (Some(first), Some(last)) = (queue_period.messages.first(), queue_period.messages.last())
    else {
        return false;
    };
    let inside = run
        .replies()
        .filter(|(exchange, _)| (first..=last).contains(&&exchange.seq));
    let local_delay: SortedValues = inside
        .map(|(_, times)| times.sum(&[Stage::Lateness, Stage::OwnKernel]))
        .collect();
    local_delay
        .median()
        .is_some_and(|local_delay| local_delay <= MAX_LOCAL_SHARE * queue_period.added())
}

fn echo_times(run: &Run<'_>, (from, to): (f64, f64)) -> Option<(f64, f64)> {
    const MIN_ECHOES: usize = 3;
    let flow = run.experiment.companion()?;
    let echoes = flow.exchanges.iter().filter_map(|exchange| {
        let at = neph_model::Span::from_nanos(exchange.intended.nanos()).secs_f64();
        Some((at, flow.round_trip(exchange)?.millis_f64()))
    });
    let (inside, outside): (Vec<_>, Vec<_>) = echoes.partition(|(at, _)| (from..=to).contains(at));
    let median_of = |timed_echoes: Vec<(f64, f64)>| {
        let times: SortedValues = timed_echoes.into_iter().map(|(_, time)| time).collect();
        (times.len() >= MIN_ECHOES)
            .then(|| times.median())
            .flatten()
    };
    median_of(inside).zip(median_of(outside))
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs().into_iter();
    pairs
        .flat_map(|(pair, runs)| {
            let observed = runs
                .iter()
                .filter_map(|run| Some((*run, queue_period(run)?)));
            // Separates effects of the plan's load from effects that exist without it.
            let (not_by_load, by_load): (Vec<_>, Vec<_>) =
                observed.partition(|(run, queue_period)| {
                    !attribute_effect(input, run, queue_period).is_load()
                });
            [not_by_load, by_load].map(|observed| diagnose_group(input, &pair, &runs, &observed))
        })
        .flatten()
        .collect()
}

fn attribute_effect<'a>(
    input: &RuleInput<'a>,
    run: &Run<'a>,
    observed: &QueuePeriod,
) -> LoadAttribution<'a> {
    input.attribute_effect(run, observed.added(), |calm| {
        let calm = calm.iter().map(|run| queue_period(run));
        calm.map(|period| period.map_or(0.0, |period| period.added()))
            .max_by(f64::total_cmp)
    })
}

fn diagnose_group<'a>(
    input: &RuleInput<'a>,
    pair: &SitePair,
    runs: &[&Run<'a>],
    observed: &[(&Run<'a>, QueuePeriod)],
) -> Option<RuleResult> {
    let (run, worst) = observed
        .iter()
        .max_by(|(_, a), (_, b)| a.added().total_cmp(&b.added()))?;
    let is_same = |other: &&Run<'_>| other.scenario.index == run.scenario.index;
    let identical = runs.iter().filter(|other| is_same(other));
    let affected = observed.iter().filter(|(other, _)| is_same(other));
    let confidence = Agreement {
        noun: "experiment",
        observed: affected.count(),
        total: identical.count(),
        ratio: worst.ratio(),
    };
    let mut confidence = confidence.confidence();
    if worst.is_bypassed_by_echoes() {
        confidence.level = confidence.level.one_lower();
        confidence.why.push_str("; ICMP echoes did not wait in it");
    }
    let shared = worst.echoes_text();
    let queue_cause = QueueCause::of(input, run, worst);
    let cause = format!(
        "{}: a queue on the path fills between {:.1} s and {:.1} s ({}) and drains again. Network time is {} at the median and {} at p95, without the queue {}.{shared} {}",
        input.name(pair),
        worst.from,
        worst.to,
        run.scenario.label(),
        millis(worst.median),
        millis(worst.max),
        millis(worst.base),
        queue_cause.to_text(),
    );
    let mut result = RuleResult::new(cause, queue_cause.remedy(), confidence)
        .with_added_latency(worst.added())
        .with("network time without the queue", worst.base, "ms")
        .with("median while the queue is full", worst.median, "ms")
        .with("p95 while the queue is full", worst.max, "ms")
        .with("from", worst.from, "s")
        .with("to", worst.to, "s");
    if let Some((inside, outside)) = worst.echo_times {
        result = result.with("ICMP echo while the queue is full", inside, "ms");
        result = result.with("ICMP echo otherwise", outside, "ms");
    }
    for (run, queue_period) in observed {
        result = result.explaining(run, queue_period.added());
        result = result.observed_at(run, &queue_period.messages);
    }
    Some(result)
}

/// What fills the queue, according to the throughput checks and the plan's load.
#[derive(Clone, Copy)]
enum QueueCause<'s> {
    /// The plan's load: without it messages wait for this many milliseconds.
    PlanLoad(&'s str, f64),
    /// Possibly the plan's load: the plan measures nothing without it.
    PossiblyPlanLoad(&'s str),
    /// The messages: they need this share of the link's rate, possibly above 1.
    OwnMessages(f64),
    /// Other traffic: the messages need only this share of the link's rate.
    OtherTraffic(f64),
    /// Other traffic: the messages need this share of the link's minimum rate.
    MostlyOtherTraffic(f64),
    /// Other traffic: each message has its reply before the next one is sent. If the messages exceeded the
    /// link's rate, their serialisation alone would take longer than the interval.
    RepliesBeforeNextMessage,
    Unknown,
    /// Unknown: the messages need much of the measured rate, or the checks did not fill the link.
    Uncertain,
}

impl<'s> QueueCause<'s> {
    fn of(input: &RuleInput<'s>, run: &Run<'s>, worst: &QueuePeriod) -> Self {
        let by_rate = Self::by_needed_rate(input, run, worst.base);
        match (attribute_effect(input, run, worst), by_rate) {
            (LoadAttribution::Load(load, calm), _) => Self::PlanLoad(load, calm),
            (LoadAttribution::Unknown(load), by_rate)
                if !matches!(by_rate, Self::OwnMessages(_)) =>
            {
                Self::PossiblyPlanLoad(load)
            }
            _ => by_rate,
        }
    }

    /// Decides by the rate that the messages need.
    fn by_needed_rate(input: &RuleInput<'_>, run: &Run<'_>, base: f64) -> Self {
        let scenario = run.scenario;
        let checks = input.data.throughputs.iter();
        // Another site reaches the endpoint over another link.
        let is_same_site = |site: Option<&str>| site.unwrap_or_default() == run.site();
        let rates = checks.filter(|check| {
            check.endpoint == scenario.endpoint
                && is_same_site(check.site.as_deref())
                && check.failure.is_none()
        });
        let on_same_path = input.runs.iter().filter(|other| {
            other.scenario.endpoint == scenario.endpoint && other.site() == run.site()
        });
        let traffic =
            on_same_path.map(|other| (other.scenario.request_size.bytes(), other.experiment));
        let capacity = Capacity::of(&rates.collect::<Vec<_>>(), Traffic::of(traffic));
        #[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
        let needed_rate = scenario.request_size.bytes() as f64 * 8.0 / scenario.interval.secs_f64();
        match capacity {
            Some(Capacity::Measured(rate)) if needed_rate >= MIN_OWN_LOAD * rate => {
                Self::OwnMessages(needed_rate / rate)
            }
            Some(Capacity::Measured(rate)) if needed_rate <= MAX_MINOR_LOAD * rate => {
                Self::OtherTraffic(needed_rate / rate)
            }
            Some(Capacity::AtLeast(rate)) if needed_rate <= MAX_MINOR_LOAD * rate => {
                Self::MostlyOtherTraffic(needed_rate / rate)
            }
            None | Some(Capacity::AtLeast(_)) if base < scenario.interval.millis_f64() => {
                Self::RepliesBeforeNextMessage
            }
            None => Self::Unknown,
            Some(_) => Self::Uncertain,
        }
    }

    fn to_text(self) -> String {
        use crate::numbers::percent;
        match self {
            Self::PlanLoad(load, calm) => format!(
                "The background load {load} causes it, by its traffic or its CPU time: without the load messages wait {}.",
                millis(calm)
            ),
            Self::PossiblyPlanLoad(load) => {
                format!("The background load {load} may cause it.")
            }
            Self::OwnMessages(share) => format!(
                "The messages fill it: their rate is {} of the link's.",
                percent(share)
            ),
            Self::OtherTraffic(share) => format!(
                "Other traffic fills it: the rate of the messages is {} of the link's.",
                percent(share)
            ),
            Self::MostlyOtherTraffic(share) => format!(
                "Other traffic fills it: the rate of the messages is at most {} of the link's.",
                percent(share)
            ),
            Self::RepliesBeforeNextMessage => {
                "Other traffic fills it: each reply arrives before the next message is sent."
                    .to_owned()
            }
            Self::Uncertain => {
                "The throughput checks do not show whether the messages or other traffic fill it."
                    .to_owned()
            }
            Self::Unknown => {
                "A throughput check would show whether the messages or other traffic fill it."
                    .to_owned()
            }
        }
    }

    fn remedy(self) -> String {
        let managed = "use active queue management before the bottleneck (fq_codel, CAKE or CoDel), shape bulk transfers slightly below the link's rate, or use BBR for them";
        match self {
            Self::PlanLoad(..) => "reduce the load; for traffic use active queue management (fq_codel, CAKE), for a guest's CPU dedicated cores".to_owned(),
            Self::PossiblyPlanLoad(_) => measure_without(managed),
            Self::OwnMessages(_) => {
                "send fewer bytes or fewer messages: the link is full; a shorter queue would drop messages instead".to_owned()
            }
            _ => managed.to_owned(),
        }
    }
}
