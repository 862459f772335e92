//! A starved client: the client host was late to send or to read, and the results show it. The network is not
//! the cause.

mod held_by_tcp;
mod quantile_shift;

use std::collections::BTreeMap;

use neph_model::{Load, Seq, Span, Stage, Warning};
use neph_stats::{Sorted, quantile};

use crate::diagnosis::{Confidence, Level, Need, Rule, RuleInput, RuleResult, Run, SortedValues};
use crate::numbers::{millis, percent};
use crate::table::QUANTILES;
use crate::text::{plural, to_f64};
use quantile_shift::QuantileShift;

pub(crate) const RULE: Rule = Rule {
    name: "starved-client",
    title: "starved client",
    limits: "The rule sees the stages of the client host. Apart from steal time and CPU utilisation it does not show what took the CPU. Without kernel timestamps, the wait before reading is part of the network stage. Replies that TCP held back behind a lost segment do not count.",
    covers: &[],
    needs: &[Need::Replies(MIN_MESSAGES)],
    evaluate,
};

/// A woken thread takes tens of microseconds on an idle host. From 1 ms on, another process had the CPU.
const MIN_DELAY_MS: f64 = 1.0;
/// The added latency of a root cause is reported at p95.
const TAIL_QUANTILE: f64 = 0.95;
/// Nothing is noted if the client host delays fewer messages and no experiment is flagged for it.
const MIN_NOTED_SHARE: f64 = 0.01;
/// A single message proves nothing about a host.
const MIN_DELAYED_MESSAGES: usize = 2;
/// Minimum number of messages for a quantile.
const MIN_MESSAGES: usize = 6;

/// Delays of the client host in an experiment, in milliseconds.
struct ClientDelays<'r> {
    run: &'r Run<'r>,
    /// Response time of each reply, and the client host's part of it.
    replies: Vec<(f64, f64)>,
    late: Vec<f64>,
    /// Without the time that TCP held replies back.
    unread: Vec<f64>,
    worst: Vec<Seq>,
    is_flagged: bool,
}

impl<'r> ClientDelays<'r> {
    fn of(run: &'r Run<'r>) -> Self {
        let warnings = run.experiment.experiment.warnings.iter();
        let is_flagged = warnings.clone().any(Warning::is_of_a_busy_host);
        let all_replies: Vec<_> = run.all_replies().collect();
        let late: Vec<f64> = all_replies
            .iter()
            .map(|(_, times)| times.at(Stage::Lateness))
            .collect();
        let is_late = quantile_of(&late, TAIL_QUANTILE).is_some_and(|late| late >= MIN_DELAY_MS);
        // The kernel delivers the segments of a reply behind a lost one only after its retransmission. A host
        // that is slow to read is slow to send as well.
        let is_one_segment = run.scenario.response_size.is_one_segment();
        let reads_slowly = is_one_segment || is_flagged || is_late;
        let held_by_tcp = held_by_tcp::held_by_tcp(run.flow);
        // Messages that waited for the end of a stall belong to another rule.
        let stalled = &run.stalls.waited_for_client;
        let mut by_delay: Vec<(f64, Seq)> = Vec::new();
        let mut replies = Vec::new();
        let mut all_unread = Vec::new();
        for (exchange, times) in &all_replies {
            let unread = if reads_slowly && !held_by_tcp.contains(&exchange.seq) {
                times.at(Stage::OwnKernel)
            } else {
                0.0
            };
            all_unread.push(unread);
            let delay = if stalled.contains(&exchange.seq) {
                0.0
            } else {
                times.at(Stage::Lateness) + unread
            };
            replies.extend(
                exchange
                    .response
                    .map(|response| (Span::millis_f64(response), delay)),
            );
            by_delay.push((delay, exchange.seq));
        }
        by_delay.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            run,
            replies,
            late,
            unread: all_unread,
            worst: by_delay.into_iter().map(|(_, seq)| seq).collect(),
            is_flagged,
        }
    }

    fn load(&self) -> Option<Load> {
        self.run.experiment.provenance.as_ref()?.load
    }
}

fn quantile_of(values: &[f64], p: f64) -> Option<f64> {
    values.iter().copied().collect::<SortedValues>().quantile(p)
}

/// A scenario's experiments from one site.
struct SiteScenario<'r> {
    runs: Vec<ClientDelays<'r>>,
    shifts: Vec<QuantileShift>,
    messages: usize,
    delayed: usize,
}

impl<'r> SiteScenario<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let runs: Vec<ClientDelays<'r>> = runs.iter().map(|run| ClientDelays::of(run)).collect();
        let replies = || runs.iter().flat_map(|run| &run.replies);
        let messages = replies().count();
        let delayed = replies()
            .filter(|(_, delay)| *delay >= MIN_DELAY_MS)
            .count();
        // As in the tables: a message without a reply is slower than every reply.
        let without_reply = |run: &ClientDelays<'_>| {
            let flow = run.run.flow;
            flow.lost() + flow.errors() + flow.failed()
        };
        let without_reply = runs.iter().map(without_reply).sum();
        let responses: Vec<f64> = sorted(replies().map(|(response, _)| *response));
        let undelayed: Vec<f64> = sorted(replies().map(|(response, delay)| response - delay));
        let shifts = QUANTILES.into_iter().filter_map(|p| {
            let measured = quantile(Sorted::check(&responses).ok()?, without_reply, p).ok()?;
            let without_delays =
                quantile(Sorted::check(&undelayed).ok()?, without_reply, p).ok()?;
            Some(QuantileShift {
                p,
                measured: measured.value().number()?,
                without_delays: without_delays.value().number()?,
                low: measured.low().number()?,
                delayed: to_f64(delayed) / to_f64(messages.max(1)),
            })
        });
        Self {
            shifts: shifts.collect(),
            messages,
            delayed,
            runs,
        }
    }

    fn ratio(&self) -> f64 {
        let ratios = self.shifts.iter().map(|shift| shift.ratio());
        ratios.fold(0.0, f64::max)
    }

    fn label(&self) -> String {
        let first = self.runs.first();
        first.map_or_else(String::new, |run| run.run.scenario.label())
    }

    /// The load that the plan generates in the scenario.
    fn load(&self) -> Option<&str> {
        self.runs.first()?.run.scenario.stress()
    }

    /// The largest shift of a quantile by the client host, in milliseconds.
    fn largest_shift(&self) -> f64 {
        let shifts = self.shifts.iter().map(|shift| shift.shift());
        shifts.fold(0.0, f64::max)
    }

    /// Whether the client host adds far less to the same scenario without the plan's load.
    fn is_by_load(&self, input: &RuleInput<'_>) -> bool {
        let calm_shift = |calm: &[&Run<'_>]| {
            let calm = SiteScenario::of(calm);
            (!calm.shifts.is_empty()).then(|| calm.largest_shift())
        };
        self.runs.first().is_some_and(|run| {
            input
                .attribute_effect(run.run, self.largest_shift(), calm_shift)
                .is_load()
        })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let mut sites: BTreeMap<String, Vec<SiteScenario<'_>>> = BTreeMap::new();
    let identical = input.grouped(|run| (run.site().to_owned(), run.scenario.index));
    for ((site, _), runs) in identical {
        sites.entry(site).or_default().push(SiteScenario::of(&runs));
    }
    let sites = sites.into_iter();
    sites
        .flat_map(|(site, scenarios)| {
            let host = match site.as_str() {
                "" => "the client host".to_owned(),
                site => format!("site {site}"),
            };
            let starved = scenarios.iter().filter(|scenario| scenario.ratio() >= 1.0);
            let (by_load, not_by_load): (Vec<_>, Vec<_>) =
                starved.partition(|scenario| scenario.is_by_load(input));
            let causes: Vec<RuleResult> = [(not_by_load, false), (by_load, true)]
                .into_iter()
                .filter_map(|(starved, is_by_load)| {
                    diagnose_group(&host, &starved, scenarios.len(), is_by_load)
                })
                .collect();
            if causes.is_empty() {
                return note_delays(&host, &scenarios).into_iter().collect();
            }
            causes
        })
        .collect()
}

/// Latency that the client host added to the messages of several scenarios, in milliseconds at p95.
struct AddedDelays {
    tail: f64,
    late: f64,
    unread: f64,
    /// CPU steal in percent, median over the experiments.
    steal: f64,
    busy: f64,
}

impl AddedDelays {
    fn of(scenarios: &[&SiteScenario<'_>]) -> Option<Self> {
        let runs = || scenarios.iter().flat_map(|scenario| &scenario.runs);
        let tail = |values: fn(&ClientDelays<'_>) -> Vec<f64>| {
            runs()
                .flat_map(values)
                .collect::<SortedValues>()
                .quantile(TAIL_QUANTILE)
        };
        let load = |value: fn(Load) -> f64| {
            let values = runs().filter_map(|run| run.load().map(value));
            values.collect::<SortedValues>().median()
        };
        Some(Self {
            tail: tail(|run| run.replies.iter().map(|(_, delay)| *delay).collect())?,
            late: tail(|run| run.late.clone())?,
            unread: tail(|run| run.unread.clone())?,
            steal: load(|load| load.steal_percent).unwrap_or(0.0),
            busy: load(|load| load.busy_percent).unwrap_or(0.0),
        })
    }

    fn cpu_text(&self) -> String {
        if self.steal > 1.0 {
            format!("steal time {:.1} %", self.steal)
        } else if self.busy > 0.0 {
            format!("CPU {:.0} % busy", self.busy)
        } else {
            "CPU load not recorded".to_owned()
        }
    }
}

/// The scenarios in which the client host, or the plan's load on it, moved a quantile;
/// `scenario_count` is the number of scenarios.
fn diagnose_group(
    host: &str,
    starved: &[&SiteScenario<'_>],
    scenario_count: usize,
    is_by_load: bool,
) -> Option<RuleResult> {
    let worst = starved
        .iter()
        .max_by(|a, b| a.ratio().total_cmp(&b.ratio()))?;
    let added_delays = AddedDelays::of(starved)?;
    let shifts: Vec<&QuantileShift> = worst
        .shifts
        .iter()
        .filter(|shift| shift.ratio() >= 1.0)
        .collect();
    let largest_shift = shifts.last()?;
    let load = worst.load().filter(|_| is_by_load);
    let texts: Vec<String> = shifts.iter().map(|shift| shift.to_text()).collect();
    let cause = format!(
        "{host} was slow, not the network: its delays changed {} ({}). They are {} or more for 5 % of the messages ({} late in sending, {} until the reply was read), in {} of {}; {}{}.",
        texts.join(", "),
        worst.label(),
        millis(added_delays.tail),
        millis(added_delays.late),
        millis(added_delays.unread),
        starved.len(),
        plural(scenario_count, "scenario"),
        added_delays.cpu_text(),
        load.map_or_else(String::new, |load| format!(
            " under the background load {load}, which causes it: without the load the client host delays far less"
        )),
    );
    let remedy = if is_by_load {
        "give neph a core that the load does not use, or CAP_SYS_NICE (real-time priority), or reduce the load. Until then rely on medians and the network stage, not on high percentiles"
    } else {
        "repeat from a host with an idle core or with CAP_SYS_NICE (real-time priority), at a longer interval or with fewer flows. Until then rely on medians and the network stage, not on high percentiles"
    };
    let mut result = RuleResult::new(cause, remedy.to_owned(), confidence(starved, worst.ratio()))
        .with_added_latency(added_delays.tail)
        .with("p95 of the client's stages", added_delays.tail, "ms")
        .with("lateness", added_delays.late, "ms")
        .with("until read", added_delays.unread, "ms")
        .with("percentile that moved", largest_shift.p * 100.0, "")
        .with(
            "without the client's delays",
            largest_shift.without_delays,
            "ms",
        )
        .with("as measured", largest_shift.measured, "ms")
        .with("CPU stolen", added_delays.steal, "%")
        .with("CPU busy", added_delays.busy, "%");
    for run in starved.iter().flat_map(|scenario| &scenario.runs) {
        result = result.observed_at(run.run, &run.worst);
    }
    Some(result)
}

fn confidence(starved: &[&SiteScenario<'_>], ratio: f64) -> Confidence {
    let runs = || starved.iter().flat_map(|scenario| &scenario.runs);
    let (flagged, run_count) = (runs().filter(|run| run.is_flagged).count(), runs().count());
    let level = match (2 * flagged >= run_count, ratio >= 2.0) {
        (true, true) => Level::Sure,
        (true, false) | (false, true) => Level::Likely,
        (false, false) => Level::Possible,
    };
    let reason = format!(
        "the change of the percentile is {ratio:.1} times the smallest change that this rule reports; {flagged} of {} have a warning of a busy host",
        plural(run_count, "experiment"),
    );
    Confidence::new(level, reason)
}

/// Delays of the client host that moved no quantile by enough, or with enough confidence, to be a root cause.
fn note_delays(host: &str, scenarios: &[SiteScenario<'_>]) -> Option<RuleResult> {
    let messages: usize = scenarios.iter().map(|scenario| scenario.messages).sum();
    let delayed: usize = scenarios.iter().map(|scenario| scenario.delayed).sum();
    let mut runs = scenarios.iter().flat_map(|scenario| &scenario.runs);
    let is_flagged = runs.any(|run| run.is_flagged);
    let is_noted =
        delayed >= MIN_DELAYED_MESSAGES && to_f64(delayed) >= MIN_NOTED_SHARE * to_f64(messages);
    if delayed == 0 || !(is_flagged || is_noted) {
        return None;
    }
    let shifts = scenarios
        .iter()
        .flat_map(|scenario| scenario.shifts.iter().map(move |shift| (scenario, shift)));
    let (scenario, largest) = shifts.max_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()))?;
    let share = to_f64(delayed) / to_f64(messages.max(1));
    let text = format!(
        "{host} delayed {delayed} of {} ({}) by 1 ms or more. Without all delays of this host, also those below 1 ms, {} ({}). {}",
        plural(messages, "message"),
        percent(share),
        largest.to_conditional(),
        scenario.label(),
        largest.no_cause_reason(),
    );
    let confidence = Confidence::new(Level::Sure, "");
    let mut result = RuleResult::new(text, String::new(), confidence)
        .into_note()
        .with("messages delayed", to_f64(delayed), "messages")
        .with("without the client's delays", largest.without_delays, "ms")
        .with("as measured", largest.measured, "ms");
    for run in &scenario.runs {
        result = result.observed_at(run.run, &run.worst);
    }
    Some(result)
}
