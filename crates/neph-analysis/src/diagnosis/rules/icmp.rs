//! ICMP is treated differently. Echoes use another path or priority, or reach another host, so that ping does
//! not show the RTT of the messages.

use crate::diagnosis::{
    Agreement, Need, Rule, RuleInput, RuleResult, Run, SortedValues, measure_without,
};
use crate::numbers::{millis, percent};
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "icmp-differs",
    title: "ICMP treated differently",
    limits: "The rule compares the minimum RTT of ICMP echoes with that of TCP (for UDP: of small datagrams), over equal numbers of both. It does not show whether a router prioritises one of them, routes them differently or answers for the host.",
    covers: &[],
    needs: &[Need::Echoes],
    evaluate,
};

/// Kernels answer echo and TCP: they differ by less than this many milliseconds ...
const MIN_DIFFERENCE_MS: f64 = 0.4;
/// ... and by less than this share of the faster one.
const MIN_DIFFERENCE_SHARE: f64 = 0.08;
/// The differences are consistent if those of all experiments lie within this share of their middle.
const MAX_SPREAD_SHARE: f64 = 0.5;
/// With fewer echoes the minimum is not yet that of the path.
const MIN_ECHOES: usize = 5;
/// A larger datagram takes longer than an echo because of its size.
const MAX_DATAGRAM_BYTES: u64 = 256;
/// Minimum difference between the loss of echoes and of messages, if echoes are dropped on purpose.
const MIN_LOSS_DIFFERENCE: f64 = 0.05;

/// A difference with a higher probability at random is not reported.
const MAX_RANDOM_PROBABILITY: f64 = 0.01;

/// The result of an experiment.
#[derive(Clone, Copy)]
struct RttComparison {
    /// Least round trip of the echoes, of as many as there are messages if these are fewer.
    echo_ms: f64,
    /// Least round trip of as many messages as there are echoes.
    message_ms: f64,
    /// How much slower echoes are than randomness explains, in milliseconds; negative if they are faster.
    significant_ms: f64,
    is_tcp: bool,
}

impl RttComparison {
    fn of(run: &Run<'_>) -> Option<Self> {
        let (echoes, messages) = (run.echoes_outside_stalls(), run.sorted_network_times());
        let is_small = run.scenario.request_size.bytes() <= MAX_DATAGRAM_BYTES;
        let datagram_ms = messages.min().filter(|_| is_small);
        let tcp_ms = run.min_tcp_rtt();
        let (echo_ms, message_ms) = (echoes.min()?, tcp_ms.or(datagram_ms)?);
        let (echo_count, message_count) =
            (echoes.len(), messages.len().max(run.flow.exchanges.len()));
        // The handshake precedes the load that the plan generates.
        let under_load_ms = run.scenario.stress().and_then(|_| messages.min());
        let max_message_ms = under_load_ms.map_or(message_ms, |min| message_ms.max(min));
        let bias_ms = |round_trips: &SortedValues, count: usize| {
            sampling_bias_ms(round_trips, count, MAX_RANDOM_PROBABILITY)
        };
        let echo_limit_ms = max_message_ms + bias_ms(&messages, echo_count);
        let message_limit_ms = echo_ms + bias_ms(&echoes, message_count);
        let significant_ms = if echo_ms > echo_limit_ms {
            echo_ms - echo_limit_ms
        } else {
            (message_limit_ms - message_ms).min(0.0)
        };
        (echo_count >= MIN_ECHOES).then(|| Self {
            echo_ms: echo_ms + sampling_bias_ms(&echoes, message_count, 0.5),
            message_ms: message_ms + sampling_bias_ms(&messages, echo_count, 0.5),
            significant_ms,
            is_tcp: tcp_ms.is_some(),
        })
    }

    fn added_ms(self) -> f64 {
        self.echo_ms - self.message_ms
    }

    fn ratio(self) -> f64 {
        let faster_ms = self.echo_ms.min(self.message_ms);
        self.significant_ms.abs() / MIN_DIFFERENCE_MS.max(MIN_DIFFERENCE_SHARE * faster_ms)
    }
}

/// Difference between the minimum of `count` values and that of all, exceeded with this probability.
/// With a variable queue, 20 values rarely meet a moment as empty as the emptiest that 400 meet.
fn sampling_bias_ms(round_trips: &SortedValues, count: usize, probability: f64) -> f64 {
    let share = 1.0 - probability.powf(1.0 / to_f64(count.max(1)));
    let bias_ms = |min: f64| Some(round_trips.quantile(share)? - min);
    round_trips.min().and_then(bias_ms).unwrap_or(0.0)
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let mut results = Vec::new();
    // Another path and a rate limit on echoes may both exist. Effects of load on echoes are neither.
    for (pair, runs) in input.pairs_without_load() {
        let name = input.name(&pair);
        results.extend(diagnose_echo_rtt(&name, &runs));
        results.extend(diagnose_echo_loss(&name, &runs));
    }
    results
}

fn diagnose_echo_rtt(name: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let observed: Vec<(&Run<'_>, RttComparison)> = runs
        .iter()
        .filter_map(|run| Some((*run, RttComparison::of(run)?)))
        .collect();
    let sorted_values_of = |value: fn(RttComparison) -> f64| {
        let values = observed.iter().map(|(_, comparison)| value(*comparison));
        values.collect::<SortedValues>()
    };
    let added_ms = sorted_values_of(RttComparison::added_ms);
    let (ratios, median_added_ms) = (sorted_values_of(RttComparison::ratio), added_ms.median()?);
    let spread_ms = added_ms.max()? - added_ms.min()?;
    if ratios.min()? < 1.0 || spread_ms > MAX_SPREAD_SHARE * median_added_ms.abs() {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: observed.len(),
        total: observed.len(),
        ratio: ratios.median()?,
    };
    let mut confidence = confidence.confidence();
    let mut remedy =
        "do not judge this path by ping; measure with the protocol of the application".to_owned();
    if observed
        .iter()
        .all(|(run, _)| run.scenario.stress().is_some())
    {
        confidence.level = confidence.level.one_lower();
        remedy = measure_without(&remedy);
    }
    let (echo_ms, message_ms) = (
        sorted_values_of(|comparison| comparison.echo_ms).median()?,
        sorted_values_of(|comparison| comparison.message_ms).median()?,
    );
    let comparison = if median_added_ms > 0.0 {
        "slower"
    } else {
        "faster"
    };
    let protocol = if observed.iter().all(|(_, comparison)| comparison.is_tcp) {
        "TCP"
    } else if observed.iter().any(|(_, comparison)| comparison.is_tcp) {
        "TCP and the messages"
    } else {
        "the messages"
    };
    let cause = format!(
        "{name}: minimum ICMP RTT {}, minimum {protocol} RTT {}: ICMP is {} {comparison}, in {}.",
        millis(echo_ms),
        millis(message_ms),
        millis(median_added_ms.abs()),
        experiments_text(observed.len()),
    );
    let result = RuleResult::new(cause, remedy, confidence)
        .with("fastest echo", echo_ms, "ms")
        .with("fastest message", message_ms, "ms")
        .with("difference", median_added_ms, "ms")
        .observed_in(observed.iter().map(|(run, _)| *run));
    Some(result)
}

/// States that all experiments show it.
fn experiments_text(experiments: usize) -> String {
    match experiments {
        1 => "the only experiment with enough data".to_owned(),
        2 => "both experiments".to_owned(),
        count => format!("all {count} experiments"),
    }
}

/// Echoes are lost and messages are not.
fn diagnose_echo_loss(name: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let (mut lost_echoes, mut sent_echoes, mut lost_messages, mut messages) = (0, 0, 0, 0);
    let mut are_echoes_lost_more: Vec<bool> = Vec::new();
    for run in runs {
        let Some(flow) = run.experiment.companion() else {
            continue;
        };
        let echo_counts = (flow.lost(), flow.exchanges.len() - flow.failed());
        let retransmissions = run.flow.retransmissions().len();
        let message_counts = (
            run.flow.lost() + retransmissions,
            run.flow.exchanges.len() - run.flow.failed(),
        );
        let share = |(part, total): (usize, usize)| to_f64(part) / to_f64(total.max(1));
        let difference = share(echo_counts) - share(message_counts);
        are_echoes_lost_more.push(difference >= MIN_LOSS_DIFFERENCE);
        (lost_echoes, sent_echoes) = (lost_echoes + echo_counts.0, sent_echoes + echo_counts.1);
        (lost_messages, messages) = (
            lost_messages + message_counts.0,
            messages + message_counts.1,
        );
    }
    let echo_loss = neph_stats::proportion(lost_echoes, sent_echoes).ok()?;
    let message_loss = neph_stats::proportion(lost_messages, messages).ok()?;
    let significant_share = echo_loss.interval().low - message_loss.interval().high;
    if significant_share < MIN_LOSS_DIFFERENCE {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: are_echoes_lost_more
            .iter()
            .filter(|is_more| **is_more)
            .count(),
        total: are_echoes_lost_more.len(),
        ratio: significant_share / MIN_LOSS_DIFFERENCE,
    };
    let cause = format!(
        "{name}: ICMP echoes are lost where messages are not: {} of {} ({}), while {} of {} were lost or retransmitted. A host or router rate-limits ICMP.",
        lost_echoes,
        plural(sent_echoes, "echo").replace("echos", "echoes"),
        percent(echo_loss.share()),
        lost_messages,
        plural(messages, "message"),
    );
    let remedy =
        "do not judge the loss of this path by ping; raise the ICMP rate limit, or ping less often";
    let result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with("echoes sent", to_f64(sent_echoes), "echoes")
        .with_share("echoes lost", lost_echoes, sent_echoes, "echoes")
        .with_share(
            "messages lost or retransmitted",
            lost_messages,
            messages,
            "messages",
        )
        .observed_in(runs.iter().copied());
    Some(result)
}
