//! Stalls: times in which one side did nothing although tasks were due, and after which it did all of them at
//! once.
//!
//! The wait of due tasks jumps to the whole stall and falls by a millisecond per millisecond (a sawtooth). A
//! queue grows with the load and lets packets pass meanwhile.

mod peer;

use std::collections::BTreeSet;

use neph_model::{Outcome, Seq, Span};

use super::SortedValues;
use crate::data::{Exchange, FlowData};

pub(crate) use peer::{PeerStalls, of_peer};

/// A scheduler delays a process by some milliseconds; a stall is longer.
const MIN_STALL_MS: f64 = 10.0;
/// Minimum number of tasks that are due within it: two that are done together may be random.
const MIN_TASKS: usize = 3;
/// The due tasks are done within this share of the stall afterwards ...
const MAX_BURST_SHARE: f64 = 0.25;
/// ... or within this time: an application needs a moment for each.
const BURST_MS: f64 = 1.0;
/// Minimum share of the due tasks: single ones are lost, or belong to another connection.
const MIN_TOGETHER_SHARE: f64 = 0.8;
/// The last task before the stall waited for less than this share of it: the wait jumps ...
const MAX_EARLIER_WAIT: f64 = 0.3;
/// Tasks that become due within this multiple of the stall after it ...
const RECOVERY_SPAN: f64 = 1.5;
/// ... wait for less than this share of it, or until the end of the next stall at the latest.
const MAX_RECOVERED_WAIT_SHARE: f64 = 0.1;
/// Tasks become due continuously: no pause is longer than this share. Tasks that wait together for another
/// event become due together.
const MAX_PAUSE_SHARE: f64 = 0.45;

/// A task with its due time and its actual time, in milliseconds of the experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub seq: Seq,
    /// Its due time if the local side had not held it back: `due`, or earlier.
    pub(crate) requested: f64,
    pub(crate) due: f64,
    /// `None`: never done.
    pub(crate) done: Option<f64>,
}

/// A message that waited in a stall, and how long in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StallWait {
    pub seq: Seq,
    pub(crate) time: f64,
}

/// One stall, in milliseconds of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stall {
    /// Time of the last task before it.
    pub from: f64,
    /// Time of the first task after it.
    pub(crate) until: f64,
    /// The tasks that waited for its end, by due time; tasks that were never done count as waiting until
    /// then.
    pub(crate) waited: Vec<StallWait>,
    /// The tasks that the local side held back until its end, for example by TCP's window.
    pub(crate) held_back: Vec<Seq>,
    /// From its end until all of these were done.
    pub(crate) burst: f64,
}

impl Stall {
    pub(crate) const fn length(&self) -> f64 {
        self.until - self.from
    }

    /// Everything that waited for its end.
    pub(crate) fn affected_messages(&self) -> impl Iterator<Item = Seq> {
        let waited = self.waited.iter().map(|exchange| exchange.seq);
        waited.chain(self.held_back.iter().copied())
    }

    /// Whether it ended at or before the end of a pause that begins at `at`.
    fn reaches(&self, at: f64) -> bool {
        self.until + self.burst >= at - BURST_MS
    }
}

/// The tasks that are outstanding at the end of a pause.
struct Outstanding<'t> {
    tasks: Vec<&'t Task>,
    /// When tasks would have become due within the pause without TCP's window. The first acknowledgement
    /// opens the window, possibly before the first reply.
    due_in_pause: Vec<f64>,
    /// Tasks that were requested within the pause and held back by the local side until its end.
    held_back: Vec<&'t Task>,
    /// Other tasks become due after it.
    has_later_tasks: bool,
}

/// Finds the stalls in tasks. `others` are times of other activity of the same side.
pub(crate) fn stalls(tasks: &[Task], other_activity: &[f64]) -> Vec<Stall> {
    let mut tasks: Vec<Task> = tasks.to_vec();
    tasks.sort_by(|a, b| a.due.total_cmp(&b.due));
    let done_times = tasks.iter().filter_map(|task| task.done);
    // Before the first due time a stall is not visible.
    let first_due = tasks.first().map(|task| task.due);
    let mut activity_times: Vec<f64> = first_due
        .into_iter()
        .chain(done_times)
        .chain(other_activity.iter().copied())
        .collect();
    activity_times.sort_by(f64::total_cmp);
    let mut stalls: Vec<Stall> = Vec::new();
    // The wait of all tasks before the last pause: a longer path, or a queue.
    let mut level = 0.0;
    for pair in activity_times.windows(2) {
        let &[from, until] = pair else { continue };
        if until - from < MIN_STALL_MS {
            continue;
        }
        let previous = stalls.last().filter(|stall| stall.reaches(from));
        if previous.is_none() {
            let waited = waited_before(&tasks, from, until);
            if waited > MAX_EARLIER_WAIT * (until - from) {
                continue;
            }
            level = waited;
        }
        if recovers(&tasks, (from, until), level) {
            let outstanding = outstanding(&tasks, (from, until), level);
            stalls.extend(stall(&outstanding, from, until));
        }
    }
    stalls
}

/// The tasks that wait in a pause for longer than all tasks before it, which waited `level` milliseconds.
fn outstanding(sorted_tasks: &[Task], (from, until): (f64, f64), level: f64) -> Outstanding<'_> {
    let due = |task: &Task| task.due + level;
    // Tasks that have been due for much longer are lost, or wait for another event.
    let first = sorted_tasks.partition_point(|task| due(task) < from - (until - from));
    let after = sorted_tasks.partition_point(|task| due(task) < until);
    let has_later_tasks = after < sorted_tasks.len();
    let open_tasks = sorted_tasks[first..after]
        .iter()
        .filter(|task| task.done.is_none_or(|done| done >= until));
    let tasks: Vec<&Task> = open_tasks.collect();
    let due_in_pause = tasks.iter().filter(|task| due(task) > from);
    // The window closes because nothing is acknowledged: not before the first task has waited.
    let window_closed = due_in_pause.clone().next().map_or(until, |task| due(task));
    let due_in_pause: Vec<f64> = due_in_pause
        .map(|task| due(task).min(task.requested.max(window_closed)))
        .collect();
    let later_tasks = sorted_tasks[after..]
        .iter()
        .take_while(|task| task.requested < until);
    Outstanding {
        due_in_pause,
        held_back: later_tasks
            .filter(|task| task.requested > window_closed)
            .collect(),
        has_later_tasks,
        tasks,
    }
}

/// How long the last task before a pause had waited; 0 without one.
fn waited_before(tasks: &[Task], from: f64, until: f64) -> f64 {
    let first = tasks.partition_point(|task| task.due < from - 2.0 * (until - from));
    let earlier = tasks[first..].iter().take_while(|task| task.due <= from);
    let last_task = earlier
        .filter(|task| task.done.is_some_and(|done| done <= from))
        .last();
    let waited = last_task.and_then(|task| Some(task.done? - task.due));
    waited.unwrap_or(0.0).max(0.0)
}

/// Whether tasks that become due after a pause hardly wait, or are done at the end of the next one. Behind a
/// queue or on a longer path all tasks keep waiting.
fn recovers(tasks: &[Task], (from, until): (f64, f64), level: f64) -> bool {
    let length = until - from;
    let first = tasks.partition_point(|task| task.due < until);
    let after = tasks[first..]
        .iter()
        .take_while(|task| task.due <= until + RECOVERY_SPAN * length);
    let mut waited = after
        .filter_map(|task| Some(task.done? - task.due))
        .peekable();
    let max_recovered_wait = level + MAX_RECOVERED_WAIT_SHARE * length;
    waited.peek().is_none() || waited.any(|waited| waited <= max_recovered_wait)
}

/// Time after a stall of this length within which its tasks are done, at most.
const fn burst_limit(length: f64) -> f64 {
    BURST_MS.max(MAX_BURST_SHARE * length)
}

fn stall(outstanding: &Outstanding<'_>, from: f64, until: f64) -> Option<Stall> {
    let length = until - from;
    let ends = Some(until).filter(|_| outstanding.has_later_tasks);
    let mut previous_due = from;
    let held_back = outstanding.held_back.iter().map(|task| task.requested);
    let mut due: Vec<f64> = outstanding
        .due_in_pause
        .iter()
        .copied()
        .chain(held_back)
        .collect();
    due.sort_by(f64::total_cmp);
    let mut pauses = due.iter().chain(&ends).map(|due| {
        let pause = due - previous_due;
        previous_due = *due;
        pause
    });
    let max_pause = MAX_PAUSE_SHARE * length;
    if outstanding.due_in_pause.len() < MIN_TASKS || pauses.any(|pause| pause > max_pause) {
        return None;
    }
    let end = until + burst_limit(length);
    let done_times: Vec<f64> = outstanding
        .tasks
        .iter()
        .filter_map(|task| task.done)
        .collect();
    let done_together = done_times.iter().filter(|done| **done <= end);
    let last_done = done_together
        .clone()
        .fold(until, |last_done, done| last_done.max(*done));
    let (done_together, ended_count) = (done_together.count(), done_times.len());
    if crate::text::to_f64(done_together) < MIN_TOGETHER_SHARE * crate::text::to_f64(ended_count) {
        return None;
    }
    let waited = outstanding.tasks.iter().map(|task| StallWait {
        seq: task.seq,
        time: task.done.unwrap_or(until) - task.due,
    });
    Some(Stall {
        from,
        until,
        waited: waited.collect(),
        held_back: outstanding.held_back.iter().map(|task| task.seq).collect(),
        burst: last_done - until,
    })
}

/// Slope of the wait within stalls, in milliseconds per millisecond (least squares over all stalls).
pub(crate) fn slope(tasks: &[Task], stalls: &[Stall]) -> Option<f64> {
    let due: std::collections::BTreeMap<Seq, f64> =
        tasks.iter().map(|task| (task.seq, task.due)).collect();
    let (mut covariance, mut variance) = (0.0, 0.0);
    for stall in stalls {
        let points: Vec<(f64, f64)> = stall
            .waited
            .iter()
            .filter_map(|task| Some((*due.get(&task.seq)?, task.time)))
            .collect();
        let n = crate::text::to_f64(points.len());
        let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / n;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        covariance += points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>();
        variance += points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    }
    (variance > 0.0).then(|| covariance / variance)
}

/// Stalls of the client application: it neither sent due messages nor read.
pub(crate) fn of_client(flow: &FlowData) -> Vec<Stall> {
    let tasks: Vec<Task> = flow
        .exchanges
        .iter()
        .map(|exchange| Task {
            seq: exchange.seq,
            requested: millis(exchange.intended),
            due: millis(exchange.intended),
            done: exchange.send_started.map(millis),
        })
        .collect();
    let reads: Vec<f64> = flow.exchanges.iter().filter_map(read_time).collect();
    let mut stalls = stalls(&tasks, &reads);
    // Without a connection nothing can be sent: that is no stall.
    stalls.retain(|stall| is_on_one_connection(flow, stall));
    stalls
}

/// The messages that waited for the client application in its stalls: to be sent, or to be read.
pub(crate) fn waiting_for_client(flow: &FlowData, stalls: &[Stall]) -> BTreeSet<Seq> {
    let unsent = stalls.iter().flat_map(|stall| &stall.waited);
    let mut waiting: BTreeSet<Seq> = unsent.map(|exchange| exchange.seq).collect();
    for exchange in &flow.exchanges {
        let Some((read, send_started)) = read_time(exchange).zip(exchange.send_started.map(millis))
        else {
            continue;
        };
        let index =
            stalls.partition_point(|stall| stall.until + burst_limit(stall.length()) < read);
        let ended = stalls.get(index);
        if ended.is_some_and(|stall| stall.until <= read && send_started <= stall.from) {
            waiting.insert(exchange.seq);
        }
    }
    waiting
}

/// Whether the connection is the same before and after the stall, if one carries many messages. Otherwise
/// messages failed because there was no connection.
fn is_on_one_connection(flow: &FlowData, stall: &Stall) -> bool {
    let has_failed = |seq: Seq| {
        let index = flow
            .exchanges
            .partition_point(|exchange| exchange.seq < seq);
        let exchange = flow.exchanges.get(index);
        exchange.is_some_and(|exchange| exchange.outcome == Outcome::Failed)
    };
    if !stall.waited.iter().any(|task| has_failed(task.seq)) {
        return true;
    }
    let sent_messages = || {
        flow.exchanges
            .iter()
            .filter(|exchange| exchange.send_started.is_some())
    };
    let connections: BTreeSet<u32> = sent_messages()
        .map(|exchange| exchange.connection)
        .collect();
    if 2 * connections.len() > sent_messages().count() {
        return true;
    }
    let before = sent_messages().take_while(|exchange| millis(exchange.intended) <= stall.from);
    let mut after = sent_messages().skip_while(|exchange| millis(exchange.intended) < stall.until);
    let connection = |exchange: &Exchange| exchange.connection;
    before.last().map(connection) == after.next().map(connection)
}

/// When the client application had read a reply.
fn read_time(exchange: &Exchange) -> Option<f64> {
    Some(millis(exchange.intended) + exchange.response?.millis_f64())
}

pub(crate) fn millis(at: neph_model::Instant<neph_model::Local>) -> f64 {
    Span::from_nanos(at.nanos()).millis_f64()
}

/// The waits of stalls, in milliseconds.
pub(crate) fn waits<'s>(stalls: impl IntoIterator<Item = &'s Stall>) -> SortedValues {
    let waited = stalls.into_iter().flat_map(|stall| &stall.waited);
    waited.map(|task| task.time).collect()
}

#[cfg(test)]
mod tests;
