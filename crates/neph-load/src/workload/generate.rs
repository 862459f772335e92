//! Runs the threads of a generator, and merges their seconds.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use neph_model::{Span, Stop, Wall};
use neph_sys::clock::{self, RawNanos};
use neph_sys::{files, sched};

use super::engine::{Engine, EngineParts};
use super::error::WorkloadError;
use super::measured::WorkloadMeasured;
use super::pool::Pool;
use super::recorder::{Periods, Recorder, ThreadSecond};
use super::second::WorkloadSecond;
use super::source::Source;
use super::spec::{Exchange, WorkloadSpec};
use super::tally::Tally;
use super::validity::ValidityCheck;

/// From the start of the threads to the start of the load.
const START_DELAY: Span = Span::from_millis(50);
/// Descriptors that are no connections of the load: standard streams, epoll, files of /proc.
const RESERVED_FILES: u64 = 64;

/// Generates a load, and reports each second.
///
/// # Errors
/// The request is not valid, or this host refuses threads or descriptors.
pub fn generate(
    spec: &WorkloadSpec,
    stop: &Stop,
    on_second: &mut dyn FnMut(&WorkloadSecond),
) -> Result<WorkloadMeasured, WorkloadError> {
    let files = files::raise_limit().map_err(WorkloadError::Threads)?;
    let files = files.saturating_sub(RESERVED_FILES).max(1);
    let limit = spec
        .connections
        .map_or(files, |max| u64::from(max).min(files));
    let exchange = spec.exchange(limit).map_err(WorkloadError::Request)?;
    // Each thread needs at least one connection.
    let threads = u64::from(spec.threads.max(1)).min(limit);
    let threads = u32::try_from(threads).unwrap_or(1);
    let start = RawNanos(clock::raw().0 + START_DELAY.nanos());
    let periods = Periods {
        start,
        measured_from: RawNanos(start.0 + spec.warmup.nanos()),
        end: RawNanos(start.0 + spec.duration.nanos()),
        interval: spec.interval,
        lateness_bound: spec.lateness_bound,
    };
    let started = Wall::from_unix_nanos(clock::pair().offset() + start.0);
    let running = Running {
        spec,
        exchange: &exchange,
        stop,
        periods,
        threads,
    };
    let mut collected = Collected::new(spec, threads);
    let tally = running.run(limit, &mut collected, on_second)?;
    let lasted = Span::from_nanos(clock::raw().0 - start.0)
        .min(spec.duration)
        .max(Span::ZERO);
    Ok(WorkloadMeasured {
        started,
        lasted,
        measured: (lasted - spec.warmup).max(Span::ZERO),
        validity: collected.check.end(&tally),
        tally,
        connection_limit: limit,
        threads,
        is_stopped: stop.is_set(),
    })
}

/// What all threads share.
struct Running<'a> {
    spec: &'a WorkloadSpec,
    exchange: &'a Exchange,
    stop: &'a Stop,
    periods: Periods,
    threads: u32,
}

impl Running<'_> {
    /// Runs all threads, which share `limit` connections; returns the counts of the measured time.
    fn run(
        &self,
        limit: u64,
        collected: &mut Collected<'_>,
        on_second: &mut dyn FnMut(&WorkloadSecond),
    ) -> Result<Tally, WorkloadError> {
        let (sender, receiver) = mpsc::channel();
        let threads = u64::from(self.threads);
        thread::scope(|scope| {
            let mut handles = Vec::new();
            for number in 0..self.threads {
                let recorder_sender = sender.clone();
                let index = u64::from(number);
                let part = limit * (index + 1) / threads - limit * index / threads;
                let max = usize::try_from(part.max(1)).unwrap_or(usize::MAX);
                let work = move || self.thread(number, max, recorder_sender);
                let builder = thread::Builder::new().name(format!("load-{number}"));
                handles.push(builder.spawn_scoped(scope, work));
            }
            drop(sender);
            collected.receive(&receiver, on_second);
            let mut tally = Tally::default();
            for handle in handles {
                let handle = handle.map_err(WorkloadError::Threads)?;
                let part = handle.join().unwrap_or_else(|panic| resume_unwind(panic));
                tally.merge(&part.map_err(WorkloadError::Threads)?);
            }
            Ok(tally)
        })
    }

    fn thread(
        &self,
        number: u32,
        max_connections: usize,
        seconds: mpsc::Sender<ThreadSecond>,
    ) -> std::io::Result<Tally> {
        // Less precise wake-ups show as lateness.
        let _ = sched::set_timer_slack(std::time::Duration::from_nanos(1));
        let share = self.spec.share.of_thread(number, self.threads);
        let start = self.periods.start;
        let engine = Engine::new(EngineParts {
            exchange: self.exchange,
            stop: self.stop,
            periods: self.periods,
            source: Source::new(&self.spec.demand, self.spec.seed, share, start),
            pool: Pool::new(max_connections)?,
            recorder: Recorder::new(self.periods, seconds),
        });
        engine.run()
    }
}

/// Seconds of which some threads are missing.
struct Collected<'a> {
    spec: &'a WorkloadSpec,
    threads: u32,
    partial: BTreeMap<u32, (u32, WorkloadSecond)>,
    check: ValidityCheck,
}

impl<'a> Collected<'a> {
    fn new(spec: &'a WorkloadSpec, threads: u32) -> Self {
        Self {
            spec,
            threads,
            partial: BTreeMap::new(),
            check: ValidityCheck::default(),
        }
    }

    /// Merges seconds until all threads have ended.
    fn receive(
        &mut self,
        receiver: &Receiver<ThreadSecond>,
        on_second: &mut dyn FnMut(&WorkloadSecond),
    ) {
        loop {
            match receiver.recv_timeout(std::time::Duration::from_secs(1)) {
                Ok(second) => self.add(&second),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Some(entry) = self.partial.first_entry()
                && entry.get().0 == self.threads
            {
                let (_, second) = entry.remove();
                self.complete(second, on_second);
            }
        }
        for (_, (_, second)) in std::mem::take(&mut self.partial) {
            self.complete(second, on_second);
        }
    }

    fn add(&mut self, part: &ThreadSecond) {
        let end = self.spec.interval.times(i64::from(part.index) + 1);
        let is_warmup = end <= self.spec.warmup;
        let (count, second) = self.partial.entry(part.index).or_insert_with(|| {
            let second = WorkloadSecond {
                index: part.index,
                tally: Tally::default(),
                in_flight: 0,
                waiting: 0,
                thread_cpu: 0.0,
                is_warmup,
                is_void: false,
            };
            (0, second)
        });
        *count += 1;
        second.tally.merge(&part.tally);
        second.in_flight += part.in_flight;
        second.waiting += part.waiting;
        second.thread_cpu = second.thread_cpu.max(part.cpu_share);
    }

    fn complete(&mut self, mut second: WorkloadSecond, on_second: &mut dyn FnMut(&WorkloadSecond)) {
        second.is_void = self.check.add(&second);
        on_second(&second);
    }
}
