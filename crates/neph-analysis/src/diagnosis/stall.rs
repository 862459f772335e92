//! Stalls: times in which one side did nothing although something was due, and after which it did
//! all of it at once.
//!
//! The wait of what was due jumps to the whole stall at once and falls by a millisecond in each
//! millisecond: a saw tooth. A queue rises with the load and lets packets through meanwhile.

mod peer;

use std::collections::BTreeSet;

use neph_model::{Outcome, Seq, Span};

use super::Ordered;
use crate::data::{Exchange, FlowData};

pub(crate) use peer::{PeerStalls, of_peer};

/// A scheduler lets a program wait for some milliseconds; a stall is longer.
const LEAST_MS: f64 = 10.0;
/// So many have to be due within it: two that are done together are chance.
const FEW: usize = 3;
/// What was due is done within this share of the stall afterwards ...
const BURST: f64 = 0.25;
/// ... or within this time: a program takes a moment for each.
const BURST_MS: f64 = 1.0;
/// So much of it, that is: single ones get lost, or belong to another connection.
const TOGETHER: f64 = 0.8;
/// What was done last before it had waited for less than this share of it: the wait jumps ...
const JUMP: f64 = 0.3;
/// What becomes due within so many lengths after it ...
const NEXT: f64 = 1.5;
/// ... waits for less than this share of it: at the latest at the end of a next one.
const RECOVERED: f64 = 0.1;
/// Something becomes due all the time: no pause is longer than this share. What waits together for
/// something else becomes due together.
const PAUSE: f64 = 0.45;

/// Something that is due at a time and done later, in milliseconds of the experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub seq: Seq,
    /// When it would have been due if nothing had held it back on our own side: `due`, or earlier.
    pub(crate) asked: f64,
    pub(crate) due: f64,
    /// `None`: never.
    pub(crate) done: Option<f64>,
}

/// What waited in a stall, and for how long in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waited {
    pub seq: Seq,
    pub(crate) time: f64,
}

/// One stall, in milliseconds of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stall {
    /// What was done last before it.
    pub from: f64,
    /// What was done first after it.
    pub(crate) until: f64,
    /// What waited for its end, in order of being due; what never came waited until then.
    pub(crate) waited: Vec<Waited>,
    /// What was held back on our own side until its end, by TCP's window for instance.
    pub(crate) held: Vec<Seq>,
    /// From its end until all of that was done.
    pub(crate) burst: f64,
}

impl Stall {
    pub(crate) const fn length(&self) -> f64 {
        self.until - self.from
    }

    /// Everything that waited for its end.
    pub(crate) fn all(&self) -> impl Iterator<Item = Seq> {
        let waited = self.waited.iter().map(|one| one.seq);
        waited.chain(self.held.iter().copied())
    }

    /// Whether it ended with or before what comes after a silence from `at` on.
    fn reaches(&self, at: f64) -> bool {
        self.until + self.burst >= at - BURST_MS
    }
}

/// What is outstanding when a silence ends.
struct Outstanding<'t> {
    tasks: Vec<&'t Task>,
    /// When those would have become due that did within the silence, had they not waited for the window: it
    /// opens with the first acknowledgement, which may come before the first reply.
    fresh: Vec<f64>,
    /// What our own side held back until its end, although it was asked for within the silence.
    held: Vec<&'t Task>,
    /// Something becomes due after it.
    goes_on: bool,
}

/// The stalls among tasks. `others` are times at which the same side is seen to do something else.
pub(crate) fn stalls(tasks: &[Task], others: &[f64]) -> Vec<Stall> {
    let mut tasks: Vec<Task> = tasks.to_vec();
    tasks.sort_by(|a, b| a.due.total_cmp(&b.due));
    let done = tasks.iter().filter_map(|task| task.done);
    // Before the first is due nobody knows of a stall.
    let begun = tasks.first().map(|task| task.due);
    let mut acts: Vec<f64> = begun
        .into_iter()
        .chain(done)
        .chain(others.iter().copied())
        .collect();
    acts.sort_by(f64::total_cmp);
    let mut found: Vec<Stall> = Vec::new();
    // What everything waited before the last silence: a longer path, or a queue.
    let mut level = 0.0;
    for pair in acts.windows(2) {
        let &[from, until] = pair else { continue };
        if until - from < LEAST_MS {
            continue;
        }
        let before = found.last().filter(|stall| stall.reaches(from));
        if before.is_none() {
            let waited = waited_before(&tasks, from, until);
            if waited > JUMP * (until - from) {
                continue;
            }
            level = waited;
        }
        if recovers(&tasks, (from, until), level) {
            let outstanding = outstanding(&tasks, (from, until), level);
            found.extend(stall(&outstanding, from, until));
        }
    }
    found
}

/// What waits in a silence for longer than everything did before it, which was `level` milliseconds.
fn outstanding(all: &[Task], (from, until): (f64, f64), level: f64) -> Outstanding<'_> {
    let due = |task: &Task| task.due + level;
    // What has been due for much longer is lost, or waits for something else.
    let first = all.partition_point(|task| due(task) < from - (until - from));
    let after = all.partition_point(|task| due(task) < until);
    let goes_on = after < all.len();
    let open = all[first..after]
        .iter()
        .filter(|task| task.done.is_none_or(|done| done >= until));
    let tasks: Vec<&Task> = open.collect();
    let fresh = tasks.iter().filter(|task| due(task) > from);
    // The window closes because nothing is acknowledged: not before the first of them has waited.
    let closed = fresh.clone().next().map_or(until, |task| due(task));
    let fresh: Vec<f64> = fresh
        .map(|task| due(task).min(task.asked.max(closed)))
        .collect();
    let later = all[after..].iter().take_while(|task| task.asked < until);
    Outstanding {
        fresh,
        held: later.filter(|task| task.asked > closed).collect(),
        goes_on,
        tasks,
    }
}

/// How long what was done last before a silence had waited; 0 of nothing.
fn waited_before(tasks: &[Task], from: f64, until: f64) -> f64 {
    let first = tasks.partition_point(|task| task.due < from - 2.0 * (until - from));
    let earlier = tasks[first..].iter().take_while(|task| task.due <= from);
    let last = earlier
        .filter(|task| task.done.is_some_and(|done| done <= from))
        .last();
    let waited = last.and_then(|task| Some(task.done? - task.due));
    waited.unwrap_or(0.0).max(0.0)
}

/// Whether something that becomes due after a silence hardly waits any more; so does what is due at the
/// end of a next one. Behind a queue or on a longer path everything goes on waiting.
fn recovers(tasks: &[Task], (from, until): (f64, f64), level: f64) -> bool {
    let length = until - from;
    let first = tasks.partition_point(|task| task.due < until);
    let after = tasks[first..]
        .iter()
        .take_while(|task| task.due <= until + NEXT * length);
    let mut waited = after
        .filter_map(|task| Some(task.done? - task.due))
        .peekable();
    waited.peek().is_none() || waited.any(|waited| waited <= level + RECOVERED * length)
}

/// How long after a stall of a length what was due in it is done, at most.
const fn within(length: f64) -> f64 {
    BURST_MS.max(BURST * length)
}

fn stall(outstanding: &Outstanding<'_>, from: f64, until: f64) -> Option<Stall> {
    let length = until - from;
    let ends = Some(until).filter(|_| outstanding.goes_on);
    let mut before = from;
    let held = outstanding.held.iter().map(|task| task.asked);
    let mut due: Vec<f64> = outstanding.fresh.iter().copied().chain(held).collect();
    due.sort_by(f64::total_cmp);
    let mut pauses = due.iter().chain(&ends).map(|due| {
        let pause = due - before;
        before = *due;
        pause
    });
    if outstanding.fresh.len() < FEW || pauses.any(|pause| pause > PAUSE * length) {
        return None;
    }
    let end = until + within(length);
    let ended: Vec<f64> = outstanding
        .tasks
        .iter()
        .filter_map(|task| task.done)
        .collect();
    let together = ended.iter().filter(|done| **done <= end);
    let last = together.clone().fold(until, |last, done| last.max(*done));
    let (together, all) = (together.count(), ended.len());
    if crate::words::real(together) < TOGETHER * crate::words::real(all) {
        return None;
    }
    let waited = outstanding.tasks.iter().map(|task| Waited {
        seq: task.seq,
        time: task.done.unwrap_or(until) - task.due,
    });
    Some(Stall {
        from,
        until,
        waited: waited.collect(),
        held: outstanding.held.iter().map(|task| task.seq).collect(),
        burst: last - until,
    })
}

/// The slope of the wait within stalls, in milliseconds per millisecond; by least squares over all of
/// them.
pub(crate) fn slope(tasks: &[Task], stalls: &[Stall]) -> Option<f64> {
    let due: std::collections::BTreeMap<Seq, f64> =
        tasks.iter().map(|task| (task.seq, task.due)).collect();
    let (mut above, mut below) = (0.0, 0.0);
    for stall in stalls {
        let points: Vec<(f64, f64)> = stall
            .waited
            .iter()
            .filter_map(|one| Some((*due.get(&one.seq)?, one.time)))
            .collect();
        let n = crate::words::real(points.len());
        let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / n;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        above += points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>();
        below += points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    }
    (below > 0.0).then(|| above / below)
}

/// Stalls of our own program: it neither sent what was due nor read.
pub(crate) fn of_client(flow: &FlowData) -> Vec<Stall> {
    let tasks: Vec<Task> = flow
        .exchanges
        .iter()
        .map(|one| Task {
            seq: one.seq,
            asked: millis(one.intended),
            due: millis(one.intended),
            done: one.begun.map(millis),
        })
        .collect();
    let reads: Vec<f64> = flow.exchanges.iter().filter_map(read).collect();
    let mut found = stalls(&tasks, &reads);
    // Without a connection nothing can be sent: that is no stall.
    found.retain(|stall| is_on_one_connection(flow, stall));
    found
}

/// The messages that waited for our program in its stalls: to be sent, or to be read.
pub(crate) fn waiting_for_client(flow: &FlowData, stalls: &[Stall]) -> BTreeSet<Seq> {
    let unsent = stalls.iter().flat_map(|stall| &stall.waited);
    let mut found: BTreeSet<Seq> = unsent.map(|one| one.seq).collect();
    for one in &flow.exchanges {
        let Some((read, begun)) = read(one).zip(one.begun.map(millis)) else {
            continue;
        };
        let place = stalls.partition_point(|stall| stall.until + within(stall.length()) < read);
        let ended = stalls.get(place);
        if ended.is_some_and(|stall| stall.until <= read && begun <= stall.from) {
            found.insert(one.seq);
        }
    }
    found
}

/// Whether nothing failed in it for want of a connection: those before and after it are the same, where
/// one carries many messages.
fn is_on_one_connection(flow: &FlowData, stall: &Stall) -> bool {
    let failed = |seq: Seq| {
        let place = flow.exchanges.partition_point(|one| one.seq < seq);
        let one = flow.exchanges.get(place);
        one.is_some_and(|one| one.outcome == Outcome::Failed)
    };
    if !stall.waited.iter().any(|one| failed(one.seq)) {
        return true;
    }
    let sent = || flow.exchanges.iter().filter(|one| one.begun.is_some());
    let connections: BTreeSet<u32> = sent().map(|one| one.connection).collect();
    if 2 * connections.len() > sent().count() {
        return true;
    }
    let before = sent().take_while(|one| millis(one.intended) <= stall.from);
    let mut after = sent().skip_while(|one| millis(one.intended) < stall.until);
    let connection = |one: &Exchange| one.connection;
    before.last().map(connection) == after.next().map(connection)
}

/// When our program had read a reply.
fn read(one: &Exchange) -> Option<f64> {
    Some(millis(one.intended) + one.response?.millis_f64())
}

pub(crate) fn millis(at: neph_model::Instant<neph_model::Own>) -> f64 {
    Span::from_nanos(at.nanos()).millis_f64()
}

/// A quantile of the waits of stalls, in milliseconds.
pub(crate) fn waits<'s>(stalls: impl IntoIterator<Item = &'s Stall>) -> Ordered {
    let waited = stalls.into_iter().flat_map(|stall| &stall.waited);
    waited.map(|one| one.time).collect()
}

#[cfg(test)]
mod tests;
