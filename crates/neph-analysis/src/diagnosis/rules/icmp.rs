//! ICMP is treated differently. Echoes use another path or priority, or reach another host, so that ping does
//! not show the RTT of the messages.

use crate::diagnosis::{
    Agreement, Need, Ordered, Rule, RuleInput, RuleResult, Run, measure_without,
};
use crate::numbers::{millis, percent};
use crate::text::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "icmp-differs",
    title: "ICMP treated differently",
    limits: "The rule compares the minimum RTT of ICMP echoes with that of TCP (for UDP: of small datagrams), over equal numbers of both. It does not show whether a router prioritises one of them, routes them differently or answers for the host.",
    covers: &[],
    needs: &[Need::Echoes],
    evaluate,
};

/// Kernels answer echo and TCP: they differ by less than this many milliseconds ...
const MIN_MS: f64 = 0.4;
/// ... and by less than this share of the faster one.
const MIN_SHARE: f64 = 0.08;
/// The differences are consistent if those of all experiments lie within this share of their middle.
const IDENTICAL: f64 = 0.5;
/// With fewer echoes the minimum is not yet that of the path.
const ECHOES: usize = 5;
/// A larger datagram takes longer than an echo because of its size.
const SMALL: u64 = 256;
/// Minimum difference between the loss of echoes and of messages, if echoes are dropped on purpose.
const LOSS: f64 = 0.05;

/// A difference with a higher probability at random is not reported.
const RARELY: f64 = 0.01;

/// The result of an experiment.
#[derive(Clone, Copy)]
struct EchoAndMessage {
    /// Least round trip of the echoes, of as many as there are messages if these are fewer.
    echo: f64,
    /// Least round trip of as many messages as there are echoes.
    message: f64,
    /// How much slower echoes are than randomness explains; negative if they are faster.
    beyond: f64,
    is_tcp: bool,
}

impl EchoAndMessage {
    fn of(run: &Run<'_>) -> Option<Self> {
        let (echoes, messages) = (run.echoes_at_rest(), run.networks());
        let is_small = run.scenario.request_size.bytes() <= SMALL;
        let datagram = messages.min().filter(|_| is_small);
        let tcp = run.min_tcp_rtt();
        let (echo, message) = (echoes.min()?, tcp.or(datagram)?);
        let (echo_count, message_count) =
            (echoes.len(), messages.len().max(run.flow.exchanges.len()));
        // The handshake precedes the load that the plan generates.
        let loaded = run.scenario.stress().and_then(|_| messages.min());
        let quickest = loaded.map_or(message, |min| message.max(min));
        let slower = quickest + min_difference(&messages, echo_count, RARELY);
        let faster = echo + min_difference(&echoes, message_count, RARELY);
        let beyond = if echo > slower {
            echo - slower
        } else {
            (faster - message).min(0.0)
        };
        (echo_count >= ECHOES).then(|| Self {
            echo: echo + min_difference(&echoes, message_count, 0.5),
            message: message + min_difference(&messages, echo_count, 0.5),
            beyond,
            is_tcp: tcp.is_some(),
        })
    }

    fn added(self) -> f64 {
        self.echo - self.message
    }

    fn ratio(self) -> f64 {
        let quicker = self.echo.min(self.message);
        self.beyond.abs() / MIN_MS.max(MIN_SHARE * quicker)
    }
}

/// Difference between the minimum of `echo_count` values and that of all, exceeded with probability `odds`.
/// With a variable queue, 20 values rarely meet a moment as empty as the emptiest that 400 meet.
fn min_difference(round_trips: &Ordered, echo_count: usize, odds: f64) -> f64 {
    let share = 1.0 - odds.powf(1.0 / real(echo_count.max(1)));
    let above = |min: f64| Some(round_trips.at(share)? - min);
    round_trips.min().and_then(above).unwrap_or(0.0)
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
    let observed: Vec<(&Run<'_>, EchoAndMessage)> = runs
        .iter()
        .filter_map(|run| Some((*run, EchoAndMessage::of(run)?)))
        .collect();
    let middle = |value: fn(EchoAndMessage) -> f64| {
        let values = observed.iter().map(|(_, pair)| value(*pair));
        values.collect::<Ordered>()
    };
    let added = middle(EchoAndMessage::added);
    let (ratio, shift) = (middle(EchoAndMessage::ratio), added.median()?);
    let spread = added.max()? - added.min()?;
    if ratio.min()? < 1.0 || spread > IDENTICAL * shift.abs() {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: observed.len(),
        total: observed.len(),
        ratio: ratio.median()?,
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
    let (echo, message) = (
        middle(|pair| pair.echo).median()?,
        middle(|pair| pair.message).median()?,
    );
    let how = if shift > 0.0 { "slower" } else { "faster" };
    let protocol = if observed.iter().all(|(_, pair)| pair.is_tcp) {
        "TCP"
    } else if observed.iter().any(|(_, pair)| pair.is_tcp) {
        "TCP and the messages"
    } else {
        "the messages"
    };
    let cause = format!(
        "{name}: minimum ICMP RTT {}, minimum {protocol} RTT {}: ICMP is {} {how}, in {}.",
        millis(echo),
        millis(message),
        millis(shift.abs()),
        experiments_text(observed.len()),
    );
    let result = RuleResult::new(cause, remedy, confidence)
        .with("fastest echo", echo, "ms")
        .with("fastest message", message, "ms")
        .with("difference", shift, "ms")
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
    let (mut lost, mut sent, mut hurt, mut messages) = (0, 0, 0, 0);
    let mut differs: Vec<bool> = Vec::new();
    for run in runs {
        let Some(flow) = run.experiment.companion() else {
            continue;
        };
        let echoes = (flow.lost(), flow.exchanges.len() - flow.failed());
        let retransmitted = run.flow.retransmissions().len();
        let messages_lost = (
            run.flow.lost() + retransmitted,
            run.flow.exchanges.len() - run.flow.failed(),
        );
        let share = |(part, total): (usize, usize)| real(part) / real(total.max(1));
        differs.push(share(echoes) - share(messages_lost) >= LOSS);
        (lost, sent) = (lost + echoes.0, sent + echoes.1);
        (hurt, messages) = (hurt + messages_lost.0, messages + messages_lost.1);
    }
    let echoes = neph_stats::proportion(lost, sent).ok()?;
    let messages_lost = neph_stats::proportion(hurt, messages).ok()?;
    let beyond = echoes.interval().low - messages_lost.interval().high;
    if beyond < LOSS {
        return None;
    }
    let confidence = Agreement {
        noun: "experiment",
        observed: differs.iter().filter(|differs| **differs).count(),
        total: differs.len(),
        ratio: beyond / LOSS,
    };
    let cause = format!(
        "{name}: ICMP echoes are lost where messages are not: {} of {} ({}), while {} of {} were lost or retransmitted. A host or router rate-limits ICMP.",
        lost,
        plural(sent, "echo").replace("echos", "echoes"),
        percent(echoes.share()),
        hurt,
        plural(messages, "message"),
    );
    let remedy =
        "do not judge the loss of this path by ping; raise the ICMP rate limit, or ping less often";
    let result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with("echoes lost", echoes.share(), "")
        .with("messages lost or retransmitted", messages_lost.share(), "")
        .with("echoes sent", real(sent), "echoes")
        .observed_in(runs.iter().copied());
    Some(result)
}
