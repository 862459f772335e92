//! A fleet's messages, one after the other, and what they say so far.
//!
//! What is kept grows with flows, path changes and bins of time, never with messages.

use std::collections::VecDeque;

use neph_model::{Fleet, FleetMessage, Instant, Lane, Own};
use neph_stats::StatsError;

use crate::base::{Bases, News, What};
use crate::fairness::Bins;
use crate::flow::{Correction, Flow, Past};
use crate::settings::Settings;
use crate::view::{FleetView, FlowTally, PathChange};
use crate::witness::Drift;

/// Something about paths that was not known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews {
    /// A path change.
    Changed(PathChange),
    /// What was told as a path change was none.
    Withdrawn(PathChange),
}

/// What is kept of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct Crowd {
    pub(crate) bases: Bases,
    drift: Drift,
    pub(crate) bins: Option<Bins>,
}

/// A lane's flow, and the one before it, of which something may still be found out.
#[derive(Debug, Default)]
struct Place {
    current: Option<Flow>,
    previous: Option<Box<Flow>>,
}

/// What a fleet's messages say. Messages of one flow come in the order of their numbers, those of
/// different flows as they like.
#[derive(Debug)]
pub struct Digest {
    pub(crate) fleet: Fleet,
    pub(crate) settings: Settings,
    places: Vec<Place>,
    over: Vec<Past>,
    pub(crate) crowds: Vec<Crowd>,
    changes: Vec<PathChange>,
    news: VecDeque<PathNews>,
    /// First and last sending.
    pub(crate) extent: Option<(Instant<Own>, Instant<Own>)>,
    tally: FlowTally,
}

impl Digest {
    /// A fleet of which nothing is known yet.
    ///
    /// # Errors
    /// Where the numbers of the detection do not fit together.
    pub fn new(fleet: &Fleet, settings: Settings) -> Result<Self, StatsError> {
        let crowd = |_: &neph_model::FleetEndpoint| {
            Ok(Crowd {
                bases: Bases::new(&settings)?,
                drift: Drift::default(),
                bins: None,
            })
        };
        Ok(Self {
            fleet: fleet.clone(),
            settings,
            places: Vec::new(),
            over: Vec::new(),
            crowds: fleet
                .endpoints
                .iter()
                .map(crowd)
                .collect::<Result<_, _>>()?,
            changes: Vec::new(),
            news: VecDeque::new(),
            extent: None,
            tally: FlowTally::default(),
        })
    }

    /// The next message. One of a lane that the fleet does not have is passed over.
    pub fn push(&mut self, message: &FleetMessage) {
        let endpoint = self.fleet.endpoint_of(message.lane);
        if message.lane.0 >= self.fleet.lanes || endpoint >= self.crowds.len() {
            return;
        }
        let (first, last) = *self.extent.get_or_insert((message.sent, message.sent));
        self.extent = Some((first.min(message.sent), last.max(message.sent)));
        let number = self.number(message.lane);
        self.begin_or_go_on(message, endpoint, number);
        if let Some(reply) = message.reply() {
            let round_trip = reply.network();
            let width = self.settings.bin;
            let crowd = &mut self.crowds[endpoint];
            let bins = crowd.bins.get_or_insert_with(|| Bins::new(first, width));
            bins.push(message, round_trip);
            crowd.bases.push(number, message.sent, round_trip);
        }
        self.hear(endpoint);
    }

    /// Nothing more comes: what waited for messages of other flows is looked at.
    pub fn finish(&mut self) {
        for endpoint in 0..self.crowds.len() {
            self.crowds[endpoint].bases.finish();
            self.hear(endpoint);
        }
    }

    /// What was found out about paths since it was asked last.
    pub fn news(&mut self) -> impl Iterator<Item = PathNews> + '_ {
        self.news.drain(..)
    }

    /// The flow of a change was traced: it met other routers than before, or the same.
    pub fn traced(&mut self, change: &PathChange, others: bool) {
        let is_it = |other: &&mut PathChange| {
            (other.lane, other.source_port, other.at)
                == (change.lane, change.source_port, change.at)
        };
        if let Some(known) = self.changes.iter_mut().rev().find(is_it) {
            known.evidence.trace = Some(others);
        }
    }

    /// What was asked for.
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// How many path changes there are.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// How the messages fared that came so far: cheaper than the whole view.
    pub const fn tally(&self) -> &FlowTally {
        &self.tally
    }

    /// Everything that is known, as of now.
    pub fn view(&self) -> FleetView {
        crate::look::look(self)
    }

    /// Which of the endpoint's flows a lane's is.
    fn number(&self, lane: Lane) -> u32 {
        lane.0
            / u32::try_from(self.fleet.endpoints.len())
                .unwrap_or(u32::MAX)
                .max(1)
    }

    fn begin_or_go_on(&mut self, message: &FleetMessage, endpoint: usize, number: u32) {
        let index = message.lane.0 as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, Place::default);
        }
        let place = &mut self.places[index];
        if place
            .current
            .as_ref()
            .is_some_and(|flow| !flow.owns(message))
        {
            let bases = &mut self.crowds[endpoint].bases;
            bases.restart(number, message.sent);
            let old = std::mem::replace(&mut place.previous, place.current.take().map(Box::new));
            self.over.extend(old.map(|flow| flow.past(None)));
        }
        let flow = place.current.get_or_insert_with(|| Flow::begun_by(message));
        let before = *flow.tally();
        flow.push(message, &self.settings, &mut self.crowds[endpoint].drift);
        self.tally.replace(&before, flow.tally());
    }

    /// Takes in what the detector says about the flows to an endpoint.
    fn hear(&mut self, endpoint: usize) {
        while let Some(news) = self.crowds[endpoint].bases.news() {
            self.apply(endpoint, news);
        }
    }

    fn apply(&mut self, endpoint: usize, news: News) {
        let endpoints = u32::try_from(self.fleet.endpoints.len()).unwrap_or(u32::MAX);
        let lane = news.flow * endpoints + u32::try_from(endpoint).unwrap_or(u32::MAX);
        let Some(place) = self.places.get_mut(lane as usize) else {
            return;
        };
        let (What::Shift(crate::flow::Shift { at, .. }) | What::Correction { at, .. }) = news.what;
        // The detector waits for messages of other flows: it may speak of the flow before.
        let is_current = |flow: &Flow| at >= flow.first();
        let flow = match &mut place.current {
            Some(flow) if is_current(flow) => Some(flow),
            _ => place.previous.as_deref_mut(),
        };
        let Some(flow) = flow else {
            return;
        };
        let ground = (self.fleet.interval, self.crowds[endpoint].drift);
        match news.what {
            What::Shift(shift) => {
                let change = flow.shift(shift, &self.settings, ground);
                self.changes.extend(change);
                self.news.extend(change.map(PathNews::Changed));
            }
            What::Correction { base, .. } => {
                let correction = flow.correct(base, &self.settings);
                self.correct(Lane(lane), base, correction);
            }
        }
    }

    /// Amends or takes back the latest change of a lane.
    fn correct(&mut self, lane: Lane, base: neph_model::Span, correction: Correction) {
        let (Correction::Amended(at) | Correction::Withdrawn(at)) = correction else {
            return;
        };
        let is_it = |change: &PathChange| change.lane == lane && change.at == at;
        let Some(index) = self.changes.iter().rposition(is_it) else {
            return;
        };
        if correction == Correction::Withdrawn(at) {
            let change = self.changes.remove(index);
            self.news.push_back(PathNews::Withdrawn(change));
        } else {
            self.changes[index].after = base;
        }
    }

    /// All flows: those that are over, and a look at those that go on.
    pub(crate) fn pasts(&self) -> Vec<Past> {
        let going_on = (0..).zip(&self.places).flat_map(|(lane, place)| {
            let lane = Lane(lane);
            let endpoint = self.fleet.endpoint_of(lane);
            let exactly = self.crowds[endpoint].bases.base(self.number(lane));
            let previous = place.previous.as_ref().map(|flow| flow.past(None));
            let current = place.current.as_ref().map(|flow| flow.past(exactly));
            previous.into_iter().chain(current)
        });
        let mut pasts: Vec<Past> = self.over.iter().cloned().chain(going_on).collect();
        // By lane; of one lane they are in the order of time already, and the sort keeps it.
        pasts.sort_by_key(|past| past.lane);
        pasts
    }

    /// All changes, by time.
    pub(crate) fn changes_by_time(&self) -> Vec<PathChange> {
        let mut changes = self.changes.clone();
        changes.sort_by_key(|change| (change.at, change.lane));
        changes
    }

    /// All flows' tallies together.
    pub(crate) const fn whole_tally(&self) -> FlowTally {
        self.tally
    }
}

#[cfg(test)]
mod tests;
