//! Loss that no queue explains: corruption, a faulty cable or radio, or reordering that TCP treats as loss.
//! It occurs at any time, also with an empty queue.

use neph_model::{Outcome, Seq, Span, Transport};

use crate::data::{Exchange, Resent};
use crate::diagnosis::{
    Agreement, Crossing, LoadAttribution, Need, Ordered, Rule, RuleInput, RuleResult, Run,
    is_by_load,
};
use crate::numbers::{millis, percent};
use crate::text::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "random-loss",
    title: "loss without a queue",
    limits: "The rule looks at the delay of messages just before a loss. It cannot distinguish corruption from a full queue of a few packets, nor, over TCP, loss from reordering by more than three segments. It does not evaluate links that one message fills for a long time.",
    covers: &[],
    needs: &[Need::Network, Need::TcpStatistics],
    evaluate,
};

/// Minimum number of losses: fewer show no pattern.
const LOSSES: usize = 5;
/// Minimum share of lost segments: less is usual on long paths.
const MIN_SHARE: f64 = 0.0005;
/// A queue overflows only when it is full. The messages just before such a loss exceed the path by this many
/// milliseconds ...
const QUEUE_MS: f64 = 1.0;
/// ... and by this share of it.
const QUEUE_SHARE: f64 = 0.25;
/// Maximum share of losses that met a queue; above it, the loss is congestion ...
const CONGESTED: f64 = 0.3;
/// ... unless the queue exists so often that this is expected. Random losses meet it as often as messages do,
/// within this many standard deviations ...
const BY_CHANCE: f64 = 2.0;
/// ... and never above this share: then the queue may be the cause.
const MAJORITY: f64 = 0.5;
/// Active queue management (CoDel) drops from a short queue. It is the cause if most losses met a delay of at
/// least [`QUEUE_MS`], and more often than messages do, by this many standard deviations.
const BY_INTENT: f64 = 2.5;
/// Number of messages before a loss that show the queue. The fastest counts, because each may be affected
/// itself.
const BEFORE: usize = 3;
/// Seconds after which a message no longer shows the state of the queue.
const FRESH: f64 = 2.0;
/// Delay with an empty queue: p10 of the messages.
const EMPTY: f64 = 0.1;
/// An experiment whose faster messages met a queue too is left out. At least half of its messages may be
/// affected.
const MOSTLY: f64 = 0.25;
/// Segments that the client sends to open a connection ...
const SYN: u64 = 1;
/// ... and for TLS 1.2 or 1.3 on it: the client hello and the end of the handshake.
const TLS: u64 = 2;
/// Minimum share of datagrams whose replies are reordered.
const REORDERED: f64 = 0.005;

/// The losses of a place.
#[derive(Default)]
struct Losses {
    /// Retransmitted segments, or lost datagrams.
    lost: usize,
    segments: usize,
    /// Losses whose preceding messages are known; consecutive ones (an outage) count once.
    evaluated: usize,
    queued: usize,
    /// Messages that were sent into a queue, of those for which this is known.
    behind: usize,
    known: usize,
    /// The same for a queue of any length.
    upon_any: usize,
    behind_any: usize,
    hurt: Vec<f64>,
    unhurt: Vec<f64>,
}

impl Losses {
    /// Adds an experiment; returns the messages that were affected.
    fn add(&mut self, run: &Run<'_>) -> Option<Vec<Seq>> {
        let base = run.networks().at(EMPTY)?;
        let path = run.path()?;
        let queue = QUEUE_MS.max(QUEUE_SHARE * path);
        if run.networks().at(MOSTLY)? - path > queue {
            return None;
        }
        let mut hit = Vec::new();
        let is_datagram = run.flow.flow.probe.properties().transport == Transport::Udp;
        let mut was_hit = false;
        let judgeable = run.flow.resent();
        // Segments that a stalled peer cannot accept are not lost on the path.
        let stalled = &run.stalls.waited;
        // For the last message, no later one shows whether its retransmission was spurious.
        let latest = run.flow.exchanges.last().map(|exchange| exchange.seq);
        let is_judged = |(exchange, resent): &(&Exchange, Resent)| {
            !stalled.contains(&exchange.seq)
                && (resent.is_first || is_datagram || Some(exchange.seq) != latest)
        };
        for (exchange, resent) in judgeable.filter(is_judged) {
            let before = just_before(&run.crossings, exchange);
            let is_behind = before.map(|before| usize::from(before - base > queue));
            let is_behind_any = before.is_some_and(|before| before - base > QUEUE_MS);
            self.known += usize::from(is_behind.is_some());
            self.behind_any += usize::from(is_behind_any);
            self.behind += is_behind.unwrap_or(0);
            self.segments += sent(run, exchange, resent);
            let lost = usize::from(is_datagram && exchange.outcome == Outcome::Lost);
            let lost = lost + usize::try_from(resent.segments).unwrap_or(usize::MAX);
            let response = exchange.response.map(Span::millis_f64);
            let is_first = !std::mem::replace(&mut was_hit, lost > 0);
            if lost == 0 {
                self.unhurt.extend(response);
                continue;
            }
            self.lost += lost;
            self.hurt.extend(response);
            hit.push(exchange.seq);
            if !is_first {
                continue;
            }
            self.evaluated += usize::from(is_behind.is_some());
            self.queued += is_behind.unwrap_or(0);
            self.upon_any += usize::from(is_behind_any);
        }
        Some(hit)
    }

    fn share(&self) -> f64 {
        real(self.lost) / real(self.segments.max(1))
    }

    /// Whether the loss rate is more than twice as high, and the difference is significant.
    fn are_more_than(&self, calm: &Self) -> bool {
        let share = |losses: &Self| {
            neph_stats::proportion(losses.lost.min(losses.segments), losses.segments)
        };
        let (Ok(with), Ok(without)) = (share(self), share(calm)) else {
            return false;
        };
        is_by_load(self.share(), calm.share()) && without.interval().high < with.interval().low
    }

    fn is_random(&self) -> bool {
        let by_chance = self.by_chance(self.behind, BY_CHANCE).min(MAJORITY);
        self.evaluated - self.queued >= LOSSES
            && self.share() >= MIN_SHARE
            && real(self.queued) <= CONGESTED.max(by_chance) * real(self.evaluated)
            && !self.is_managed()
    }

    /// Whether active queue management drops from a short queue.
    fn is_managed(&self) -> bool {
        let by_chance = self.by_chance(self.behind_any, BY_INTENT);
        real(self.upon_any) > by_chance.max(MAJORITY) * real(self.evaluated)
    }

    /// The expected share of random losses that meet a condition which `met` messages meet, plus deviations.
    fn by_chance(&self, met: usize, deviations: f64) -> f64 {
        let share = real(met) / real(self.known.max(1));
        share + deviations * (share * (1.0 - share) / real(self.evaluated.max(1))).sqrt()
    }

    fn cost(&self) -> f64 {
        let middle = |values: &[f64]| values.iter().copied().collect::<Ordered>().median();
        let (hurt, unhurt) = (middle(&self.hurt), middle(&self.unhurt));
        hurt.zip(unhurt)
            .map_or(0.0, |(hurt, unhurt)| (hurt - unhurt).max(0.0))
    }
}

/// Segments of a message whose loss leads to a retransmission. Includes those that open its connection, which
/// the connection's counter covers too. Unsent messages have none.
fn sent(run: &Run<'_>, exchange: &Exchange, resent: Resent) -> usize {
    let scenario = run.scenario;
    let tls = if scenario.target.is_secure() { TLS } else { 0 };
    let kind = run.flow.flow.probe;
    let is_attempt = kind.properties().needs_reflector && !run.flow.flow.reflector;
    let opening = if !kind.uses_connection() || is_attempt {
        0
    } else {
        SYN + tls + u64::from(kind.properties().has_opening)
    };
    let segments = match exchange.outcome {
        Outcome::Failed if exchange.retransmissions.is_none() => 0,
        _ if resent.is_first => scenario.request_size.segments() + opening,
        _ => scenario.request_size.segments(),
    };
    usize::try_from(segments).unwrap_or(usize::MAX)
}

/// Network time of the fastest of the messages just before, in milliseconds.
fn just_before(crossings: &[Crossing], hit: &Exchange) -> Option<f64> {
    let at = Span::from_nanos(hit.intended.nanos()).secs_f64();
    let end = crossings.partition_point(|crossing| crossing.seq < hit.seq);
    let before = crossings.get(end.checked_sub(BEFORE)?..end)?;
    let fresh = before.iter().filter(|crossing| at - crossing.at <= FRESH);
    fresh
        .map(|crossing| crossing.network)
        .min_by(f64::total_cmp)
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs().into_iter();
    pairs
        .flat_map(|(pair, runs)| {
            let name = input.name(&pair);
            causes(&name, &runs)
                .into_iter()
                .chain(overtaking(&name, &runs))
        })
        .collect()
}

/// The root cause of a place; two if the plan's load causes additional loss.
fn causes(name: &str, runs: &[&Run<'_>]) -> Vec<RuleResult> {
    let is_loaded = |run: &&Run<'_>| run.scenario.stress().is_some();
    let (loaded, calm): (Vec<&Run<'_>>, Vec<&Run<'_>>) = runs.iter().copied().partition(is_loaded);
    let (with, without) = (Lossy::of(&loaded), Lossy::of(&calm));
    let results = match with.load() {
        Some(load) if calm.is_empty() => {
            vec![diagnose_group(name, &with, LoadAttribution::Unknown(load))]
        }
        Some(load) if with.all.are_more_than(&without.all) => vec![
            diagnose_group(name, &without, LoadAttribution::NotLoad),
            diagnose_group(
                name,
                &with,
                LoadAttribution::Load(load, without.all.share()),
            ),
        ],
        _ => vec![diagnose_group(
            name,
            &Lossy::of(runs),
            LoadAttribution::NotLoad,
        )],
    };
    results.into_iter().flatten().collect()
}

/// Experiments with losses, and the affected messages.
struct Lossy<'r> {
    all: Losses,
    observed: Vec<(&'r Run<'r>, Vec<Seq>)>,
}

impl<'r> Lossy<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let mut losses = Losses::default();
        let observed = runs
            .iter()
            .filter_map(|run| Some((*run, losses.add(run)?)))
            .collect();
        Self {
            all: losses,
            observed,
        }
    }

    /// The plan's load under which most messages were affected.
    fn load(&self) -> Option<&'r str> {
        let worst = self.observed.iter().max_by_key(|(_, hit)| hit.len());
        worst.and_then(|(run, _)| run.scenario.stress())
    }
}

fn diagnose_group(
    name: &str,
    Lossy { all, observed }: &Lossy<'_>,
    attribution: LoadAttribution<'_>,
) -> Option<RuleResult> {
    if !all.is_random() {
        return None;
    }
    let confidence = Agreement {
        noun: "loss",
        shown: all.evaluated - all.queued,
        of: all.evaluated,
        ratio: real(all.evaluated) / real(LOSSES),
    };
    let mut confidence = confidence.confidence();
    confidence.why = format!(
        "{} of {} losses happened with an empty queue",
        all.evaluated - all.queued,
        all.evaluated
    );
    let datagrams = observed
        .iter()
        .any(|(run, _)| run.flow.flow.probe.properties().transport == Transport::Udp);
    let (kind, retransmitted) = if datagrams {
        ("datagram", "lost")
    } else {
        ("segment", "retransmitted")
    };
    let paid = if all.cost() > 0.0 {
        format!("; an affected message takes {} longer", millis(all.cost()))
    } else {
        String::new()
    };
    let cause = format!(
        "{name}: {}: {} of {} {retransmitted} ({}), {} of {} times with an empty queue just before{paid}.",
        mechanism(attribution),
        all.lost,
        plural(all.segments, kind),
        percent(all.share()),
        all.evaluated - all.queued,
        all.evaluated,
    );
    let mut result = RuleResult::new(cause, remedy(attribution), confidence)
        .with_added_latency(all.cost())
        .with("lost or retransmitted", all.share(), "")
        .with("losses evaluated", real(all.evaluated), "losses")
        .with("losses with a queue", real(all.queued), "losses")
        .with("added by a loss", all.cost(), "ms");
    for (run, hit) in observed.iter().filter(|(_, hit)| !hit.is_empty()) {
        result = result.observed_at(run, hit);
    }
    Some(result)
}

fn mechanism(attribution: LoadAttribution<'_>) -> String {
    match attribution {
        LoadAttribution::NotLoad => {
            "the path loses or corrupts packets, and no queue causes it".to_owned()
        }
        LoadAttribution::Load(load, calm) => format!(
            "packets are lost under a background load, most of them under {load}, and {} without one: the load causes it, though no queue is visible",
            percent(calm)
        ),
        LoadAttribution::Unknown(load) => format!(
            "the path loses or corrupts packets without a visible queue, under a background load ({load})"
        ),
    }
}

fn remedy(attribution: LoadAttribution<'_>) -> String {
    let usual_remedy = "check the error counters of the interfaces on the path (cable, optics, radio); a nearer endpoint, forward error correction or duplicate sending reduces the effect";
    let of_load = "reduce the load, or enlarge the queue or socket buffer that drops packets";
    attribution.remedy(usual_remedy, of_load)
}

/// Datagrams whose replies are reordered.
fn overtaking(name: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let datagrams = |run: &&&Run<'_>| run.flow.flow.probe.properties().transport == Transport::Udp;
    let counts: Vec<(usize, usize)> = runs
        .iter()
        .filter(datagrams)
        .map(|run| out_of_order(run))
        .collect();
    let reordered: usize = counts.iter().map(|(late, _)| late).sum();
    let replies: usize = counts.iter().map(|(_, replied)| replied).sum();
    let share = real(reordered) / real(replies.max(1));
    if reordered < LOSSES || share < REORDERED {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        shown: counts
            .iter()
            .filter(|(late, replied)| real(*late) >= REORDERED * real(*replied))
            .count(),
        of: counts.len(),
        ratio: share / REORDERED,
    };
    let cause = format!(
        "{name}: the path reorders packets: {reordered} of {} arrived after a later one ({}). TCP treats a segment that is three segments late as lost and retransmits it.",
        plural(replies, "reply").replace("replys", "replies"),
        percent(share),
    );
    let remedy = "balance per flow (5-tuple hash), not per packet, and look for devices that process packets of a flow in parallel";
    let result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with("replies reordered", share, "")
        .observed_in(runs.iter().copied());
    Some(result)
}

/// Number of replies that arrived after a later one's, and of all replies.
fn out_of_order(run: &Run<'_>) -> (usize, usize) {
    let exchanges = run.flow.exchanges.iter();
    let late = exchanges
        .clone()
        .filter(|exchange| exchange.reordered)
        .count();
    (
        late,
        exchanges
            .filter(|exchange| exchange.response.is_some())
            .count(),
    )
}
