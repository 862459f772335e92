//! A stalled client: the client application stops for some time, and neither sends nor reads.

use std::collections::BTreeMap;

use crate::diagnosis::{
    Confidence, Level, Need, Rule, RuleInput, RuleResult, Run, SortedValues, Stall,
};
use crate::numbers::percent;
use crate::text::{plural, to_f64};

use super::stalled_peer::stalls_text;

pub(crate) const RULE: Rule = Rule {
    name: "stalled-client",
    title: "stalled client",
    limits: "The rule sees that neph did nothing although messages were due. Apart from steal time it does not show why: the hypervisor, a CPU quota, another process or a signal.",
    covers: &[],
    needs: &[Need::Replies(MIN_MESSAGES)],
    evaluate,
};

/// Minimum number of messages.
const MIN_MESSAGES: usize = 6;
/// Minimum share of messages that are late or not sent: it moves p99.
const MIN_SHARE: f64 = 0.01;
/// From this many stalls on, they are not random.
const MIN_REPEATED_STALLS: usize = 3;

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let mut sites: BTreeMap<&str, Vec<&Run<'_>>> = BTreeMap::new();
    for run in &input.runs {
        sites.entry(run.site()).or_default().push(run);
    }
    let sites = sites.into_iter();
    sites
        .filter_map(|(site, runs)| diagnose_group(site, &runs))
        .collect()
}

fn diagnose_group(site: &str, runs: &[&Run<'_>]) -> Option<RuleResult> {
    let stalled_runs: Vec<&&Run<'_>> = runs
        .iter()
        .filter(|run| !run.stalls.client.is_empty())
        .collect();
    let stalls: Vec<&Stall> = stalled_runs
        .iter()
        .flat_map(|run| &run.stalls.client)
        .collect();
    let messages: usize = runs.iter().map(|run| run.flow.exchanges.len()).sum();
    let delayed: usize = stalled_runs
        .iter()
        .map(|run| run.stalls.waited_for_client.len())
        .sum();
    let share = to_f64(delayed) / to_f64(messages.max(1));
    let lengths: SortedValues = stalls.iter().map(|stall| stall.length()).collect();
    let (median, longest) = (lengths.median()?, lengths.max()?);
    if share < MIN_SHARE {
        return None;
    }
    let host = if site.is_empty() {
        "the client host"
    } else {
        site
    };
    let stolen = stalled_runs
        .iter()
        .filter_map(|run| run.experiment.provenance.as_ref())
        .filter_map(|provenance| Some(provenance.load?.steal_percent))
        .collect::<SortedValues>()
        .median();
    let cause = format!(
        "{host}: neph stalled {}: it neither sent nor read. {} of {} ({}) were sent or read late, or were not sent. The client host is the cause, not the network{}.",
        stalls_text(stalls.len(), median, longest),
        delayed,
        plural(messages, "message"),
        percent(share),
        stolen
            .filter(|stolen| *stolen > 1.0)
            .map_or_else(String::new, |stolen| format!("; steal time {stolen:.1} %")),
    );
    let confidence = confidence(stalls.len(), (stalled_runs.len(), runs.len()));
    let remedy = "check the client's steal time (st in vmstat), CPU quota (nr_throttled in cpu.stat of its cgroup) and pinning; give neph a dedicated core and repeat";
    let mut result = RuleResult::new(cause, remedy.to_owned(), confidence)
        .with_added_latency(median / 2.0)
        .with("stalls", to_f64(stalls.len()), "stalls")
        .with("median length", median, "ms")
        .with("longest", longest, "ms")
        .with_share(
            "messages delayed or not sent",
            delayed,
            messages,
            "messages",
        )
        .with("CPU stolen", stolen.unwrap_or(0.0), "%");
    for run in stalled_runs {
        let waited: Vec<_> = run.stalls.waited_for_client.iter().copied().collect();
        result = result.observed_at(run, &waited);
    }
    Some(result)
}

/// By the number of stalls and the share of experiments that show one.
fn confidence(stalls: usize, (stalled, total): (usize, usize)) -> Confidence {
    let is_repeated = stalls >= MIN_REPEATED_STALLS;
    let level = if is_repeated {
        Level::Sure
    } else {
        Level::Likely
    };
    let reason = format!(
        "{} in {stalled} of {}; messages were due in each, and none was sent",
        plural(stalls, "stall"),
        plural(total, "experiment"),
    );
    Confidence::new(level, reason)
}
