//! Use of the threads and cores of an end.

use std::collections::BTreeSet;

use neph_model::Span;
use neph_wire::throughput::{CpuInterval, ReceivedInterval, RrInterval, SentInterval};
use serde::{Deserialize, Serialize};

use super::rates::{nanos, ratio};

/// Use of an end's threads and host for one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The busiest stream's thread, as a share of a core (0 to 1).
    pub thread: f64,
    /// The most frequent core of this thread in the busiest second.
    pub core: Option<u32>,
    /// Busy share of that core, for all programs of the host.
    pub core_busy: Option<f64>,
    /// Its share in soft interrupts.
    pub core_softirq: Option<f64>,
    /// Its share that the hypervisor took.
    pub core_steal: Option<f64>,
    /// Share of the time that the streams' threads waited for their sockets.
    pub waited: f64,
    /// Share of the time that the streams' threads waited because of the requested rate.
    pub paced: f64,
    /// Share of the time that the streams' threads waited because of the policy's rate.
    #[serde(default)]
    pub policy: f64,
    /// CPU time of the end's whole process.
    pub process: Span,
    /// Datagrams that the end's kernel dropped at full receive buffers, for all programs.
    pub rcvbuf_errors: u64,
}

/// Use of a thread, and its core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) share: f64,
    pub(super) core: Option<u32>,
    length_ns: u64,
    cpu_ns: u64,
    waited_ns: u64,
    paced_ns: u64,
    policy_ns: u64,
    index: u32,
    stream: u16,
}

/// An interval of a stream's thread.
pub(super) trait Threaded {
    fn thread(&self) -> Thread;
}

impl Threaded for SentInterval {
    fn thread(&self) -> Thread {
        let length_ns = self.to_ns.saturating_sub(self.from_ns);
        Thread {
            share: ratio(self.cpu_ns, length_ns),
            core: self.core,
            length_ns,
            cpu_ns: self.cpu_ns,
            waited_ns: self.waited_ns,
            paced_ns: self.paced_ns,
            policy_ns: self.policy_ns,
            index: self.index,
            stream: self.stream,
        }
    }
}

impl Threaded for ReceivedInterval {
    fn thread(&self) -> Thread {
        let length_ns = self.to_ns.saturating_sub(self.from_ns);
        Thread {
            share: ratio(self.cpu_ns, length_ns),
            core: self.core,
            length_ns,
            cpu_ns: self.cpu_ns,
            waited_ns: self.waited_ns,
            paced_ns: 0,
            policy_ns: self.policy_ns,
            index: self.index,
            stream: self.stream,
        }
    }
}

/// Its waiting time is unknown: the thread blocks in the kernel most of the time.
impl Threaded for RrInterval {
    fn thread(&self) -> Thread {
        let length_ns = self.to_ns.saturating_sub(self.from_ns);
        Thread {
            share: ratio(self.cpu_ns, length_ns),
            core: self.core,
            length_ns,
            cpu_ns: self.cpu_ns,
            waited_ns: 0,
            paced_ns: 0,
            policy_ns: 0,
            index: self.index,
            stream: self.stream,
        }
    }
}

impl<T: Threaded> Threaded for &T {
    fn thread(&self) -> Thread {
        (*self).thread()
    }
}

/// The busiest of these threads.
pub(super) fn busiest(threads: impl Iterator<Item = Thread>) -> Option<Thread> {
    threads.max_by(|thread, other| thread.share.total_cmp(&other.share))
}

/// Busy share of the core in the interval.
pub(super) fn core_busy(cpu: &[CpuInterval], index: u32, core: Option<u32>) -> Option<f64> {
    let interval = cpu.iter().find(|interval| interval.index == index)?;
    let share = interval
        .cores
        .iter()
        .find(|core_share| Some(core_share.core) == core)?;
    Some(f64::from(share.busy_permille) / 1000.0)
}

pub(super) fn usage<T: Threaded>(
    intervals: impl IntoIterator<Item = T>,
    cpu: &[CpuInterval],
) -> Usage {
    let threads: Vec<Thread> = intervals
        .into_iter()
        .map(|interval| interval.thread())
        .collect();
    let sum = |of: &dyn Fn(&Thread) -> u64| threads.iter().map(of).fold(0, u64::saturating_add);
    let length = sum(&|thread| thread.length_ns);
    let mut usage = Usage {
        waited: ratio(sum(&|thread| thread.waited_ns), length),
        paced: ratio(sum(&|thread| thread.paced_ns), length),
        policy: ratio(sum(&|thread| thread.policy_ns), length),
        process: nanos(
            cpu.iter()
                .map(|interval| interval.process_ns)
                .fold(0, u64::saturating_add),
        ),
        rcvbuf_errors: cpu
            .iter()
            .map(|interval| interval.rcvbuf_errors)
            .fold(0, u64::saturating_add),
        ..Usage::default()
    };
    let streams = threads.iter().map(|thread| thread.stream);
    let stream_ids: BTreeSet<u16> = streams.collect();
    let shares = stream_ids.into_iter().map(|stream| {
        let stream_threads = || threads.iter().filter(move |thread| thread.stream == stream);
        let worked = stream_threads()
            .map(|thread| thread.cpu_ns)
            .fold(0, u64::saturating_add);
        let lasted = stream_threads()
            .map(|thread| thread.length_ns)
            .fold(0, u64::saturating_add);
        (ratio(worked, lasted), stream)
    });
    let Some((share, stream)) = shares.max_by(|share, other| share.0.total_cmp(&other.0)) else {
        return usage;
    };
    usage.thread = share;
    let stream_threads = threads.iter().filter(|thread| thread.stream == stream);
    add_core(&mut usage, stream_threads.copied().collect(), cpu);
    usage
}

/// Adds the shares of the thread's core in each second; the core may change between seconds.
fn add_core(usage: &mut Usage, threads: Vec<Thread>, cpu: &[CpuInterval]) {
    let (mut busy, mut softirq, mut steal, mut count) = (0.0, 0.0, 0.0, 0.0);
    for thread in &threads {
        let interval = cpu.iter().find(|interval| interval.index == thread.index);
        let cores = interval.map_or(&[][..], |interval| &interval.cores);
        if let Some(core) = cores
            .iter()
            .find(|core_share| Some(core_share.core) == thread.core)
        {
            busy += f64::from(core.busy_permille) / 1000.0;
            softirq += f64::from(core.softirq_permille) / 1000.0;
            steal += f64::from(core.steal_permille) / 1000.0;
            count += 1.0;
        }
    }
    usage.core = busiest(threads.into_iter()).and_then(|thread| thread.core);
    if count > 0.0 {
        usage.core_busy = Some(busy / count);
        usage.core_softirq = Some(softirq / count);
        usage.core_steal = Some(steal / count);
    }
}
