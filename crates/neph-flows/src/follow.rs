//! The routers of flows. Each flow is traced at the start, and immediately after a path change. Other routers
//! than before confirm the change.
//!
//! Owns which trace is needed when, and its verdict. The caller runs the traces and passes their results.
//!
//! Changes are reported seconds after they happened, even after a trace has ended. So the verdict of a trace
//! waits until no more changes of its time can be reported.

mod history;
mod pending;
mod queue;
mod verdict;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_model::{
    Fleet, Instant, Local, Slot, Span, TraceKind, TracedChange, TracedFlow, TracedRoute,
};

use crate::{PathChange, Settings};

use history::{History, KnownRoute};
use pending::{FinishedTrace, Pending};
use queue::TraceQueue;

pub use verdict::{RouteComparison, Uncompared, UncomparedReason, Verdict};

/// Maximum number of concurrent traces. Routers answer only a few packets a second, and all flows share the
/// first ones.
const MAX_CONCURRENT_TRACES: usize = 8;

/// The identifier of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(u64);

/// A trace to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOrder {
    /// Its identifier, for the result.
    pub id: TraceId,
    /// The target address.
    pub target: SocketAddr,
    /// The kind of trace.
    pub kind: TraceKind,
    /// The source port.
    pub source_port: u16,
}

/// A trace that is needed, and the change that it follows.
#[derive(Clone, Copy, Debug)]
struct TraceRequest {
    slot: Slot,
    port: u16,
    change: Option<PathChange>,
    /// The change was withdrawn.
    is_withdrawn: bool,
}

impl TraceRequest {
    const fn new(slot: Slot, port: u16) -> Self {
        Self {
            slot,
            port,
            change: None,
            is_withdrawn: false,
        }
    }

    fn follows(&self, change: &PathChange) -> bool {
        self.change
            .is_some_and(|traced_change| traced_change.id() == change.id())
    }
}

/// A route, and its verdict on the change that it follows, if any.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// The route.
    pub route: TracedRoute,
    /// The verdict on the change.
    pub verdict: Option<Verdict>,
}

/// The traces of a fleet.
#[derive(Debug)]
pub struct RouteTracker {
    kind: TraceKind,
    fleet: Fleet,
    /// After this time all changes of a moment are reported.
    report_delay: Span,
    queue: TraceQueue,
    running: BTreeMap<TraceId, TraceRequest>,
    next_id: TraceId,
    /// Finished traces whose path is not certain yet.
    pending: Pending,
    histories: BTreeMap<Slot, History>,
    results: Vec<Traced>,
    /// Uncompared changes, by endpoint.
    uncompared: Vec<Uncompared>,
}

impl RouteTracker {
    /// For a fleet that begins.
    pub fn new(fleet: &Fleet) -> Self {
        let settings = Settings::of(fleet);
        Self {
            kind: TraceKind::of_flows(fleet.probe),
            fleet: fleet.clone(),
            report_delay: settings.hold + settings.settle,
            queue: TraceQueue::default(),
            running: BTreeMap::new(),
            next_id: TraceId(0),
            pending: Pending::default(),
            histories: BTreeMap::new(),
            results: Vec::new(),
            uncompared: vec![Uncompared::default(); fleet.endpoints.len()],
        }
    }

    /// Starts with the fleet's first flows, by slot: later routes are compared with theirs.
    pub fn begin(&mut self, sources: &[u16]) {
        let slots = (0..).map(Slot).zip(sources);
        for (slot, port) in slots {
            self.queue.push_back(TraceRequest::new(slot, *port));
        }
    }

    /// A path changed: its trace precedes those of the start.
    pub fn record_change(&mut self, change: &PathChange) {
        let slot = change.slot;
        self.history(slot, change.source_port)
            .record_change(change.at);
        self.decide(slot, None);
        if let Some(replaced) = self.queue.take(slot) {
            self.record_uncompared(&replaced, UncomparedReason::MovedOn);
        }
        self.queue.push_front(TraceRequest {
            change: Some(*change),
            ..TraceRequest::new(slot, change.source_port)
        });
    }

    /// A change was withdrawn. A trace of it that has not begun is needed only if the flow has no route for
    /// later comparisons.
    pub fn record_withdrawal(&mut self, change: &PathChange) {
        let slot = change.slot;
        let history = self.history(slot, change.source_port);
        history.record_withdrawal(change.at);
        let is_traced = history.is_traced();
        let running = self.running.values_mut();
        for request in running.chain(self.pending.requests_of(slot)) {
            request.is_withdrawn |= request.follows(change);
        }
        self.decide(slot, None);
        if !self
            .queue
            .get(slot)
            .is_some_and(|request| request.follows(change))
        {
            return;
        }
        self.queue.take(slot);
        if !is_traced {
            self.queue
                .push_back(TraceRequest::new(slot, change.source_port));
        }
    }

    /// The next trace to run; `None` while the maximum is running.
    pub fn next_trace(&mut self) -> Option<TraceOrder> {
        if self.running.len() >= MAX_CONCURRENT_TRACES {
            return None;
        }
        let request = self.queue.pop_front()?;
        let endpoint = self.fleet.endpoint_of(request.slot);
        let id = self.next_id;
        self.next_id.0 += 1;
        self.running.insert(id, request);
        Some(TraceOrder {
            id,
            target: self.fleet.endpoints[endpoint].address,
            kind: self.kind,
            source_port: request.port,
        })
    }

    /// The result of a trace; `at` is now.
    pub fn record_result(&mut self, id: TraceId, traced: TracedFlow, at: Instant<Local>) {
        if let Some(request) = self.running.remove(&id) {
            self.store_result(request, traced, at);
        }
    }

    /// A trace failed; it is not repeated.
    pub fn record_failure(&mut self, id: TraceId) {
        if let Some(request) = self.running.remove(&id) {
            self.record_uncompared(&request, UncomparedReason::Unfinished);
        }
    }

    /// The routes that have become certain since the last call.
    pub fn take_certain(&mut self, now: Instant<Local>) -> Vec<Traced> {
        while let Some(slot) = self.pending.pop_due(now) {
            self.decide(slot, Some(now));
        }
        std::mem::take(&mut self.results)
    }

    /// Ends the input: drops unfinished traces and reports the finished ones. Also returns the number of
    /// uncompared changes of each endpoint.
    pub fn end(mut self) -> (Vec<Traced>, Vec<Uncompared>) {
        while let Some(request) = self.queue.pop_front() {
            self.record_uncompared(&request, UncomparedReason::Unfinished);
        }
        for request in std::mem::take(&mut self.running).into_values() {
            self.record_uncompared(&request, UncomparedReason::Unfinished);
        }
        for (slot, finished) in self.pending.take_all() {
            self.report(slot, finished);
        }
        (self.results, self.uncompared)
    }

    /// The history of this flow; drops that of the slot's previous flow.
    fn history(&mut self, slot: Slot, source_port: u16) -> &mut History {
        let is_other_flow = |history: &History| history.source_port != source_port;
        if self.histories.get(&slot).is_some_and(is_other_flow) {
            for finished in self.pending.take(slot) {
                self.report(slot, finished);
            }
            self.histories.remove(&slot);
        }
        let history = self.histories.entry(slot);
        history.or_insert_with(|| History::of(source_port))
    }

    /// Counts a change without a comparison.
    fn record_uncompared(&mut self, request: &TraceRequest, reason: UncomparedReason) {
        if request.change.is_some() && !request.is_withdrawn {
            self.uncompared[self.fleet.endpoint_of(request.slot)].add(reason);
        }
    }

    /// Stores a route. If it follows a change, its verdict will be reported later.
    fn store_result(&mut self, request: TraceRequest, traced: TracedFlow, at: Instant<Local>) {
        let slot = request.slot;
        let (first, last) = traced.answered.unwrap_or((at, at));
        let traced_route = KnownRoute {
            route: traced.route,
            first,
            last,
        };
        // The slot has a new flow: this route belongs to a past one.
        let history = self.histories.get(&slot);
        if history.is_none_or(|history| history.source_port == request.port) {
            self.history(slot, request.port)
                .record_result(traced_route.clone());
        }
        let due = last + self.report_delay;
        let finished = FinishedTrace {
            request,
            traced_route,
            at,
        };
        if request.change.is_some() {
            self.pending.push(slot, due, finished);
            self.decide(slot, None);
        } else {
            self.report(slot, finished);
        }
    }

    /// Reports what is certain of a slot's traces: their change was left or withdrawn, or all changes of
    /// their time are reported.
    fn decide(&mut self, slot: Slot, now: Option<Instant<Local>>) {
        let report_delay = self.report_delay;
        let history = self.histories.get(&slot);
        let is_certain = |finished: &FinishedTrace| {
            let has_left_path = |change: PathChange| {
                history.is_none_or(|flow_history| flow_history.has_later_change(change.at))
            };
            finished.request.is_withdrawn
                || finished.request.change.is_none_or(has_left_path)
                || now.is_some_and(|now| finished.traced_route.last + report_delay <= now)
        };
        for finished in self.pending.take_if(slot, is_certain) {
            self.report(slot, finished);
        }
    }

    /// Reports a route, with its verdict on the change.
    fn report(&mut self, slot: Slot, finished: FinishedTrace) {
        let FinishedTrace {
            request,
            traced_route,
            at,
        } = finished;
        let interval = self.fleet.interval;
        let history = self.histories.get(&slot);
        let history = history.filter(|history| history.source_port == request.port);
        let comparison_result = request.change.map(|change| {
            let unknown = Err((UncomparedReason::NoBefore, None));
            let comparison_result = history.map_or(unknown, |history| {
                history.compare(change.at, &traced_route, interval)
            });
            let has_moved_on = matches!(comparison_result, Err((UncomparedReason::MovedOn, _)));
            let (comparison, before) = match comparison_result {
                Ok((comparison, before)) => (Ok(comparison), Some(before.route.hash)),
                Err((reason, before)) => (Err(reason), before.map(|before| before.route.hash)),
            };
            let verdict = Verdict {
                change,
                comparison,
                is_withdrawn: request.is_withdrawn,
            };
            let traced_change = TracedChange {
                at: change.at,
                before,
                other_routers: comparison.ok().map(|comparison| comparison.others),
            };
            // The flow had left that path again, so there is no verdict.
            let traced_change = (!request.is_withdrawn && !has_moved_on).then_some(traced_change);
            (verdict, traced_change)
        });
        let (verdict, change) = comparison_result.unzip();
        if let Some(Err(reason)) = verdict.map(|verdict: Verdict| verdict.comparison) {
            self.record_uncompared(&request, reason);
        }
        self.results.push(Traced {
            route: TracedRoute {
                slot,
                at,
                route: traced_route.route,
                change: change.flatten(),
            },
            verdict,
        });
    }
}

#[cfg(test)]
mod tests;
