//! The routers of flows: each flow's route is traced at the start, and again at once when its path
//! changed. Other routers than before speak for the change.
//!
//! Owns which trace is wanted when, and what each says. Who makes the traces gives back what they found.
//!
//! Changes are told seconds after they happened, and one more may be told of the time of a trace when
//! that is long over. So what a trace says of its change waits until that is certain.

mod history;
mod pending;
mod verdict;
mod waiting;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_model::{
    Fleet, Instant, Lane, Own, Span, TraceKind, TracedChange, TracedFlow, TracedRoute,
};

use crate::{PathChange, Settings};

use history::{History, Known};
use pending::{Finished, Pending};
use waiting::Waiting;

pub use verdict::{Said, Uncompared, Verdict, Why};

/// Traces at a time: routers answer a few packets a second only, and all flows meet the same ones
/// first.
const AT_A_TIME: usize = 8;

/// The name of a trace that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(u64);

/// A trace to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToTrace {
    /// Its name, with which what it found is given back.
    pub id: TraceId,
    /// Where to.
    pub target: SocketAddr,
    /// With what.
    pub kind: TraceKind,
    /// From which port.
    pub source_port: u16,
}

/// A trace that is wanted, and the change that it follows.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lane: Lane,
    port: u16,
    change: Option<PathChange>,
    /// The change was none after all.
    is_withdrawn: bool,
}

impl Wanted {
    const fn new(lane: Lane, port: u16) -> Self {
        Self {
            lane,
            port,
            change: None,
            is_withdrawn: false,
        }
    }

    fn follows(&self, change: &PathChange) -> bool {
        self.change.is_some_and(|own| own.id() == change.id())
    }
}

/// A route that was found, and what it says of the change that it follows, where it follows one.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// The route.
    pub route: TracedRoute,
    /// What it says of a change.
    pub verdict: Option<Verdict>,
}

/// The traces of a fleet.
#[derive(Debug)]
pub struct Follow {
    kind: TraceKind,
    fleet: Fleet,
    /// So long after a moment all changes of it are told.
    patience: Span,
    waiting: Waiting,
    running: BTreeMap<TraceId, Wanted>,
    next: TraceId,
    /// What was traced, until it is certain of which path it is.
    pending: Pending,
    histories: BTreeMap<Lane, History>,
    told: Vec<Traced>,
    /// Of each endpoint.
    uncompared: Vec<Uncompared>,
}

impl Follow {
    /// Of a fleet that begins.
    pub fn new(fleet: &Fleet) -> Self {
        let settings = Settings::of(fleet);
        Self {
            kind: TraceKind::of_flows(fleet.probe),
            fleet: fleet.clone(),
            patience: settings.hold + settings.settle,
            waiting: Waiting::default(),
            running: BTreeMap::new(),
            next: TraceId(0),
            pending: Pending::default(),
            histories: BTreeMap::new(),
            told: Vec::new(),
            uncompared: vec![Uncompared::default(); fleet.endpoints.len()],
        }
    }

    /// The fleet's first flows, by lane: their routes are what changes are held against.
    pub fn begin(&mut self, sources: &[u16]) {
        let lanes = (0..).map(Lane).zip(sources);
        for (lane, port) in lanes {
            self.waiting.push_back(Wanted::new(lane, *port));
        }
    }

    /// A path changed: its route comes before those that only stand by.
    pub fn changed(&mut self, change: &PathChange) {
        let lane = change.lane;
        self.history(lane, change.source_port).changed(change.at);
        self.decide(lane, None);
        if let Some(replaced) = self.waiting.take(lane) {
            self.untraced(&replaced, Why::MovedOn);
        }
        self.waiting.push_front(Wanted {
            change: Some(*change),
            ..Wanted::new(lane, change.source_port)
        });
    }

    /// A change was none: its trace, if it has not begun, is wanted only where no route is known to
    /// hold the next change against.
    pub fn withdrawn(&mut self, change: &PathChange) {
        let lane = change.lane;
        let history = self.history(lane, change.source_port);
        history.withdrawn(change.at);
        let is_traced = history.is_traced();
        let running = self.running.values_mut();
        for wanted in running.chain(self.pending.of(lane)) {
            wanted.is_withdrawn |= wanted.follows(change);
        }
        self.decide(lane, None);
        if !self.waiting.of(lane).is_some_and(|one| one.follows(change)) {
            return;
        }
        self.waiting.take(lane);
        if !is_traced {
            self.waiting
                .push_back(Wanted::new(lane, change.source_port));
        }
    }

    /// The next trace to make; none while enough of them run.
    pub fn to_trace(&mut self) -> Option<ToTrace> {
        if self.running.len() >= AT_A_TIME {
            return None;
        }
        let wanted = self.waiting.pop_front()?;
        let endpoint = self.fleet.endpoint_of(wanted.lane);
        let id = self.next;
        self.next.0 += 1;
        self.running.insert(id, wanted);
        Some(ToTrace {
            id,
            target: self.fleet.endpoints[endpoint].address,
            kind: self.kind,
            source_port: wanted.port,
        })
    }

    /// A trace has found this; `at` is now.
    pub fn found(&mut self, id: TraceId, traced: TracedFlow, at: Instant<Own>) {
        if let Some(wanted) = self.running.remove(&id) {
            self.keep(wanted, traced, at);
        }
    }

    /// A trace has found nothing: it is left out, the next one may find its way.
    pub fn failed(&mut self, id: TraceId) {
        if let Some(wanted) = self.running.remove(&id) {
            self.untraced(&wanted, Why::Unfinished);
        }
    }

    /// The routes that are certain since the last time.
    pub fn told(&mut self, now: Instant<Own>) -> Vec<Traced> {
        while let Some(lane) = self.pending.certain(now) {
            self.decide(lane, Some(now));
        }
        std::mem::take(&mut self.told)
    }

    /// Nothing more comes: gives up all traces, and tells what is known of those that are over. And how
    /// many changes of each endpoint were not compared.
    pub fn end(mut self) -> (Vec<Traced>, Vec<Uncompared>) {
        while let Some(wanted) = self.waiting.pop_front() {
            self.untraced(&wanted, Why::Unfinished);
        }
        for wanted in std::mem::take(&mut self.running).into_values() {
            self.untraced(&wanted, Why::Unfinished);
        }
        for (lane, finished) in self.pending.all() {
            self.tell(lane, finished);
        }
        (self.told, self.uncompared)
    }

    /// What is known of this flow; of the lane's flow before it nothing more will be.
    fn history(&mut self, lane: Lane, source_port: u16) -> &mut History {
        let is_another = |history: &History| history.source_port != source_port;
        if self.histories.get(&lane).is_some_and(is_another) {
            for finished in self.pending.take(lane) {
                self.tell(lane, finished);
            }
            self.histories.remove(&lane);
        }
        let history = self.histories.entry(lane);
        history.or_insert_with(|| History::of(source_port))
    }

    /// A change that no trace tells of.
    fn untraced(&mut self, wanted: &Wanted, why: Why) {
        if wanted.change.is_some() && !wanted.is_withdrawn {
            self.uncompared[self.fleet.endpoint_of(wanted.lane)].add(why);
        }
    }

    /// Keeps a route in mind. Where it follows a change, what it says of it is to be told.
    fn keep(&mut self, wanted: Wanted, traced: TracedFlow, at: Instant<Own>) {
        let lane = wanted.lane;
        let (first, last) = traced.answered.unwrap_or((at, at));
        let known = Known {
            route: traced.route,
            first,
            last,
        };
        // The lane has another flow by now: what this one's route says, it says of the past.
        let history = self.histories.get(&lane);
        if history.is_none_or(|history| history.source_port == wanted.port) {
            self.history(lane, wanted.port).found(known.clone());
        }
        let certain = last + self.patience;
        let finished = Finished { wanted, known, at };
        if wanted.change.is_some() {
            self.pending.push(lane, certain, finished);
            self.decide(lane, None);
        } else {
            self.tell(lane, finished);
        }
    }

    /// Tells what is certain of a lane's traces: their change was left or withdrawn since, or nothing
    /// more will be told of their time.
    fn decide(&mut self, lane: Lane, now: Option<Instant<Own>>) {
        let patience = self.patience;
        let history = self.histories.get(&lane);
        let is_certain = |one: &Finished| {
            let left = |change: PathChange| history.is_none_or(|known| known.is_left(change.at));
            one.wanted.is_withdrawn
                || one.wanted.change.is_none_or(left)
                || now.is_some_and(|now| one.known.last + patience <= now)
        };
        for finished in self.pending.take_if(lane, is_certain) {
            self.tell(lane, finished);
        }
    }

    /// Tells a route, with what it says of its change.
    fn tell(&mut self, lane: Lane, finished: Finished) {
        let Finished { wanted, known, at } = finished;
        let interval = self.fleet.interval;
        let history = self.histories.get(&lane);
        let history = history.filter(|history| history.source_port == wanted.port);
        let compared = wanted.change.map(|change| {
            let unknown = Err((Why::NoBefore, None));
            let compared = history.map_or(unknown, |one| one.compare(change.at, &known, interval));
            let is_left = matches!(compared, Err((Why::MovedOn, _)));
            let (said, before) = match compared {
                Ok((said, before)) => (Ok(said), Some(before.route.hash)),
                Err((why, before)) => (Err(why), before.map(|known| known.route.hash)),
            };
            let verdict = Verdict {
                change,
                said,
                is_withdrawn: wanted.is_withdrawn,
            };
            let followed = TracedChange {
                at: change.at,
                before,
                others: said.ok().map(|said| said.others),
            };
            // Of a path that the flow had left again it tells nothing.
            let followed = (!wanted.is_withdrawn && !is_left).then_some(followed);
            (verdict, followed)
        });
        let (verdict, change) = compared.unzip();
        if let Some(Err(why)) = verdict.map(|verdict: Verdict| verdict.said) {
            self.untraced(&wanted, why);
        }
        self.told.push(Traced {
            route: TracedRoute {
                lane,
                at,
                route: known.route,
                change: change.flatten(),
            },
            verdict,
        });
    }
}

#[cfg(test)]
mod tests;
