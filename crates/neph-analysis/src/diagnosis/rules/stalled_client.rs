//! A stalled client: our own program stands still for a while, and neither sends what is due nor reads.

use std::collections::BTreeMap;

use crate::diagnosis::{Confidence, Found, Level, Need, Ordered, Rule, Run, Sight, Stall};
use crate::numbers::{millis, percent};
use crate::words::{plural, real};

use super::stalled_peer::times;

pub(crate) const RULE: Rule = Rule {
    name: "stalled-client",
    title: "stalled client",
    limits: "It sees that our program did nothing although messages were due. Whether the hypervisor, a CPU quota, another process or a signal kept it from running, it cannot tell beyond the share of the CPU that was stolen.",
    covers: &[],
    needs: &[Need::Replies(MESSAGES)],
    look,
};

/// So many messages at least.
const MESSAGES: usize = 6;
/// So much of the messages goes late or not at all: it moves their 99th percentile.
const LEAST_SHARE: f64 = 0.01;
/// So many stalls are no chance.
const SEVERAL: usize = 3;

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let mut sites: BTreeMap<&str, Vec<&Run<'_>>> = BTreeMap::new();
    for run in &sight.runs {
        sites.entry(run.site()).or_default().push(run);
    }
    let sites = sites.into_iter();
    sites.filter_map(|(site, runs)| told(site, &runs)).collect()
}

fn told(site: &str, runs: &[&Run<'_>]) -> Option<Found> {
    let hit: Vec<&&Run<'_>> = runs
        .iter()
        .filter(|run| !run.stalls.client.is_empty())
        .collect();
    let stalls: Vec<&Stall> = hit.iter().flat_map(|run| &run.stalls.client).collect();
    let messages: usize = runs.iter().map(|run| run.flow.exchanges.len()).sum();
    let delayed: usize = hit
        .iter()
        .map(|run| run.stalls.waited_for_client.len())
        .sum();
    let share = real(delayed) / real(messages.max(1));
    let lengths: Ordered = stalls.iter().map(|stall| stall.length()).collect();
    let (median, longest) = (lengths.median()?, lengths.greatest()?);
    if share < LEAST_SHARE {
        return None;
    }
    let who = if site.is_empty() {
        "the client host"
    } else {
        site
    };
    let stolen = hit
        .iter()
        .filter_map(|run| run.experiment.provenance.as_ref())
        .map(|known| known.load.steal_percent)
        .collect::<Ordered>()
        .median();
    let cause = format!(
        "{who}: neph itself stood still {}, for {} at the median and up to {}: it neither sent nor read, and {} of {} ({}) went or were read late, or did not go at all. This is the client, not the network{}.",
        times(stalls.len()),
        millis(median),
        millis(longest),
        delayed,
        plural(messages, "message"),
        percent(share),
        stolen
            .filter(|stolen| *stolen > 1.0)
            .map_or_else(String::new, |stolen| format!(
                "; the hypervisor took {stolen:.1} % of the CPU"
            )),
    );
    let confidence = confidence(stalls.len(), (hit.len(), runs.len()));
    let remedy = "look at the client's steal time (st in vmstat), at its CPU quota (nr_throttled in cpu.stat of its cgroup) and at pinning; give neph a core of its own and measure again";
    let mut found = Found::new(cause, remedy.to_owned(), confidence)
        .costing(median / 2.0)
        .with("stalls", real(stalls.len()), "stalls")
        .with("length at the median", median, "ms")
        .with("longest", longest, "ms")
        .with("messages delayed or not sent", share, "")
        .with("CPU stolen", stolen.unwrap_or(0.0), "%");
    for run in hit {
        let waited: Vec<_> = run.stalls.waited_for_client.iter().copied().collect();
        found = found.seen_at(run, &waited);
    }
    Some(found)
}

/// Of so many stalls in so many of the experiments.
fn confidence(stalls: usize, (hit, all): (usize, usize)) -> Confidence {
    let several = stalls >= SEVERAL;
    let level = if several { Level::Sure } else { Level::Likely };
    let why = format!(
        "{} in {hit} of {}; messages were due in each, and none was sent",
        plural(stalls, "stall"),
        plural(all, "experiment"),
    );
    Confidence::new(level, why)
}
