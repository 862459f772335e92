//! A stalled peer: it stops for some time, and then answers all waiting requests at once.

use crate::diagnosis::{
    Confidence, Level, LoadAttribution, Need, Rule, RuleInput, RuleResult, Run, SitePair,
    SortedValues, Stall, slope, waits,
};
use crate::numbers::{millis, percent};
use crate::text::{plural, to_f64};

pub(crate) const RULE: Rule = Rule {
    name: "stalled-peer",
    title: "stalled peer",
    limits: "The rule sees that no reply arrives for a time and then all of them at once. A device on the path that holds packets back looks the same. Behind a proxy the proxy's kernel acknowledges. Stalls shorter than 10 ms, or than three intervals, are not visible.",
    covers: &["transmission"],
    needs: &[Need::Replies(MIN_MESSAGES)],
    evaluate,
};

/// Minimum number of messages: fewer have no usual time.
const MIN_MESSAGES: usize = 6;
/// Minimum share of messages that wait: it moves p99.
const MIN_SHARE: f64 = 0.01;
/// From this many stalls on, they are not random.
const MIN_REPEATED_STALLS: usize = 3;
/// Minimum share of votes that must agree.
const MIN_AGREEING_SHARE: f64 = 0.8;

/// What stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StalledPart {
    Program,
    Host,
    Unknown,
}

/// The stalls of several experiments.
struct StalledRuns<'r> {
    runs: Vec<&'r Run<'r>>,
    stalls: Vec<&'r Stall>,
    messages: usize,
    waited: usize,
    /// Number of messages or echoes that show a stall of the server application, or of its host.
    program: usize,
    host: usize,
}

impl<'r> StalledRuns<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let stalls = runs.iter().flat_map(|run| &run.stalls.peer.stalls);
        let mut stalled = Self {
            stalls: stalls.collect(),
            messages: runs.iter().map(|run| run.flow.exchanges.len()).sum(),
            waited: runs.iter().map(|run| run.stalls.waited.len()).sum(),
            runs: runs.to_vec(),
            program: 0,
            host: 0,
        };
        for run in runs {
            let (program, host) = run.stalls.peer.votes(run.flow);
            let (quick, delayed) = echoes(run);
            stalled.program += program + quick;
            stalled.host += host + delayed;
        }
        stalled
    }

    fn share(&self) -> f64 {
        to_f64(self.waited) / to_f64(self.messages.max(1))
    }

    fn stalled_part(&self) -> StalledPart {
        let total = to_f64(self.program + self.host);
        match (to_f64(self.program), to_f64(self.host)) {
            _ if total <= 0.0 => StalledPart::Unknown,
            (program, _) if program >= MIN_AGREEING_SHARE * total => StalledPart::Program,
            (_, host) if host >= MIN_AGREEING_SHARE * total => StalledPart::Host,
            _ => StalledPart::Unknown,
        }
    }

    fn lengths(&self) -> SortedValues {
        self.stalls.iter().map(|stall| stall.length()).collect()
    }

    fn bursts(&self) -> SortedValues {
        self.stalls.iter().map(|stall| stall.burst).collect()
    }

    fn slope(&self) -> Option<f64> {
        let slopes = self.runs.iter().filter_map(|run| {
            let peer = &run.stalls.peer;
            slope(&peer.tasks, &peer.stalls)
        });
        slopes.collect::<SortedValues>().median()
    }

    fn confidence(&self) -> Confidence {
        let (stalls, stalled_part) = (self.stalls.len(), self.stalled_part());
        let level = match (stalls >= MIN_REPEATED_STALLS, stalled_part) {
            (true, StalledPart::Program) => Level::Sure,
            (true, _) | (false, StalledPart::Program) => Level::Likely,
            (false, _) => Level::Possible,
        };
        let part_text = match stalled_part {
            StalledPart::Program => format!(
                "{} show that its kernel answered during the stall",
                self.program
            ),
            StalledPart::Host => format!("{} show that its kernel did not answer", self.host),
            StalledPart::Unknown => {
                "it is not known whether its kernel answered during the stall".to_owned()
            }
        };
        let reason = format!(
            "{}; after each of them {} arrived at once; of the messages and echoes during the stalls {part_text}",
            plural(stalls, "stall"),
            plural(self.waited / stalls.max(1), "message"),
        );
        Confidence::new(level, reason)
    }
}

/// Number of echoes within the messages' stalls that were answered during the stall, and that waited.
fn echoes(run: &Run<'_>) -> (usize, usize) {
    let (mut quick, mut delayed) = (0, 0);
    for task in &run.stalls.echoes.tasks {
        let Some(remaining) = run.stalls.peer.remaining_at(task.due) else {
            continue;
        };
        match task.done.map(|done| (done - task.due) / remaining) {
            Some(share) if share < 0.3 => quick += 1,
            Some(share) if share > 0.7 => delayed += 1,
            _ => {}
        }
    }
    (quick, delayed)
}

fn evaluate(input: &RuleInput<'_>) -> Vec<RuleResult> {
    let pairs = input.pairs().into_iter();
    pairs
        .flat_map(|(pair, runs)| {
            let stalled = runs.into_iter().filter(|run| !run.stalls.waited.is_empty());
            // Separates effects of the plan's load from effects that exist without it.
            let (not_by_load, by_load): (Vec<_>, Vec<_>) =
                stalled.partition(|run| !attribute_effect(input, run).is_load());
            [not_by_load, by_load].map(|runs| diagnose_group(input, &pair, &StalledRuns::of(&runs)))
        })
        .flatten()
        .collect()
}

/// Mean delay that stalls add to the messages of experiments, in milliseconds.
fn mean_delay_ms(runs: &[&Run<'_>]) -> f64 {
    let stalls = runs.iter().flat_map(|run| &run.stalls.peer.stalls);
    let waited = stalls.flat_map(|stall| &stall.waited);
    let total: f64 = waited.map(|task| task.time).sum();
    let messages: usize = runs.iter().map(|run| run.flow.exchanges.len()).sum();
    total / to_f64(messages.max(1))
}

fn attribute_effect<'a>(input: &RuleInput<'a>, run: &Run<'a>) -> LoadAttribution<'a> {
    input.attribute_effect(run, mean_delay_ms(&[run]), |calm| Some(mean_delay_ms(calm)))
}

fn diagnose_group(
    input: &RuleInput<'_>,
    pair: &SitePair,
    stalled: &StalledRuns<'_>,
) -> Option<RuleResult> {
    let run = stalled
        .runs
        .iter()
        .max_by_key(|run| run.stalls.waited.len())?;
    if stalled.share() < MIN_SHARE {
        return None;
    }
    let (lengths, slope) = (stalled.lengths(), stalled.slope()?);
    let (median, longest) = (lengths.median()?, lengths.max()?);
    let wait = waits(stalled.stalls.iter().copied()).median()?;
    let attribution = attribute_effect(input, run);
    let cause = format!(
        "{}: {} stalled {}, and delayed {} of {} ({}). No reply arrived during a stall. After a stall, the delayed replies arrived within {} (median over the stalls). The delay jumps and then falls by {:.2} ms per millisecond; with a queue it would rise gradually. {}{}",
        input.name(pair),
        stalled.stalled_part().subject(),
        stalls_text(stalled.stalls.len(), median, longest),
        stalled.waited,
        plural(stalled.messages, "message"),
        percent(stalled.share()),
        millis(stalled.bursts().median()?),
        -slope,
        stalled.stalled_part().evidence(),
        load_text(attribution),
    );
    let mut result = RuleResult::new(
        cause,
        remedy(stalled.stalled_part(), attribution),
        stalled.confidence(),
    )
    .with_added_latency(wait)
    .with("stalls", to_f64(stalled.stalls.len()), "stalls")
    .with("median length", median, "ms")
    .with("longest", longest, "ms")
    .with_share(
        "messages delayed",
        stalled.waited,
        stalled.messages,
        "messages",
    )
    .with("delay at the median", wait, "ms")
    .with("slope of the delay", slope, "ms/ms")
    .with(
        "time until all replies arrived",
        stalled.bursts().median()?,
        "ms",
    );
    for run in &stalled.runs {
        let waited: Vec<_> = run.stalls.waited.iter().copied().collect();
        result = result.observed_at(run, &waited);
    }
    Some(result)
}

/// `once, for 84.82 ms`, `10 times, for 50.00 ms at the median and up to 52.00 ms`.
pub(crate) fn stalls_text(count: usize, median: f64, longest: f64) -> String {
    match count {
        1 => format!("once, for {}", millis(longest)),
        count => format!(
            "{count} times, for {} at the median and up to {}",
            millis(median),
            millis(longest)
        ),
    }
}

impl StalledPart {
    const fn subject(self) -> &'static str {
        match self {
            Self::Program => "the server application",
            Self::Host => "the peer's host, or a device on the path,",
            Self::Unknown => "the peer",
        }
    }

    const fn evidence(self) -> &'static str {
        match self {
            Self::Program => {
                "Its kernel continued to answer (acknowledgements or ICMP echoes): the server application did not run."
            }
            Self::Host => "Its kernel did not answer: the host (for example a VM) did not run.",
            Self::Unknown => "It is not known whether its kernel answered.",
        }
    }
}

fn load_text(attribution: LoadAttribution<'_>) -> String {
    match attribution {
        LoadAttribution::NotLoad => String::new(),
        LoadAttribution::Load(load, calm) => format!(
            " The background load {load} causes it: without the load stalls delay messages by {} on average.",
            millis(calm)
        ),
        LoadAttribution::Unknown(load) => format!(" The background load {load} may cause it."),
    }
}

fn remedy(stalled_part: StalledPart, attribution: LoadAttribution<'_>) -> String {
    let usual_remedy = match stalled_part {
        StalledPart::Program => {
            "on the peer, check the CPU quota (nr_throttled in cpu.stat of its cgroup, cpu.max), the run queue (/proc/PID/schedstat), garbage collection and locks. Give the server application a dedicated core or a larger quota"
        }
        StalledPart::Host => {
            "check the VM's steal time (st in vmstat) and its host: pinning, overcommitted cores, a quota of the VM's process, suspension, migration; give the VM a dedicated core"
        }
        StalledPart::Unknown => {
            "on the peer, check steal time (st in vmstat), the CPU quota (nr_throttled in cpu.stat of its cgroup), pinning and pauses of the application; give it a dedicated core"
        }
    };
    let load_remedy =
        "reduce the number of neighbours, pin them to other cores, or use dedicated cores";
    attribution.remedy(usual_remedy, load_remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stall_has_one_length() {
        assert_eq!(stalls_text(1, 84.82, 84.82), "once, for 84.82 ms");
        assert_eq!(
            stalls_text(3, 50.0, 52.0),
            "3 times, for 50.00 ms at the median and up to 52.00 ms"
        );
    }
}
