//! Slow start after idle: an idle connection resets its congestion window (RFC 2861, RFC 5681 section 4.1). A
//! message above the initial window then costs additional round trips.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{INITIAL_WINDOW, Seq, Stage};

use crate::data::Exchange;
use crate::diagnosis::{Agreement, Need, Rule, RuleInput, RuleResult, Run, SortedValues};
use crate::numbers::millis;
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "slow-start-after-idle",
    title: "slow start after idle",
    limits: "The rule reads TCP statistics of the sender, so it covers requests only, not replies. It does not cover the first slow start of a connection or a window that loss reduced. A window that ECN reduced looks like one that was reset after idle.",
    covers: &["interval"],
    needs: &[Need::TcpStatistics],
    evaluate,
};

/// Minimum retransmission timeout of Linux in milliseconds. A connection that is idle for longer than this
/// plus the round trip resets its window.
const MIN_TIMEOUT_MS: f64 = 200.0;
/// Algorithms that reset the window while idle; BBR does not, because it paces.
const RESETTING_ALGORITHMS: [&str; 2] = ["cubic", "reno"];
/// After short pauses the wait must be below this share of the wait after an idle period. Otherwise the
/// receiver, pacing or the path causes the wait.
const MAX_BRIEF_SHARE: f64 = 0.5;
/// Any window that grows by one segment per round trip grows by more than this factor up to this size.
const MAX_GROWTH: f64 = 1.02;
const MAX_SMALL_WINDOW: f64 = 45.0;
/// A wait of at least this share of a round trip is a round of slow start.
const MIN_ROUNDS: f64 = 0.7;
/// Minimum share of the messages after an idle period that show it.
const MIN_RESTART_SHARE: f64 = 0.5;
/// Minimum number of messages after an idle period.
const MIN_IDLE_MESSAGES: usize = 3;

/// A message before which the window fell.
struct Restart {
    seq: Seq,
    /// The window at the departure of the previous message, in segments.
    window_before: f64,
    /// The largest possible window at the start of this message.
    max_window: f64,
    /// How long it waited for the window, in milliseconds.
    waited: f64,
}

/// The result of an experiment.
struct Restarts {
    windows: Vec<Restart>,
    /// Messages after an idle period.
    idle_messages: usize,
    round_trip: f64,
}

impl Restarts {
    /// Compares with `wait_after_pause`: the wait of messages of this size after short pauses.
    fn of(run: &Run<'_>, wait_after_pause: Option<f64>) -> Option<Self> {
        // A window after a reset lets this much depart at once.
        if run.scenario.request_size <= INITIAL_WINDOW || keeps_its_window(run) {
            return None;
        }
        let round_trip = run.min_path_rtt()?;
        let mut restarts = Self {
            windows: Vec::new(),
            idle_messages: 0,
            round_trip,
        };
        for pair in RepliedMessage::all(run).windows(2) {
            let [before, message] = pair else { continue };
            let idle = message.idle_after(before);
            let was_idle = idle.is_some_and(|idle| idle > MIN_TIMEOUT_MS + round_trip);
            if was_idle && !message.had_retransmission(before) {
                restarts.idle_messages += 1;
                restarts
                    .windows
                    .extend(message.restart_before(before, wait_after_pause));
            }
        }
        (restarts.idle_messages >= MIN_IDLE_MESSAGES).then_some(restarts)
    }

    fn median_of(&self, value: fn(&Restart) -> f64) -> f64 {
        let values: SortedValues = self.windows.iter().map(value).collect();
        values.median().unwrap_or(0.0)
    }

    fn round_trips(&self) -> f64 {
        self.median_of(|restart| restart.waited) / self.round_trip.max(f64::MIN_POSITIVE)
    }

    fn is_significant(&self) -> bool {
        to_f64(self.windows.len()) >= MIN_RESTART_SHARE * to_f64(self.idle_messages)
            && self.round_trips() >= MIN_ROUNDS
    }
}

/// Whether the sending host keeps the window while idle. Unknown hosts count as the Linux default: no.
fn keeps_its_window(run: &Run<'_>) -> bool {
    let Some(provenance) = &run.experiment.provenance else {
        return false;
    };
    let host = &provenance.host;
    let setting = host.sysctls.get("net.ipv4.tcp_slow_start_after_idle");
    let algorithm = host.congestion_control.as_deref();
    setting.is_some_and(|value| value.trim() == "0")
        || algorithm.is_some_and(|name| !RESETTING_ALGORITHMS.contains(&name))
}

/// A message with a reply.
struct RepliedMessage<'a> {
    exchange: &'a Exchange,
    segments: f64,
    /// The window at the departure of the last byte.
    window: f64,
    /// The window when the last byte was acknowledged, before the idle period.
    window_before: f64,
    /// How long it waited for the window, in milliseconds and in its round trips.
    waited: f64,
    round_trips: f64,
}

impl<'a> RepliedMessage<'a> {
    fn all(run: &'a Run<'_>) -> Vec<Self> {
        run.replies()
            .filter_map(|(exchange, times)| Self::of(run, exchange, times.at(Stage::SendWindow)))
            .collect()
    }

    fn of(run: &Run<'_>, exchange: &'a Exchange, waited: f64) -> Option<Self> {
        // On a slow link the message's own queue is part of its round trip.
        let network = run.flow.network(exchange)?.millis_f64();
        let segments = run.scenario.request_size.segments();
        #[expect(clippy::cast_precision_loss, reason = "segments of a message")]
        let segments = segments as f64;
        Some(Self {
            exchange,
            segments,
            window: exchange.cwnd?.into(),
            window_before: exchange.cwnd.max(exchange.cwnd_after)?.into(),
            waited,
            round_trips: (waited / network.max(f64::MIN_POSITIVE)).round(),
        })
    }

    /// Idle time since the previous message, in milliseconds; negative if that was still under way.
    fn idle_after(&self, before: &Self) -> Option<f64> {
        let (exchange, earlier) = (self.exchange, before.exchange);
        let replied = earlier.intended + earlier.response?;
        (exchange.connection == earlier.connection)
            .then_some((exchange.send_started? - replied).millis_f64())
    }

    /// Whether a segment was retransmitted since the previous message.
    fn had_retransmission(&self, before: &Self) -> bool {
        self.exchange.retransmissions != before.exchange.retransmissions
    }

    /// The fall of the window before this message, if any. Without loss, only a reset reduces the window;
    /// neither the receiver nor pacing does.
    fn restart_before(&self, before: &Self, wait_after_pause: Option<f64>) -> Option<Restart> {
        if self.round_trips < 1.0
            || wait_after_pause.is_some_and(|wait| wait >= MAX_BRIEF_SHARE * self.waited)
        {
            return None;
        }
        let is_stuck = wait_after_pause.is_some()
            && self.window <= MAX_GROWTH * before.window
            && self.window <= MAX_SMALL_WINDOW
            && before.round_trips >= self.round_trips
            && self.exchange.retransmissions == Some(0);
        (self.window < before.window_before || is_stuck).then_some(Restart {
            seq: self.exchange.seq,
            window_before: before.window_before,
            max_window: ((self.segments - 1.0) / self.round_trips).min(self.window),
            waited: self.waited,
        })
    }
}

fn bytes(run: &Run<'_>) -> u64 {
    run.scenario.request_size.bytes()
}

/// Median wait for the window of messages of this size after short pauses, in milliseconds; `None` with too
/// few.
fn wait_after_pause(runs: &[&Run<'_>], size: u64) -> Option<f64> {
    let mut waits = Vec::new();
    for run in runs {
        if bytes(run) != size {
            continue;
        }
        for pair in RepliedMessage::all(run).windows(2) {
            let [before, message] = pair else { continue };
            let idle = message.idle_after(before);
            let is_brief = idle.is_some_and(|idle| (0.0..MIN_TIMEOUT_MS).contains(&idle));
            if is_brief && !message.had_retransmission(before) {
                waits.push(message.waited);
            }
        }
    }
    let is_enough = waits.len() >= MIN_IDLE_MESSAGES;
    let waits: SortedValues = waits.into_iter().collect();
    waits.median().filter(|_| is_enough)
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let mut results = Vec::new();
    for (pair, runs) in input.pairs() {
        let sizes: BTreeSet<u64> = runs.iter().map(|run| bytes(run)).collect();
        let sizes = sizes
            .into_iter()
            .map(|size| (size, wait_after_pause(&runs, size)));
        let sizes: BTreeMap<u64, Option<f64>> = sizes.collect();
        let observed: Vec<(&Run<'_>, Restarts)> = runs
            .into_iter()
            .filter_map(|run| Some((run, Restarts::of(run, sizes[&bytes(run)])?)))
            .collect();
        results.extend(diagnose_group(&input.name(&pair), &observed));
    }
    results
}

fn diagnose_group(name: &str, observed: &[(&Run<'_>, Restarts)]) -> Option<RuleResult> {
    let affected: Vec<&(&Run<'_>, Restarts)> = observed
        .iter()
        .filter(|(_, restarts)| restarts.is_significant())
        .collect();
    if 2 * affected.len() < observed.len() {
        return None;
    }
    let cost = |restarts: &Restarts| restarts.median_of(|restart| restart.waited);
    let (run, worst) = affected
        .iter()
        .max_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)))?;
    let confidence = Agreement {
        noun: "experiment",
        observed: affected.len(),
        total: observed.len(),
        ratio: worst.round_trips() / MIN_ROUNDS,
    };
    let scenario = run.scenario;
    let (before, max_window) = (
        worst.median_of(|restart| restart.window_before).round(),
        worst.median_of(|restart| restart.max_window).round(),
    );
    let cause = format!(
        "{name}: TCP resets its congestion window while the connection is idle between messages. In the experiment with the largest effect ({} every {}), {} of {} after an idle period found a congestion window of at most {max_window:.0} segments; before the idle period it was {before:.0}. They waited {} for it to grow ({:.1} round trips of {}).",
        scenario.request_size.exact(),
        scenario.interval.exact(),
        worst.windows.len(),
        plural(worst.idle_messages, "message"),
        millis(cost(worst)),
        worst.round_trips(),
        millis(worst.round_trip),
    );
    let remedy = "on the sender: sysctl net.ipv4.tcp_slow_start_after_idle=0; or keep the interval between messages below 200 ms plus one RTT; or keep messages within ten segments (14 kB); or use BBR";
    let mut result = RuleResult::new(cause, remedy.to_owned(), confidence.confidence())
        .with_added_latency(cost(worst))
        .with("window before the idle period", before, "segments")
        .with(
            "window after the idle period, at most",
            max_window,
            "segments",
        )
        .with("wait for the window", cost(worst), "ms")
        .with("wait for the window", worst.round_trips(), "round trips")
        .with("round trip", worst.round_trip, "ms")
        .with(
            "longest idle period that keeps the window",
            MIN_TIMEOUT_MS + worst.round_trip,
            "ms",
        );
    for (run, restarts) in affected {
        let seqs: Vec<Seq> = restarts.windows.iter().map(|restart| restart.seq).collect();
        result = result.observed_at(run, &seqs);
    }
    Some(result)
}
