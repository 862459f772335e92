//! Loss that no queue explains: corruption, a faulty cable or radio, or reordering that TCP treats as loss.
//! It occurs at any time, also with an empty queue.

use neph_model::{Outcome, Seq, Span, Transport};

use crate::data::{Exchange, RetransmissionCounts};
use crate::diagnosis::{
    Agreement, LoadAttribution, Need, NetworkTime, Rule, RuleInput, RuleResult, Run, SortedValues,
    is_by_load,
};
use crate::numbers::{millis, percent};
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "random-loss",
    title: "loss without a queue",
    limits: "The rule looks at the delay of messages just before a loss. It cannot distinguish corruption from a full queue of a few packets, nor, over TCP, loss from reordering by more than three segments. It does not evaluate links that one message fills for a long time.",
    covers: &[],
    needs: &[Need::Network, Need::TcpStatistics],
    evaluate,
};

/// Minimum number of losses: fewer show no pattern.
const MIN_LOSSES: usize = 5;
/// Minimum share of lost segments: less is usual on long paths.
const MIN_LOSS_SHARE: f64 = 0.0005;
/// A queue overflows only when it is full. The messages just before such a loss exceed the path by this many
/// milliseconds ...
const QUEUE_MS: f64 = 1.0;
/// ... and by this share of it.
const QUEUE_SHARE: f64 = 0.25;
/// Maximum share of losses that met a queue; above it, the loss is congestion ...
const MAX_CONGESTED_SHARE: f64 = 0.3;
/// ... unless the queue exists so often that this is expected. Random losses meet it as often as messages do,
/// within this many standard deviations ...
const RANDOM_DEVIATIONS: f64 = 2.0;
/// ... and never above this share: then the queue may be the cause.
const MAJORITY: f64 = 0.5;
/// Active queue management (CoDel) drops from a short queue. It is the cause if most losses met a delay of at
/// least [`QUEUE_MS`], and more often than messages do, by this many standard deviations.
const MANAGED_DEVIATIONS: f64 = 2.5;
/// Number of messages before a loss that show the queue. The fastest counts, because each may be affected
/// itself.
const MESSAGES_BEFORE_LOSS: usize = 3;
/// Seconds after which a message no longer shows the state of the queue.
const MAX_AGE_S: f64 = 2.0;
/// Delay with an empty queue: p10 of the messages.
const EMPTY_QUEUE_QUANTILE: f64 = 0.1;
/// An experiment whose faster messages met a queue too is left out. At least half of its messages may be
/// affected.
const FAST_QUANTILE: f64 = 0.25;
/// Segments that the client sends to open a connection ...
const SYN_SEGMENTS: u64 = 1;
/// ... and for TLS 1.2 or 1.3 on it: the client hello and the end of the handshake.
const TLS_SEGMENTS: u64 = 2;
/// Minimum share of datagrams whose replies are reordered.
const MIN_REORDERED_SHARE: f64 = 0.005;

/// The losses of a place.
#[derive(Default)]
struct Losses {
    /// Retransmitted segments, or lost datagrams.
    lost: usize,
    segments: usize,
    /// Losses whose preceding messages are known; consecutive ones (an outage) count once.
    evaluated: usize,
    with_queue: usize,
    /// Messages that were sent into a queue, of those for which this is known.
    messages_with_queue: usize,
    messages_with_delay: usize,
    /// The same for a queue of any length.
    with_any_queue: usize,
    messages_with_any_queue: usize,
    affected_responses: Vec<f64>,
    other_responses: Vec<f64>,
}

impl Losses {
    /// Adds an experiment; returns the messages that were affected.
    fn add_run(&mut self, run: &Run<'_>) -> Option<Vec<Seq>> {
        let base = run.sorted_network_times().quantile(EMPTY_QUEUE_QUANTILE)?;
        let path = run.min_path_rtt()?;
        let queue = QUEUE_MS.max(QUEUE_SHARE * path);
        if run.sorted_network_times().quantile(FAST_QUANTILE)? - path > queue {
            return None;
        }
        let mut affected = Vec::new();
        let is_datagram = run.flow.flow.probe.properties().transport == Transport::Udp;
        let mut was_affected = false;
        let messages = run.flow.retransmission_counts();
        // Segments that a stalled peer cannot accept are not lost on the path.
        let stalled = &run.stalls.waited;
        // For the last message, no later one shows whether its retransmission was spurious.
        let latest = run.flow.exchanges.last().map(|exchange| exchange.seq);
        let is_evaluated = |(exchange, counts): &(&Exchange, RetransmissionCounts)| {
            !stalled.contains(&exchange.seq)
                && (counts.is_first || is_datagram || Some(exchange.seq) != latest)
        };
        for (exchange, counts) in messages.filter(is_evaluated) {
            let before = delay_before(&run.network_times, exchange);
            let is_behind = before.map(|before| usize::from(before - base > queue));
            let is_behind_any = before.is_some_and(|before| before - base > QUEUE_MS);
            self.messages_with_delay += usize::from(is_behind.is_some());
            self.messages_with_any_queue += usize::from(is_behind_any);
            self.messages_with_queue += is_behind.unwrap_or(0);
            self.segments += segments_of(run, exchange, counts);
            let lost = usize::from(is_datagram && exchange.outcome == Outcome::Lost);
            let lost = lost + usize::try_from(counts.segments).unwrap_or(usize::MAX);
            let response = exchange.response.map(Span::millis_f64);
            let is_first = !std::mem::replace(&mut was_affected, lost > 0);
            if lost == 0 {
                self.other_responses.extend(response);
                continue;
            }
            self.lost += lost;
            self.affected_responses.extend(response);
            affected.push(exchange.seq);
            if !is_first {
                continue;
            }
            self.evaluated += usize::from(is_behind.is_some());
            self.with_queue += is_behind.unwrap_or(0);
            self.with_any_queue += usize::from(is_behind_any);
        }
        Some(affected)
    }

    fn share(&self) -> f64 {
        to_f64(self.lost) / to_f64(self.segments.max(1))
    }

    /// Whether the loss rate is more than twice as high, and the difference is significant.
    fn are_more_than(&self, calm: &Self) -> bool {
        let share = |losses: &Self| {
            neph_stats::proportion(losses.lost.min(losses.segments), losses.segments)
        };
        let (Ok(loaded_share), Ok(calm_share)) = (share(self), share(calm)) else {
            return false;
        };
        is_by_load(self.share(), calm.share())
            && calm_share.interval().high < loaded_share.interval().low
    }

    fn is_random(&self) -> bool {
        let by_chance = self
            .by_chance(self.messages_with_queue, RANDOM_DEVIATIONS)
            .min(MAJORITY);
        self.evaluated - self.with_queue >= MIN_LOSSES
            && self.share() >= MIN_LOSS_SHARE
            && to_f64(self.with_queue)
                <= MAX_CONGESTED_SHARE.max(by_chance) * to_f64(self.evaluated)
            && !self.is_managed()
    }

    /// Whether active queue management drops from a short queue.
    fn is_managed(&self) -> bool {
        let by_chance = self.by_chance(self.messages_with_any_queue, MANAGED_DEVIATIONS);
        to_f64(self.with_any_queue) > by_chance.max(MAJORITY) * to_f64(self.evaluated)
    }

    /// The expected share of random losses that meet a condition which so many messages meet, plus deviations.
    fn by_chance(&self, messages_with_condition: usize, deviations: f64) -> f64 {
        let share = to_f64(messages_with_condition) / to_f64(self.messages_with_delay.max(1));
        share + deviations * (share * (1.0 - share) / to_f64(self.evaluated.max(1))).sqrt()
    }

    fn added_latency_ms(&self) -> f64 {
        let median_of = |values: &[f64]| values.iter().copied().collect::<SortedValues>().median();
        let affected = median_of(&self.affected_responses);
        let difference = affected.zip(median_of(&self.other_responses));
        difference.map_or(0.0, |(affected, other)| (affected - other).max(0.0))
    }
}

/// Segments of a message whose loss leads to a retransmission. Includes those that open its connection, which
/// the connection's counter covers too. Unsent messages have none.
fn segments_of(run: &Run<'_>, exchange: &Exchange, counts: RetransmissionCounts) -> usize {
    let scenario = run.scenario;
    let tls = TLS_SEGMENTS * u64::from(scenario.target.is_secure());
    let kind = run.flow.flow.probe;
    let is_attempt = kind.properties().needs_reflector && !run.flow.flow.reflector;
    let opening = if !kind.uses_connection() || is_attempt {
        0
    } else {
        SYN_SEGMENTS + tls + u64::from(kind.properties().has_opening)
    };
    let segments = match exchange.outcome {
        Outcome::Failed if exchange.retransmissions.is_none() => 0,
        _ if counts.is_first => scenario.request_size.segments() + opening,
        _ => scenario.request_size.segments(),
    };
    usize::try_from(segments).unwrap_or(usize::MAX)
}

/// Network time of the fastest of the messages just before, in milliseconds.
fn delay_before(network_times: &[NetworkTime], lost: &Exchange) -> Option<f64> {
    let at = Span::from_nanos(lost.intended.nanos()).secs_f64();
    let end = network_times.partition_point(|network_time| network_time.seq < lost.seq);
    let before = network_times.get(end.checked_sub(MESSAGES_BEFORE_LOSS)?..end)?;
    let recent = before
        .iter()
        .filter(|network_time| at - network_time.at_s <= MAX_AGE_S);
    recent
        .map(|network_time| network_time.network_ms)
        .min_by(f64::total_cmp)
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs().into_iter();
    pairs
        .flat_map(|(pair, runs)| {
            let name = input.name(&pair);
            causes(&name, &runs)
                .into_iter()
                .chain(diagnose_reordering(&name, &runs))
        })
        .collect()
}

/// The root cause of a place; two if the plan's load causes additional loss.
fn causes(name: &str, runs: &[&Run<'_>]) -> Vec<RuleResult> {
    let is_loaded = |run: &&Run<'_>| run.scenario.stress().is_some();
    let (loaded, calm): (Vec<&Run<'_>>, Vec<&Run<'_>>) = runs.iter().copied().partition(is_loaded);
    let (with_load, without_load) = (LossObservations::of(&loaded), LossObservations::of(&calm));
    let results = match with_load.load() {
        Some(load) if calm.is_empty() => {
            vec![diagnose_group(
                name,
                &with_load,
                LoadAttribution::Unknown(load),
            )]
        }
        Some(load) if with_load.losses.are_more_than(&without_load.losses) => vec![
            diagnose_group(name, &without_load, LoadAttribution::NotLoad),
            diagnose_group(
                name,
                &with_load,
                LoadAttribution::Load(load, without_load.losses.share()),
            ),
        ],
        _ => vec![diagnose_group(
            name,
            &LossObservations::of(runs),
            LoadAttribution::NotLoad,
        )],
    };
    results.into_iter().flatten().collect()
}

/// Experiments with losses, and the affected messages.
struct LossObservations<'r> {
    losses: Losses,
    observed: Vec<(&'r Run<'r>, Vec<Seq>)>,
}

impl<'r> LossObservations<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let mut losses = Losses::default();
        let observed = runs
            .iter()
            .filter_map(|run| Some((*run, losses.add_run(run)?)))
            .collect();
        Self { losses, observed }
    }

    /// The plan's load under which most messages were affected.
    fn load(&self) -> Option<&'r str> {
        let worst = self.observed.iter().max_by_key(|(_, seqs)| seqs.len());
        worst.and_then(|(run, _)| run.scenario.stress())
    }
}

fn diagnose_group(
    name: &str,
    LossObservations { losses, observed }: &LossObservations<'_>,
    attribution: LoadAttribution<'_>,
) -> Option<RuleResult> {
    if !losses.is_random() {
        return None;
    }
    let confidence = Agreement {
        noun: "loss",
        observed: losses.evaluated - losses.with_queue,
        total: losses.evaluated,
        ratio: to_f64(losses.evaluated) / to_f64(MIN_LOSSES),
    };
    let mut confidence = confidence.confidence();
    confidence.why = format!(
        "{} of {} losses happened with an empty queue",
        losses.evaluated - losses.with_queue,
        losses.evaluated
    );
    let datagrams = observed
        .iter()
        .any(|(run, _)| run.flow.flow.probe.properties().transport == Transport::Udp);
    let (kind, retransmitted) = if datagrams {
        ("datagram", "lost")
    } else {
        ("segment", "retransmitted")
    };
    let added_latency_text = if losses.added_latency_ms() > 0.0 {
        format!(
            "; an affected message takes {} longer",
            millis(losses.added_latency_ms())
        )
    } else {
        String::new()
    };
    let cause = format!(
        "{name}: {}: {} of {} {retransmitted} ({}), {} of {} times with an empty queue just before{added_latency_text}.",
        mechanism(attribution),
        losses.lost,
        plural(losses.segments, kind),
        percent(losses.share()),
        losses.evaluated - losses.with_queue,
        losses.evaluated,
    );
    let mut result = RuleResult::new(cause, remedy(attribution), confidence)
        .with_added_latency(losses.added_latency_ms())
        .with("share lost or retransmitted", 100.0 * losses.share(), "%")
        .with("losses evaluated", to_f64(losses.evaluated), "losses")
        .with("losses with a queue", to_f64(losses.with_queue), "losses")
        .with("added by a loss", losses.added_latency_ms(), "ms");
    for (run, affected) in observed.iter().filter(|(_, affected)| !affected.is_empty()) {
        result = result.observed_at(run, affected);
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
    let load_remedy = "reduce the load, or enlarge the queue or socket buffer that drops packets";
    attribution.remedy(usual_remedy, load_remedy)
}

/// Datagrams whose replies are reordered.
fn diagnose_reordering(name: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let datagrams = |run: &&&Run<'_>| run.flow.flow.probe.properties().transport == Transport::Udp;
    let counts: Vec<(usize, usize)> = runs
        .iter()
        .filter(datagrams)
        .map(|run| count_reordered(run))
        .collect();
    let reordered: usize = counts.iter().map(|(reordered, _)| reordered).sum();
    let replies: usize = counts.iter().map(|(_, replied)| replied).sum();
    let share = to_f64(reordered) / to_f64(replies.max(1));
    if reordered < MIN_LOSSES || share < MIN_REORDERED_SHARE {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: counts
            .iter()
            .filter(|(count, replied)| to_f64(*count) >= MIN_REORDERED_SHARE * to_f64(*replied))
            .count(),
        total: counts.len(),
        ratio: share / MIN_REORDERED_SHARE,
    };
    let cause = format!(
        "{name}: the path reorders packets: {reordered} of {} arrived after a later one ({}). TCP treats a segment that is three segments late as lost and retransmits it.",
        plural(replies, "reply").replace("replys", "replies"),
        percent(share),
    );
    let remedy = "balance per flow (5-tuple hash), not per packet, and look for devices that process packets of a flow in parallel";
    let result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with_share("replies reordered", reordered, replies, "replies")
        .observed_in(runs.iter().copied());
    Some(result)
}

/// Number of replies that arrived after a later one's, and of all replies.
fn count_reordered(run: &Run<'_>) -> (usize, usize) {
    let exchanges = run.flow.exchanges.iter();
    let reordered = exchanges
        .clone()
        .filter(|exchange| exchange.reordered)
        .count();
    (
        reordered,
        exchanges
            .filter(|exchange| exchange.response.is_some())
            .count(),
    )
}
