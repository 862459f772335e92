//! Routes that change with time: new seeds for the kernels' hashes, new weights of next hops.
//!
//! Owns what holds at each router at a moment after the lab's cue, and the thread that has the
//! kernel do it. A kernel does so when it is told, some milliseconds late: what is recorded is when
//! it was done. Nothing is left to undo, for the routers are namespaces of the lab.

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
use neph_sys::netns::NetNs;
use neph_sys::ppoll::{self, Awaited};

use super::LabError;
use super::status::RerouteStatus;
use super::working::Working;
use crate::cue::Cue;
use crate::gate::{Moment, Turn};
use crate::plan::HASH_SEED;
use crate::plan::routes::{self, Route, Weights};
use crate::topology::{Reroute, Rerouted, Topology};
use crate::truth::{Record, Recorder, Scribe, TruthWriter};
use crate::{program, settings};

/// How long the thread looks away from the time: a new cue is noticed after this.
const GLANCE: Duration = Duration::from_millis(20);
/// The record's name; no link's record is called so.
const RECORD: &str = "routes_.truth";
const NOT_YET: i64 = i64::MIN;

/// The routers that something changes at.
#[derive(Clone, Debug)]
pub(super) struct Routers {
    reroutes: Vec<Reroute>,
    each: Vec<Router>,
    /// Names for whoever asks: of each entry, the router's and the link's.
    names: Vec<(String, Option<String>)>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Router {
    site: usize,
    namespace: String,
    /// Those with several next hops.
    routes: Vec<Route>,
}

/// What holds at a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    reshuffles: u64,
    weights: Weights,
}

impl Routers {
    /// Of a topology whose sites have these namespaces.
    pub(super) fn of(topology: &Topology, namespaces: &[String]) -> Self {
        let mut sites: Vec<usize> = topology.reroutes.iter().map(|one| one.site).collect();
        sites.sort_unstable();
        sites.dedup();
        let routers = sites.into_iter().map(|site| {
            let mut routes = routes::routes(topology, site);
            routes.retain(Route::is_split);
            Router {
                site,
                namespace: namespaces[site].clone(),
                routes,
            }
        });
        let names = topology.reroutes.iter().map(|reroute| {
            let link = match reroute.what {
                Rerouted::Reshuffle => None,
                Rerouted::Weight { link, .. } => Some(topology.links[link].name.clone()),
            };
            (topology.sites[reroute.site].name.clone(), link)
        });
        Self {
            reroutes: topology.reroutes.clone(),
            each: routers.collect(),
            names: names.collect(),
        }
    }

    /// What holds at the router of the site with this index at `time` after the cue.
    fn held(&self, site: usize, time: Span) -> Held {
        let mut held = Held::default();
        for reroute in self.reroutes.iter().filter(|one| one.site == site) {
            let when = reroute.when();
            match reroute.what {
                Rerouted::Reshuffle => {
                    held.reshuffles += u64::try_from(when.begun(time)).unwrap_or(0);
                }
                Rerouted::Weight { link, weight } if when.holds(time) => {
                    held.weights.insert(link, weight);
                }
                Rerouted::Weight { .. } => {}
            }
        }
        held
    }

    /// What comes about after `before`, up to `until` after the cue: entries and their turns.
    fn turns(&self, before: Span, until: Span) -> Vec<(usize, Turn)> {
        let mut turns = Vec::new();
        for (number, reroute) in self.reroutes.iter().enumerate() {
            let when = reroute.when();
            let began = when.begun(until) - when.begun(before);
            let ended = when.ended(until) - when.ended(before);
            let turn = match reroute.what {
                Rerouted::Reshuffle => Turn::Reshuffles,
                Rerouted::Weight { .. } => Turn::Begins,
            };
            for (turn, times) in [(Turn::Ends, ended), (turn, began)] {
                turns.extend((0..times).map(|_| (number, turn)));
            }
        }
        turns
    }

    /// When something changes next after `time`.
    fn next_after(&self, time: Span) -> Option<Span> {
        let reroutes = self.reroutes.iter();
        reroutes.filter_map(|one| one.when().next_after(time)).min()
    }
}

impl Router {
    /// Makes what holds `now` hold, where `before` did.
    fn change(&self, before: &Held, now: &Held) -> Result<(), LabError> {
        if now.reshuffles != before.reshuffles {
            let seed = routes::hash_seed(self.site, now.reshuffles).to_string();
            settings::apply(&NetNs::open(&self.namespace)?, &[(HASH_SEED, seed)])?;
        }
        let lines = |held: &Held| -> Vec<String> {
            let routes = self.routes.iter();
            routes
                .map(|one| one.line("replace", &held.weights))
                .collect()
        };
        let (old, mut new) = (lines(before), lines(now));
        let mut old = old.iter();
        new.retain(|line| old.next() != Some(line));
        if new.is_empty() {
            return Ok(());
        }
        Ok(program::ip_batch(&self.namespace, &new)?)
    }
}

/// What an entry did, seen from elsewhere.
#[derive(Clone, Debug)]
pub(super) struct WatchedReroute {
    site: String,
    link: Option<String>,
    done: Arc<Done>,
}

#[derive(Debug)]
struct Done {
    times: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    /// Nanoseconds after the cue.
    last: AtomicI64,
}

impl Default for Done {
    fn default() -> Self {
        Self {
            times: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last: AtomicI64::new(NOT_YET),
        }
    }
}

impl WatchedReroute {
    pub(super) fn told(&self) -> RerouteStatus {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let last = self.done.last.load(Ordering::Relaxed);
        RerouteStatus {
            site: self.site.clone(),
            link: self.link.clone(),
            holds: count(&self.done.times) > count(&self.done.ended),
            times: count(&self.done.times),
            last_ns: (last != NOT_YET).then_some(last),
            refused: count(&self.done.refused),
        }
    }

    fn begin_anew(&self) {
        for count in [&self.done.times, &self.done.ended] {
            count.store(0, Ordering::Relaxed);
        }
        self.done.last.store(NOT_YET, Ordering::Relaxed);
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct Rerouting {
    working: Working<()>,
    watched: Vec<WatchedReroute>,
    writer: Option<TruthWriter>,
}

impl Rerouting {
    /// Changes routes in their time after each `cue`, and writes it down where there is a folder for
    /// records.
    pub(super) fn start(
        routers: Routers,
        cue: Arc<Cue>,
        record: Option<(&Path, &Scribe)>,
    ) -> Result<Self, LabError> {
        let opened = record.map(|(folder, scribe)| {
            let file = folder.join(RECORD);
            let opened = scribe.open(&file, "routes", NonZeroU32::MIN);
            opened.map_err(|source| LabError::File { file, source })
        });
        let (recorder, writer) = opened.transpose()?.unzip();
        let names = routers.names.iter().cloned();
        let watched = names.map(|(site, link)| WatchedReroute {
            site,
            link,
            done: Arc::default(),
        });
        let watched: Vec<WatchedReroute> = watched.collect();
        let changing = Changing {
            held: BTreeMap::new(),
            routers,
            watched: watched.clone(),
            recorder,
            cue: None,
            until: Span::ZERO,
        };
        let work = move |stop: &PipeReader| changing.work(&cue, stop);
        let working = Working::start("lab-routes", work).map_err(|source| LabError::Thread {
            what: "changing routes".to_owned(),
            source,
        })?;
        Ok(Self {
            working,
            watched,
            writer,
        })
    }

    pub(super) fn watched(&self) -> Vec<WatchedReroute> {
        self.watched.clone()
    }

    pub(super) fn stop(self) {
        self.working.stop();
        if let Some(Err(error)) = self.writer.map(TruthWriter::finish) {
            tracing::warn!("the record of routes is not whole: {error}");
        }
    }
}

/// What the thread knows.
#[derive(Debug)]
struct Changing {
    routers: Routers,
    watched: Vec<WatchedReroute>,
    recorder: Option<Recorder>,
    /// What was made to hold, by site.
    held: BTreeMap<usize, Held>,
    /// The cue that was heeded last.
    cue: Option<Moment>,
    /// Up to when after the cue everything is done.
    until: Span,
}

impl Changing {
    fn work(mut self, cue: &Cue, stop: &PipeReader) {
        loop {
            self.heed(cue.last());
            let patience = self.step().map_or(GLANCE, |left| left.min(GLANCE));
            let mut awaited = [Awaited::readable(stop.as_fd())];
            if ppoll::wait(&mut awaited, Some(patience)).is_err() || awaited[0].is_gone() {
                return;
            }
        }
    }

    fn heed(&mut self, cue: Option<Moment>) {
        let Some(at) = cue.filter(|_| self.cue != cue) else {
            return;
        };
        self.cue = cue;
        // What begins with the cue is still to come.
        self.until = Span::from_nanos(-1);
        self.watched.iter().for_each(WatchedReroute::begin_anew);
        let at = at.0 + clock::pair().offset();
        self.write_down(Record::Cue { at });
        self.make_hold(self.until);
    }

    /// Does what is due; how long there is until something else is.
    fn step(&mut self) -> Option<Duration> {
        let cue = self.cue?;
        let now = Moment(clock::raw().0) - cue;
        let turns = self.routers.turns(self.until, now);
        if !turns.is_empty() {
            let refused = self.make_hold(now);
            self.tell(&turns, (cue, &refused));
        }
        self.until = now;
        let next = self.routers.next_after(now)?;
        Some((next - (Moment(clock::raw().0) - cue)).to_duration())
    }

    /// Has each router do as it should at `time` after the cue; the sites that refused.
    fn make_hold(&mut self, time: Span) -> Vec<usize> {
        let mut refused = Vec::new();
        for router in &self.routers.each {
            let wanted = self.routers.held(router.site, time);
            let before = self.held.entry(router.site).or_default();
            if let Err(error) = router.change(before, &wanted) {
                tracing::warn!("routes stay as they are: {error}");
                refused.push(router.site);
                continue;
            }
            *before = wanted;
        }
        refused
    }

    fn tell(&self, turns: &[(usize, Turn)], (cue, refused): (Moment, &[usize])) {
        let (now, offset) = (clock::raw().0, clock::pair().offset());
        for (number, turn) in turns {
            let done = &self.watched[*number].done;
            if refused.contains(&self.routers.reroutes[*number].site) {
                done.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let count = match turn {
                Turn::Ends => &done.ended,
                _ => &done.times,
            };
            count.fetch_add(1, Ordering::Relaxed);
            done.last.store(now - cue.0, Ordering::Relaxed);
            self.write_down(Record::Step {
                direction: 0,
                number: u16::try_from(*number).unwrap_or(u16::MAX),
                turn: *turn,
                at: now + offset,
            });
        }
    }

    fn write_down(&self, record: Record) {
        if let Some(recorder) = &self.recorder
            && !recorder.record(record)
        {
            tracing::warn!("the record of routes lacks an entry: the disk was too slow");
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;

    fn routers() -> Routers {
        let text = "version = 1\nrouting = \"ecmp\"\nsite = [{name = \"a\"}, {name = \"b\"}]\n\
                    router = [{name = \"m\"}, {name = \"n\"}]\n\
                    link = [{a = \"a\", b = \"m\"}, {a = \"m\", b = \"b\"}, \
                    {a = \"a\", b = \"n\"}, {a = \"n\", b = \"b\"}]\n\
                    reroute = [{site = \"a\", at = \"5s\", every = \"10s\", reshuffle = true}, \
                    {site = \"a\", link = \"a-m\", weight = 0, at = \"10s\", until = \"12s\"}]\n";
        let topology = Topology::parse(&Source::new("diamond", text)).expect("fine");
        Routers::of(&topology, &["a", "b", "m", "n"].map(str::to_owned))
    }

    #[test]
    fn what_holds_follows_from_the_time_after_the_cue() {
        let routers = routers();
        let secs = Span::from_secs;
        let held = |at| {
            let held = routers.held(0, secs(at));
            (held.reshuffles, held.weights.get(&0).copied())
        };
        assert_eq!(
            [4, 5, 10, 12, 15, 25].map(held),
            [
                (0, None),
                (1, None),
                (1, Some(0)),
                (1, None),
                (2, None),
                (3, None)
            ]
        );
        let turns = routers.turns(secs(4), secs(15));
        let both = [
            (0, Turn::Reshuffles),
            (0, Turn::Reshuffles),
            (1, Turn::Ends),
            (1, Turn::Begins),
        ];
        assert_eq!(turns, both);
        assert_eq!(routers.next_after(secs(10)), Some(secs(12)));
        assert_eq!(routers.each[0].routes.len(), 1, "only b is reached by both");
    }
}
