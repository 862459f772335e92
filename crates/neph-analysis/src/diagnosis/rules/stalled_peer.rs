//! A stalled peer: it stands still for a while, and then answers at once all that was asked meanwhile.

use crate::diagnosis::{
    Confidence, Doing, Found, Level, Need, Ordered, Place, Rule, Run, Sight, Stall, slope, waits,
};
use crate::numbers::{millis, percent};
use crate::words::{plural, real};

pub(crate) const RULE: Rule = Rule {
    name: "stalled-peer",
    title: "stalled peer",
    limits: "It sees that nothing was answered for a time and then all of it at once. A device on the path that holds packets and releases them together looks like a peer whose host stands still. Behind a proxy it is the proxy's kernel that acknowledges. Stalls that are shorter than three messages' intervals, or than 10 ms, it does not see.",
    covers: &["transmission"],
    needs: &[Need::Replies(MESSAGES)],
    look,
};

/// So many messages at least: fewer have no usual time.
const MESSAGES: usize = 6;
/// So much of the messages waits: it moves their 99th percentile.
const LEAST_SHARE: f64 = 0.01;
/// So many stalls are no chance.
const SEVERAL: usize = 3;
/// Of the votes so much has to agree.
const AGREED: f64 = 0.8;

/// What stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Program,
    Host,
    Unknown,
}

/// The stalls of several experiments.
struct Seen<'r> {
    runs: Vec<&'r Run<'r>>,
    stalls: Vec<&'r Stall>,
    messages: usize,
    waited: usize,
    /// By how many messages or echoes it was the peer's program, or its host, that stood still.
    program: usize,
    host: usize,
}

impl<'r> Seen<'r> {
    fn of(runs: &[&'r Run<'r>]) -> Self {
        let all = runs.iter().flat_map(|run| &run.stalls.peer.stalls);
        let mut seen = Self {
            stalls: all.collect(),
            messages: runs.iter().map(|run| run.flow.exchanges.len()).sum(),
            waited: runs.iter().map(|run| run.stalls.waited.len()).sum(),
            runs: runs.to_vec(),
            program: 0,
            host: 0,
        };
        for run in runs {
            let (program, host) = run.stalls.peer.votes(run.flow);
            let (quick, held) = echoes(run);
            seen.program += program + quick;
            seen.host += host + held;
        }
        seen
    }

    fn share(&self) -> f64 {
        real(self.waited) / real(self.messages.max(1))
    }

    fn who(&self) -> Who {
        let all = real(self.program + self.host);
        match (real(self.program), real(self.host)) {
            _ if all <= 0.0 => Who::Unknown,
            (program, _) if program >= AGREED * all => Who::Program,
            (_, host) if host >= AGREED * all => Who::Host,
            _ => Who::Unknown,
        }
    }

    fn lengths(&self) -> Ordered {
        self.stalls.iter().map(|stall| stall.length()).collect()
    }

    fn bursts(&self) -> Ordered {
        self.stalls.iter().map(|stall| stall.burst).collect()
    }

    fn slope(&self) -> Option<f64> {
        let slopes = self.runs.iter().filter_map(|run| {
            let peer = &run.stalls.peer;
            slope(&peer.tasks, &peer.stalls)
        });
        slopes.collect::<Ordered>().median()
    }

    fn confidence(&self) -> Confidence {
        let (stalls, who) = (self.stalls.len(), self.who());
        let level = match (stalls >= SEVERAL, who) {
            (true, Who::Program) => Level::Sure,
            (true, _) | (false, Who::Program) => Level::Likely,
            (false, _) => Level::Possible,
        };
        let shown = match who {
            Who::Program => format!("{} show that its kernel answered meanwhile", self.program),
            Who::Host => format!("{} show that its kernel did not either", self.host),
            Who::Unknown => "whether its kernel answered meanwhile is not known".to_owned(),
        };
        let why = format!(
            "{}, after each of which {} came at once; of the messages and echoes within them {shown}",
            plural(stalls, "stall"),
            plural(self.waited / stalls.max(1), "message"),
        );
        Confidence::new(level, why)
    }
}

/// The echoes within the messages' stalls that were answered meanwhile, and those that waited too.
fn echoes(run: &Run<'_>) -> (usize, usize) {
    let (mut quick, mut held) = (0, 0);
    for task in &run.stalls.echoes.tasks {
        let Some(rest) = run.stalls.peer.rest_at(task.due) else {
            continue;
        };
        match task.done.map(|done| (done - task.due) / rest) {
            Some(share) if share < 0.3 => quick += 1,
            Some(share) if share > 0.7 => held += 1,
            _ => {}
        }
    }
    (quick, held)
}

fn look(sight: &Sight<'_>) -> Vec<Found> {
    let places = sight.places().into_iter();
    places
        .flat_map(|(place, runs)| {
            let seen = runs.into_iter().filter(|run| !run.stalls.waited.is_empty());
            // What the plan's load does is told apart from what is there without it.
            let (own, by_load): (Vec<_>, Vec<_>) =
                seen.partition(|run| !whose(sight, run).is_load());
            [own, by_load].map(|runs| told(sight, &place, &Seen::of(&runs)))
        })
        .flatten()
        .collect()
}

/// By how many milliseconds stalls delay the messages of experiments, at the mean.
fn delayed(runs: &[&Run<'_>]) -> f64 {
    let stalls = runs.iter().flat_map(|run| &run.stalls.peer.stalls);
    let waited = stalls.flat_map(|stall| &stall.waited);
    let total: f64 = waited.map(|one| one.time).sum();
    let messages: usize = runs.iter().map(|run| run.flow.exchanges.len()).sum();
    total / real(messages.max(1))
}

fn whose<'a>(sight: &Sight<'a>, run: &Run<'a>) -> Doing<'a> {
    sight.whose(run, delayed(&[run]), |calm| Some(delayed(calm)))
}

fn told(sight: &Sight<'_>, place: &Place, seen: &Seen<'_>) -> Option<Found> {
    let run = seen.runs.iter().max_by_key(|run| run.stalls.waited.len())?;
    if seen.share() < LEAST_SHARE {
        return None;
    }
    let (lengths, slope) = (seen.lengths(), seen.slope()?);
    let median = lengths.median()?;
    let wait = waits(seen.stalls.iter().copied()).median()?;
    let doing = whose(sight, run);
    let cause = format!(
        "{}: {} stood still {}, for {} at the median and up to {}, and delayed {} of {} ({}): nothing came back meanwhile, then all of it within {}. The wait jumps at once and falls by {:.2} ms a millisecond; behind a queue it would rise with the load, and replies would go on coming. {}{}",
        sight.name(place),
        seen.who().subject(),
        times(seen.stalls.len()),
        millis(median),
        millis(lengths.greatest()?),
        seen.waited,
        plural(seen.messages, "message"),
        percent(seen.share()),
        millis(seen.bursts().median()?),
        -slope,
        seen.who().evidence(),
        of_load(doing),
    );
    let mut found = Found::new(cause, remedy(seen.who(), doing), seen.confidence())
        .costing(wait)
        .with("stalls", real(seen.stalls.len()), "stalls")
        .with("length at the median", median, "ms")
        .with("longest", lengths.greatest()?, "ms")
        .with("messages delayed", seen.share(), "")
        .with("delay at the median", wait, "ms")
        .with("slope of the delay", slope, "ms/ms")
        .with("until all was answered", seen.bursts().median()?, "ms");
    for run in &seen.runs {
        let waited: Vec<_> = run.stalls.waited.iter().copied().collect();
        found = found.seen_at(run, &waited);
    }
    Some(found)
}

/// `once`, `10 times`.
pub(crate) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        many => format!("{many} times"),
    }
}

impl Who {
    const fn subject(self) -> &'static str {
        match self {
            Self::Program => "the peer's program",
            Self::Host => "the peer's host, or what carries its packets,",
            Self::Unknown => "the peer",
        }
    }

    const fn evidence(self) -> &'static str {
        match self {
            Self::Program => {
                "Its kernel went on receiving and acknowledging: the program did not run."
            }
            Self::Host => {
                "Its kernel did not answer either: the host, a virtual machine for instance, did not run."
            }
            Self::Unknown => "Whether its kernel answered meanwhile is not known.",
        }
    }
}

fn of_load(doing: Doing<'_>) -> String {
    match doing {
        Doing::Own => String::new(),
        Doing::Load(load, calm) => format!(
            " The plan's load {load} does it: without it stalls delay messages by {} at the mean.",
            millis(calm)
        ),
        Doing::Unknown(load) => format!(" The plan makes the load {load} meanwhile."),
    }
}

fn remedy(who: Who, doing: Doing<'_>) -> String {
    let own = match who {
        Who::Program => {
            "look on the peer at its CPU quota (nr_throttled in cpu.stat of its cgroup, cpu.max), at its run queue (/proc/PID/schedstat), at garbage collection and locks; give the program a core of its own or a larger quota"
        }
        Who::Host => {
            "look at the virtual machine's steal time (st in vmstat) and at its host: pinning, overcommitted cores, a quota of the VM's process, suspension or migration; give the guest a core of its own"
        }
        Who::Unknown => {
            "look on the peer at steal time (st in vmstat), at its CPU quota (nr_throttled in cpu.stat of its cgroup), at pinning and at pauses of the program; give it a core of its own"
        }
    };
    let of_load = "this is what sharing with the load costs: fewer neighbours, pinning to other cores, or a CPU of its own gives the time back";
    doing.remedy(own, of_load)
}
