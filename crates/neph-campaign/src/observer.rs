//! What a campaign reports to its observers: plain values, as it runs.

use neph_model::alarm::Change;
use neph_model::{
    Campaign, CampaignStatus, Experiment, ExperimentId, FleetMessage, Message, Progress, Records,
    Scenario, Span, Throughput, ThroughputOrder, Traceroute, Wall,
};

use crate::agenda::CampaignProgress;
use crate::meter::RunningFigures;

/// Something that happened in a campaign.
#[derive(Debug)]
#[non_exhaustive]
pub enum CampaignEvent<'a> {
    /// The campaign begins or goes on.
    Begun {
        /// The campaign.
        campaign: &'a Campaign,
        /// Its matrix.
        scenarios: &'a [Scenario],
        /// How far it is.
        progress: CampaignProgress,
        /// Until its end, if nothing fails.
        remaining: Span,
    },
    /// The next block is not due yet.
    Waiting {
        /// The block, from 0.
        block: u32,
        /// When it begins.
        until: Wall,
    },
    /// Nothing that is left may run before a season opens.
    OutOfSeason {
        /// The season.
        season: &'a str,
        /// When it opens.
        until: Wall,
    },
    /// What failed a moment ago is not tried again at once.
    RetryDelayed {
        /// Until when.
        until: Wall,
    },
    /// A throughput check begins.
    CheckBegun(&'a ThroughputOrder),
    /// A throughput check has ended.
    CheckEnded(&'a Throughput),
    /// A traceroute has ended.
    TracerouteEnded(&'a Traceroute),
    /// An experiment begins.
    ExperimentBegun {
        /// The experiment.
        experiment: &'a Experiment,
        /// Its scenario.
        scenario: &'a Scenario,
        /// How far the campaign is.
        progress: CampaignProgress,
        /// Until the campaign's end, if nothing fails.
        remaining: Span,
    },
    /// A few times a second while experiments run at the same time, or one alone.
    Running {
        /// The scenario of the first.
        scenario: &'a Scenario,
        /// How far they are.
        progress: Progress,
        /// What each has measured so far; at least one.
        figures: &'a [RunningFigures],
    },
    /// What an experiment measured is safe in the store.
    RecordsStored {
        /// The experiment.
        experiment: ExperimentId,
        /// What it measured since the last time.
        records: &'a Records,
    },
    /// What an experiment at another host measured is here, and is counted; it is not in the store yet. Comes
    /// once or more for each.
    Received {
        /// The experiment.
        experiment: ExperimentId,
        /// Messages that were not among those before.
        messages: &'a [Message],
        /// The same of its fleet.
        fleet: &'a [FleetMessage],
    },
    /// An alarm of a running experiment was raised or has ended; it is in the store.
    Alarm {
        /// The experiment, as it began.
        experiment: &'a Experiment,
        /// Its scenario.
        scenario: &'a Scenario,
        /// What was found, and when: since the experiment's start.
        change: &'a Change,
    },
    /// An experiment has ended and is stored.
    ExperimentEnded {
        /// The experiment, with its tally and warnings.
        experiment: &'a Experiment,
        /// Its scenario.
        scenario: &'a Scenario,
        /// What it measured.
        figures: RunningFigures,
        /// How far the campaign is now.
        progress: CampaignProgress,
    },
    /// The campaign has ended, or was interrupted.
    Ended {
        /// How it stands.
        status: CampaignStatus,
        /// How far it came.
        progress: CampaignProgress,
    },
}

/// Watches a campaign. Called between measurements, and a few times a second during one: it must
/// not take long.
pub trait Observer {
    /// Something happened.
    fn report(&mut self, events: &CampaignEvent<'_>);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn report(&mut self, _: &CampaignEvent<'_>) {}
}
