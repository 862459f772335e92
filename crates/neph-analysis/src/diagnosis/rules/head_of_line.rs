//! Head-of-line blocking at the sender. A message waits behind the bytes of an earlier one, held back by
//! TCP's window or queued at the client's interface.

use std::collections::BTreeMap;

use neph_model::{Seq, Span, Stage};

use crate::diagnosis::{
    Agreement, LoadAttribution, Need, Rule, RuleInput, RuleResult, Run, SendWait, SitePair,
    SortedValues,
};
use crate::numbers::{millis, percent};
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "head-of-line",
    title: "head-of-line blocking at the sender",
    limits: "The rule sees requests that wait in the client host behind others of the same connection. Other rules report why the window is closed: distance, loss, a slow link, a slow receiver.",
    covers: &[],
    needs: &[Need::Replies(MIN_MESSAGES), Need::SendTimestamps],
    evaluate,
};

/// Minimum share of messages that wait: fewer come from slow start or a lost segment.
const MIN_WAITING_SHARE: f64 = 0.3;
/// Minimum wait in milliseconds ...
const MIN_WAIT_MS: f64 = 1.0;
/// ... and as a share of a round trip.
const MIN_WAIT_SHARE: f64 = 0.2;
/// Minimum share of a scenario's experiments that show it, and two of them if there are several. A single
/// window may be stuck at random.
const MIN_EXPERIMENT_SHARE: f64 = 0.4;
/// Minimum number of messages.
const MIN_MESSAGES: usize = 10;

/// The result of an experiment.
struct BlockedMessages {
    /// The waiting times of the messages that waited, in milliseconds.
    waits: SortedValues,
    worst: Vec<Seq>,
    messages: usize,
    /// Time between the departures of two messages, p90, in milliseconds.
    departure_gap: f64,
    round_trip: f64,
    /// Number of messages that waited behind bytes in the interface's queue, not behind the window.
    queued: usize,
}

impl BlockedMessages {
    fn of(run: &Run<'_>) -> Option<Self> {
        let mut waits: Vec<(f64, Seq)> = Vec::new();
        let mut departure_gaps: Vec<f64> = Vec::new();
        let mut previous: Option<(u32, f64, bool)> = None;
        let (mut messages, mut queued) = (0, 0);
        for (exchange, times) in run.replies() {
            let Some(send_wait) = SendWait::of(run.flow, exchange) else {
                continue;
            };
            // Connection setup belongs to another rule.
            let due = Span::from_nanos(exchange.intended.nanos()).millis_f64();
            let written = due + times.at(Stage::Lateness);
            let departed = written + send_wait.waited_ms;
            messages += 1;
            if let Some((connection, earlier, in_queue)) = previous
                && connection == exchange.connection
            {
                departure_gaps.push(departed - earlier);
                // The previous message had not departed when this one was written.
                if earlier > written {
                    waits.push((earlier - written, exchange.seq));
                    queued += usize::from(in_queue);
                }
            }
            let in_queue = 2.0 * send_wait.queued_ms > send_wait.waited_ms;
            previous = Some((exchange.connection, departed, in_queue));
        }
        waits.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(Self {
            worst: waits.iter().map(|(_, seq)| *seq).collect(),
            waits: waits.into_iter().map(|(wait, _)| wait).collect(),
            messages,
            departure_gap: departure_gaps
                .into_iter()
                .collect::<SortedValues>()
                .quantile(0.9)?,
            round_trip: run.min_path_rtt()?,
            queued,
        })
    }

    /// What delays the earlier bytes.
    fn blocking_reason(&self) -> &'static str {
        if 2 * self.queued > self.waits.len() {
            "with bytes still in the interface queue"
        } else {
            "with bytes held back by the send window"
        }
    }

    fn share(&self) -> f64 {
        to_f64(self.waits.len()) / to_f64(self.messages.max(1))
    }

    fn median_wait(&self) -> f64 {
        self.waits.median().unwrap_or(0.0)
    }

    /// Mean wait of a message, including messages that do not wait.
    fn mean_wait(&self) -> f64 {
        self.share() * self.median_wait()
    }

    fn ratio(&self) -> f64 {
        let wait_ratio = self.median_wait() / MIN_WAIT_MS.max(MIN_WAIT_SHARE * self.round_trip);
        wait_ratio.min(self.share() / MIN_WAITING_SHARE)
    }
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    // A place is reported once per cause (itself, the plan's load): where it adds the most latency.
    let mut worst: BTreeMap<(SitePair, bool), RuleResult> = BTreeMap::new();
    for runs in input.grouped(|run| run.scenario.index).into_values() {
        let Some((attribution, result)) = diagnose_group(input, &runs) else {
            continue;
        };
        let key = (runs[0].pair(), attribution.is_load());
        let reported = worst.get(&key);
        if reported.is_none_or(|reported| reported.added_ms < result.added_ms) {
            worst.insert(key, result);
        }
    }
    worst.into_values().collect()
}

fn diagnose_group<'a>(
    input: &RuleInput<'a>,
    runs: &[&Run<'a>],
) -> Option<(LoadAttribution<'a>, RuleResult)> {
    let observed: Vec<(&Run<'_>, BlockedMessages)> = runs
        .iter()
        .filter_map(|run| Some((*run, BlockedMessages::of(run)?)))
        .filter(|(_, blocked)| blocked.messages >= MIN_MESSAGES)
        .collect();
    let ratios = observed.iter().map(|(_, blocking)| blocking.ratio());
    let ratio = ratios.clone().collect::<SortedValues>();
    let affected = ratios.filter(|ratio| *ratio >= 1.0).count();
    let is_random = affected < 2 && observed.len() > 1;
    if is_random || to_f64(affected) < MIN_EXPERIMENT_SHARE * to_f64(observed.len()) {
        return None;
    }
    let blocked = || {
        observed
            .iter()
            .filter(|(_, blocking)| blocking.ratio() >= 1.0)
    };
    let (run, worst) =
        blocked().max_by(|(_, a), (_, b)| a.median_wait().total_cmp(&b.median_wait()))?;
    let confidence = Agreement {
        noun: "experiment",
        observed: affected,
        total: observed.len(),
        ratio: ratio.max()?,
    };
    let attribution = input.attribute_effect(run, worst.mean_wait(), |calm| {
        let calm = calm.iter().filter_map(|run| BlockedMessages::of(run));
        calm.map(|blocking| blocking.mean_wait())
            .max_by(f64::total_cmp)
    });
    let (scenario, departure_gap) = (run.scenario, worst.departure_gap);
    let cause = format!(
        "{}: messages of {} every {} wait in the sender behind the previous message, {}: {} of {} ({}), {} at the median and up to {}. The time between departures reaches {} (p90) instead of {}; the RTT is {}.{}",
        input.name(&run.pair()),
        scenario.request_size.exact(),
        scenario.interval.exact(),
        worst.blocking_reason(),
        worst.waits.len(),
        plural(worst.messages, "message"),
        percent(worst.share()),
        millis(worst.median_wait()),
        millis(worst.waits.max()?),
        millis(departure_gap),
        scenario.interval.exact(),
        millis(worst.round_trip),
        load_sentence(attribution),
    );
    let mut result = RuleResult::new(cause, remedy(attribution), confidence.confidence())
        .with_added_latency(worst.median_wait())
        .with("share of messages that wait", worst.share(), "")
        .with("median wait", worst.median_wait(), "ms")
        .with("longest wait", worst.waits.max()?, "ms")
        .with("p90 of the time between departures", departure_gap, "ms")
        .with("RTT", worst.round_trip, "ms");
    for (run, blocking) in blocked() {
        result = result.observed_at(run, &blocking.worst);
    }
    Some((attribution, result))
}

/// The part of the plan's load, as the end of the sentence.
fn load_sentence(attribution: LoadAttribution<'_>) -> String {
    match attribution {
        LoadAttribution::NotLoad => String::new(),
        LoadAttribution::Load(load, calm) => format!(
            " The background load {load} causes it: without the load a message waits {} on average.",
            millis(calm)
        ),
        LoadAttribution::Unknown(load) => format!(" The background load {load} may cause it."),
    }
}

fn remedy(attribution: LoadAttribution<'_>) -> String {
    let usual_remedy = "send fewer or smaller messages, use several connections or QUIC streams, use BBR where loss closes the window, or use a nearer endpoint";
    let load_remedy = "reduce the load, use fair queueing (fq_codel, CAKE), or another path";
    attribution.remedy(usual_remedy, load_remedy)
}
