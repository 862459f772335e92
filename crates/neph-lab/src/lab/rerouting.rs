//! Route changes over time: new seeds for the kernels' hashes, new weights of next hops.
//!
//! Owns the thread that makes the kernels change; [`routers`] decides what applies when. A kernel changes
//! some milliseconds after its order: the record has the actual time. There is nothing to undo, because the
//! routers are namespaces of the lab.

mod routers;

use std::collections::BTreeMap;
use std::io::PipeReader;
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use neph_model::Span;
use neph_sys::clock;
use neph_sys::ppoll::{self, Awaited};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::worker::Worker;
use crate::cue::Cue;
use crate::gate::{Moment, ScheduleEvent};
use crate::plan::Plan;
use crate::truth::{Record, Recorder, TruthThread, TruthWriter};
use routers::{RouterState, ScheduledRouters};

/// Longest sleep of the thread: it notices a new cue after this.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The record's name; no link can have it.
pub(super) const RECORD_FILE_NAME: &str = "routes_.truth";
const NOT_APPLIED: i64 = i64::MIN;

/// What a scheduled change at a router did since the last cue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerouteStatus {
    /// The router.
    pub site: String,
    /// The link; `None` for a reshuffle.
    pub link: Option<String>,
    /// Whether it is active now; a reshuffle is active from its first time on.
    pub holds: bool,
    /// How often it began.
    pub times: u64,
    /// When it was last applied, in nanoseconds after the cue; `None` before that.
    pub last_ns: Option<i64>,
    /// How often the kernel refused it.
    pub refused: u64,
}

/// The state of a change for other threads.
#[derive(Clone, Debug)]
pub(super) struct RerouteHandle {
    site: String,
    link: Option<String>,
    counters: Arc<RerouteCounters>,
}

#[derive(Debug)]
struct RerouteCounters {
    begin_count: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    /// Nanoseconds after the cue.
    last_applied: AtomicI64,
}

impl Default for RerouteCounters {
    fn default() -> Self {
        Self {
            begin_count: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_applied: AtomicI64::new(NOT_APPLIED),
        }
    }
}

impl RerouteHandle {
    pub(super) fn status(&self) -> RerouteStatus {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = self.counters.last_applied.load(Ordering::Relaxed);
        RerouteStatus {
            site: self.site.clone(),
            link: self.link.clone(),
            holds: load(&self.counters.begin_count) > load(&self.counters.ended),
            times: load(&self.counters.begin_count),
            last_ns: (last != NOT_APPLIED).then_some(last),
            refused: load(&self.counters.refused),
        }
    }

    fn reset(&self) {
        for count in [&self.counters.begin_count, &self.counters.ended] {
            count.store(0, Ordering::Relaxed);
        }
        self.counters
            .last_applied
            .store(NOT_APPLIED, Ordering::Relaxed);
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct Rerouting {
    worker: Worker<()>,
    handles: Vec<RerouteHandle>,
    writer: Option<TruthWriter>,
}

impl Rerouting {
    /// Changes routes on schedule after each `cue`, with an optional record; `None` without changes.
    pub(super) fn start(
        plan: &Plan<'_>,
        cue: Arc<Cue>,
        record: Option<(&Path, &TruthThread)>,
    ) -> Result<Option<Self>, LabError> {
        if plan.topology.reroutes.is_empty() {
            return Ok(None);
        }
        let routers = ScheduledRouters::from_topology(plan.topology, &plan.sites);
        let recorder_result = record.map(|(folder, truth_thread)| {
            let file = folder.join(RECORD_FILE_NAME);
            let recorder_result = truth_thread.open(&file, "routes", NonZeroU32::MIN);
            recorder_result.map_err(|source| LabError::File { file, source })
        });
        let (recorder, writer) = recorder_result.transpose()?.unzip();
        let names = routers.names.iter().cloned();
        let handles = names.map(|(site, link)| RerouteHandle {
            site,
            link,
            counters: Arc::default(),
        });
        let handles: Vec<RerouteHandle> = handles.collect();
        let route_changer = RouteChanger {
            states: BTreeMap::new(),
            routers,
            handles: handles.clone(),
            recorder,
            cue: None,
            applied_until: Span::ZERO,
        };
        let work = move |stop: &PipeReader| route_changer.run(&cue, stop);
        let worker = Worker::start("lab-routes", work).map_err(|source| LabError::Thread {
            task: "changing routes".to_owned(),
            source,
        })?;
        Ok(Some(Self {
            worker,
            handles,
            writer,
        }))
    }

    pub(super) fn handles(&self) -> Vec<RerouteHandle> {
        self.handles.clone()
    }

    pub(super) fn stop(self) {
        self.worker.stop();
        if let Some(Err(error)) = self.writer.map(TruthWriter::finish) {
            tracing::warn!("the record of routes is not whole: {error}");
        }
    }
}

/// The state of the thread.
#[derive(Debug)]
struct RouteChanger {
    routers: ScheduledRouters,
    handles: Vec<RerouteHandle>,
    recorder: Option<Recorder>,
    /// What is active, by site.
    states: BTreeMap<usize, RouterState>,
    /// The last cue that was applied.
    cue: Option<Moment>,
    /// The time after the cue up to which everything is done.
    applied_until: Span,
}

impl RouteChanger {
    fn run(mut self, cue: &Cue, stop: &PipeReader) {
        loop {
            self.apply_cue(cue.last());
            let timeout = self
                .apply_due()
                .map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL));
            let mut awaited = [Awaited::readable(stop.as_fd())];
            if ppoll::wait(&mut awaited, Some(timeout)).is_err() || awaited[0].is_gone() {
                return;
            }
        }
    }

    fn apply_cue(&mut self, cue: Option<Moment>) {
        let Some(at) = cue.filter(|_| self.cue != cue) else {
            return;
        };
        self.cue = cue;
        // Changes at the cue itself are still due.
        self.applied_until = Span::from_nanos(-1);
        self.handles.iter().for_each(RerouteHandle::reset);
        let at = at.0 + clock::pair().offset();
        self.write_record(Record::Cue { at });
        self.apply_state(self.applied_until);
    }

    /// Applies what is due; returns the time until the next change.
    fn apply_due(&mut self) -> Option<Duration> {
        let cue = self.cue?;
        let now = Moment(clock::raw().0) - cue;
        let events = self.routers.events(self.applied_until, now);
        if !events.is_empty() {
            let refused = self.apply_state(now);
            self.report(&events, cue, &refused);
        }
        self.applied_until = now;
        let next = self.routers.next_after(now)?;
        Some((next - (Moment(clock::raw().0) - cue)).to_duration())
    }

    /// Brings each router into its state at `time` after the cue; returns the sites that refused.
    fn apply_state(&mut self, time: Span) -> Vec<usize> {
        let mut refused = Vec::new();
        for router in &self.routers.routers {
            let state = self.routers.state_at(router.site, time);
            let current = self.states.entry(router.site).or_default();
            if let Err(error) = router.apply_state(current, &state) {
                tracing::warn!("routes stay as they are: {error}");
                refused.push(router.site);
                continue;
            }
            *current = state;
        }
        refused
    }

    fn report(&self, events: &[(usize, ScheduleEvent)], cue: Moment, refused: &[usize]) {
        let (now, offset) = (clock::raw().0, clock::pair().offset());
        for (number, event) in events {
            let counters = &self.handles[*number].counters;
            if refused.contains(&self.routers.reroutes[*number].site) {
                counters.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let count = match event {
                ScheduleEvent::Ends => &counters.ended,
                _ => &counters.begin_count,
            };
            count.fetch_add(1, Ordering::Relaxed);
            counters.last_applied.store(now - cue.0, Ordering::Relaxed);
            self.write_record(Record::Step {
                direction: 0,
                number: u16::try_from(*number).unwrap_or(u16::MAX),
                event: *event,
                at: now + offset,
            });
        }
    }

    fn write_record(&self, record: Record) {
        if let Some(recorder) = &self.recorder
            && !recorder.record(record)
        {
            tracing::warn!("the record of routes lacks an entry: the disk was too slow");
        }
    }
}
