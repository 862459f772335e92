//! A fleet's messages, one after the other, and what they say so far.
//!
//! What is kept grows with flows and, up to bounds, with path changes and bins of time, never with
//! messages.

use std::collections::VecDeque;

use neph_model::{Fleet, FleetMessage, FleetOutcome, Instant, Lane, Own};
use neph_stats::StatsError;

use crate::base::{Bases, News, What};
use crate::blind::Blind;
use crate::changes::{Changes, MOST};
use crate::elsewhere::Elsewhere;
use crate::fairness::Bins;
use crate::fates::{self, Fates};
use crate::flow::{Conditions, Ground, Past};
use crate::flow_tally::FlowTally;
use crate::known::{Known, KnownCrowd};
use crate::latency::Latency;
use crate::look::look;
use crate::outage::Lost;
use crate::settings::Settings;
use crate::skew::Drift;
use crate::succession::Succession;
use crate::view::{FleetView, PathChange};

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
struct Crowd {
    bases: Bases,
    drift: Drift,
    bins: Option<Bins>,
    tally: FlowTally,
    lost: Lost,
    fates: Fates,
    /// Time at levels that lasted and were not told as paths.
    elsewhere: Elsewhere,
}

impl Crowd {
    /// Holds stays elsewhere against the queues that all flows shared, and what is left out after
    /// these.
    fn settle(&mut self, now: Option<Instant<Own>>, fleet: &Fleet, settings: &Settings) {
        let after = fleet.interval.times(settings.detection.window.into());
        let queued: Vec<_> = self.bases.queued().collect();
        let queued = Blind::new(&queued, after);
        self.elsewhere.settle(now, fleet.interval, &queued);
    }
}

/// What a fleet's messages say. Messages of one flow come in the order of their numbers, those of
/// different flows as they like.
#[derive(Debug)]
pub struct Digest {
    fleet: Fleet,
    settings: Settings,
    flows: Succession,
    crowds: Vec<Crowd>,
    changes: Changes,
    /// None where nobody asks for them.
    news: Option<VecDeque<PathNews>>,
    /// First and last sending.
    extent: Option<(Instant<Own>, Instant<Own>)>,
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
                tally: FlowTally::default(),
                lost: Lost::default(),
                fates: Fates::default(),
                elsewhere: Elsewhere::default(),
            })
        };
        Ok(Self {
            fleet: fleet.clone(),
            settings,
            flows: Succession::default(),
            crowds: fleet
                .endpoints
                .iter()
                .map(crowd)
                .collect::<Result<_, _>>()?,
            changes: Changes::new(MOST),
            news: Some(VecDeque::new()),
            extent: None,
        })
    }

    /// The same for messages that are read again: nobody waits for news of them, which would pile
    /// up.
    #[must_use]
    pub fn without_news(self) -> Self {
        Self { news: None, ..self }
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
        let latency = match &message.outcome {
            FleetOutcome::Reply(reply) => Some(Latency::Took(reply.network())),
            FleetOutcome::Lost => Some(Latency::Lost),
            FleetOutcome::Failed => None,
        };
        if let Some(latency) = latency {
            let crowd = &mut self.crowds[endpoint];
            let (settings, fleet) = (&self.settings, &self.fleet);
            let bins = crowd
                .bins
                .get_or_insert_with(|| Bins::new(first, settings, fleet));
            bins.push(number, message, latency);
            if let Latency::Took(round_trip) = latency {
                crowd.bases.push(number, message.sent, round_trip);
            }
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
        self.news.iter_mut().flat_map(|news| news.drain(..))
    }

    /// The flow of a change was traced: it met other routers than before, or the same.
    pub fn traced(&mut self, change: &PathChange, others: bool) {
        self.changes.traced(change, others);
    }

    /// What was asked for.
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// How many path changes there are.
    pub fn changes(&self) -> usize {
        self.changes.told()
    }

    /// All changes that are kept, by time.
    pub(crate) fn changes_by_time(&self) -> Vec<PathChange> {
        self.changes.by_time()
    }

    /// How the messages fared that came so far: cheaper than the whole view.
    pub fn tally(&self) -> FlowTally {
        let mut all = FlowTally::default();
        self.crowds.iter().for_each(|crowd| all.add(&crowd.tally));
        all
    }

    /// What was before this is not known any more, where there was too much to keep.
    pub(crate) const fn horizon(&self) -> Option<Instant<Own>> {
        self.changes.horizon()
    }

    /// Everything that is known.
    pub fn view(self) -> FleetView {
        look(self.end())
    }

    /// Which of the endpoint's flows a lane's is.
    fn number(&self, lane: Lane) -> u32 {
        lane.0
            / u32::try_from(self.fleet.endpoints.len())
                .unwrap_or(u32::MAX)
                .max(1)
    }

    fn begin_or_go_on(&mut self, message: &FleetMessage, endpoint: usize, number: u32) {
        let crowd = &mut self.crowds[endpoint];
        if self.flows.is_renewed_by(message) {
            // What it found out so far was heard after the message before.
            let heard = crowd.bases.nth(number);
            crowd.bases.restart(number, message.sent);
            if let Some(until) = self.flows.renew(message, heard) {
                self.changes.forget_until(until);
            }
        }
        let flow = self.flows.current(message);
        let conditions = Conditions {
            probe: self.fleet.probe,
            interval: self.fleet.interval,
            drifted: crowd.bases.drifted(),
            settings: &self.settings,
        };
        let found = flow.push(message, conditions, &mut crowd.drift);
        crowd.tally.add(&found);
        crowd.lost.push(message, &self.fleet, &self.settings);
        let silence = fates::silence(&self.fleet, &self.settings);
        if let Some((base, fate)) = flow.fate(&message.outcome, silence) {
            crowd.fates.add(base, fate, &self.settings);
        }
        flow.take_elsewhere()
            .for_each(|row| crowd.elsewhere.push(row));
        if crowd.elsewhere.is_due(message.sent) {
            crowd.settle(Some(message.sent), &self.fleet, &self.settings);
        }
    }

    /// Takes in what the detector says about the flows to an endpoint.
    fn hear(&mut self, endpoint: usize) {
        while let Some(news) = self.crowds[endpoint].bases.news() {
            self.apply(endpoint, news);
        }
    }

    fn apply(&mut self, endpoint: usize, news: News) {
        let endpoints = u32::try_from(self.fleet.endpoints.len()).unwrap_or(u32::MAX);
        let lane = Lane(news.flow * endpoints + u32::try_from(endpoint).unwrap_or(u32::MAX));
        let flow = self.flows.find(lane, news.nth);
        let changes = &mut self.changes;
        match (news.what, flow) {
            (What::Shift(_), None) => {}
            (What::Shift(shift), Some(flow)) => {
                let ground = Ground {
                    lane,
                    interval: self.fleet.interval,
                    settings: &self.settings,
                    drift: self.crowds[endpoint].drift,
                };
                let change = flow.shift(shift, ground, changes);
                let elsewhere = &mut self.crowds[endpoint].elsewhere;
                flow.take_elsewhere().for_each(|row| elsewhere.push(row));
                self.announce(change.map(PathNews::Changed));
            }
            (What::Correction { base, .. }, Some(flow)) => {
                let withdrawn = flow.correct(base, &self.settings, changes);
                self.announce(withdrawn.map(PathNews::Withdrawn));
            }
            (What::Correction { at, base }, None) => {
                let past = self.flows.find_over(lane, at);
                let withdrawn = past.and_then(|past| past.correct(base, &self.settings, changes));
                self.announce(withdrawn.map(PathNews::Withdrawn));
            }
        }
    }

    fn announce(&mut self, found: Option<PathNews>) {
        if let Some(news) = &mut self.news {
            news.extend(found);
        }
    }

    /// What is only needed while messages come is let go before the histories are made.
    fn end(mut self) -> Known {
        let pasts: Vec<Past> = std::mem::take(&mut self.flows).end(|lane| {
            let bases = &self.crowds[self.fleet.endpoint_of(lane)].bases;
            let number = self.number(lane);
            (bases.nth(number), bases.base(number))
        });
        for crowd in &mut self.crowds {
            crowd.settle(None, &self.fleet, &self.settings);
        }
        let known = |crowd: Crowd| KnownCrowd {
            congested: crowd.bases.queued().collect(),
            queues_joined: crowd.bases.queues_are_joined(),
            bins: crowd.bins.map(Bins::told).unwrap_or_default(),
            tally: crowd.tally,
            lost: crowd.lost,
            fates: crowd.fates,
            elsewhere: crowd.elsewhere.time(),
            drift: crowd.bases.drift(),
        };
        let crowds = self.crowds.into_iter().map(known).collect();
        let zero = Instant::from_nanos(0);
        Known {
            fleet: self.fleet,
            settings: self.settings,
            extent: self.extent.unwrap_or((zero, zero)),
            flows: pasts
                .iter()
                .map(|past| past.history(&self.changes))
                .collect(),
            horizon: self.changes.horizon(),
            changes: self.changes.by_time(),
            crowds,
        }
    }
}

#[cfg(test)]
mod tests;
