//! Carries out a campaign: asks the agenda what is next, orders it from the executor, keeps what it reports
//! in the store, and notifies the observer.
//!
//! Everything acknowledged is in the store before the next step, so a kill at any moment loses
//! nothing: [`resume`] replays the store's content through the agenda and goes on.

mod adopt;
mod blocks;
pub(crate) mod experiment;
mod ordering;
mod recording;
mod seasons;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use neph_model::{
    BlockOrder, Campaign, CampaignId, CampaignStatus, Executor, ExecutorLost, Experiment,
    ExperimentId, FlowRole, Scenario, Span, Stop, Ticket, Update, Wall,
};
use neph_store::{Store, StoreError};

use crate::agenda::{Agenda, AgendaSlot, CampaignProgress};
use crate::clock::Clock;
use crate::estimate::{estimate, time_of};
use crate::expand::scenarios;
use crate::observer::{CampaignEvent, Observer};
use crate::plan::{Plan, sha256_hex};
pub use seasons::next_season;

/// A campaign could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store refused.
    #[error("cannot {operation}: {source}")]
    Store {
        /// What was tried.
        operation: &'static str,
        /// Why not.
        source: StoreError,
    },
    /// The stored campaign is not the plan's.
    #[error(
        "campaign {campaign} cannot go on: its stored matrix differs from the one this version makes of its plan; start a new campaign"
    )]
    MatrixDiffers {
        /// The campaign.
        campaign: CampaignId,
    },
    /// Nothing is measured any more; what was reported until then is kept.
    #[error(transparent)]
    Executor(#[from] ExecutorLost),
}

impl RunError {
    /// Whether the store's disk had no room.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Store { source, .. } if source.is_disk_full())
    }
}

/// What has failed rests this long before it is tried again: a service that restarts gets its
/// chance, and a refused connection does not use up all tries within milliseconds.
const RETRY_REST: Span = Span::from_secs(10);

/// Gives a store's error its operation.
pub(crate) fn map_store_error<T>(
    operation: &'static str,
    result: Result<T, impl Into<StoreError>>,
) -> Result<T, RunError> {
    result.map_err(|source| RunError::Store {
        operation,
        source: source.into(),
    })
}

/// The participants of a campaign.
pub struct Participants<'a> {
    /// Keeps everything; opened for writing.
    pub store: &'a mut dyn Store,
    /// Does the measuring.
    pub executor: &'a mut dyn Executor,
    /// Watches.
    pub observer: &'a mut dyn Observer,
    /// The clock for time and waiting.
    pub clock: &'a dyn Clock,
    /// Ends everything early when set.
    pub stop: &'a Stop,
}

impl fmt::Debug for Participants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            store,
            executor,
            clock,
            stop,
            ..
        } = self;
        f.debug_struct("Participants")
            .field("store", store)
            .field("executor", executor)
            .field("clock", clock)
            .field("stop", stop)
            .finish_non_exhaustive()
    }
}

/// The program that measures; stored with each experiment.
#[derive(Clone, Debug)]
pub struct Build {
    /// Version of `neph`.
    pub version: String,
    /// Commit it was built from.
    pub commit: String,
}

/// Adds a campaign for `plan` to the store and carries it out. `order` overrides the plan's;
/// `topology` is the text of its lab's file, kept with the plan. A plan without a seed gets one
/// from the campaign's id, which is as random as ids are.
///
/// # Errors
/// The store refused. What was measured until then is kept.
pub fn start(
    plan: &Plan,
    order: Option<BlockOrder>,
    topology: Option<&str>,
    build: &Build,
    participants: &mut Participants<'_>,
) -> Result<(Campaign, CampaignProgress), RunError> {
    let id = CampaignId::new();
    let campaign = Campaign {
        id,
        name: plan.name.clone(),
        plan_text: plan.text.clone(),
        plan_hash: plan.hash(),
        plan_path: plan.path.clone(),
        topology_text: topology.map(str::to_owned),
        topology_hash: topology.map(sha256_hex),
        seed: plan.seed.unwrap_or_else(|| seed_from(id)),
        order: order.unwrap_or(plan.order),
        blocks: plan.blocks,
        status: CampaignStatus::Running,
        started: participants.clock.now(),
        ended: None,
    };
    let matrix = scenarios(plan);
    map_store_error(
        "add the campaign",
        participants.store.add_campaign(&campaign, &matrix),
    )?;
    Run::new(plan, campaign, matrix, build, participants)?.carry_out()
}

/// Goes on with a campaign that was cut off, interrupted or incomplete: what is not complete has
/// all its tries again, however often it failed before. `plan` is what its stored text means.
/// Recovers what a crash left behind first.
///
/// # Errors
/// The store refused, or its matrix is not the plan's.
pub fn resume(
    plan: &Plan,
    campaign: &Campaign,
    build: &Build,
    participants: &mut Participants<'_>,
) -> Result<(Campaign, CampaignProgress), RunError> {
    map_store_error("recover what was cut off", participants.store.recover())?;
    let matrix = scenarios(plan);
    let stored = map_store_error("read the matrix", participants.store.scenarios(campaign.id))?;
    let is_same_matrix = stored
        .iter()
        .map(|scenario| scenario.id)
        .eq(matrix.iter().map(|scenario| scenario.id));
    if !is_same_matrix || campaign.blocks != plan.blocks {
        return Err(RunError::MatrixDiffers {
            campaign: campaign.id,
        });
    }
    let status = CampaignStatus::Running;
    let set = participants
        .store
        .set_campaign_status(campaign.id, status, None);
    map_store_error("record that the campaign continues", set)?;
    let campaign = Campaign {
        status,
        ended: None,
        ..campaign.clone()
    };
    Run::new(plan, campaign, matrix, build, participants)?.carry_out()
}

/// The last 8 bytes of a version 7 UUID are random but for two bits.
fn seed_from(id: CampaignId) -> u64 {
    let last = id.as_bytes().iter().skip(8);
    last.fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// The endpoint of an experiment and the address at which it was measured; of a fleet the first one.
fn address_of(experiment: &Experiment, scenario: &Scenario) -> Option<(String, IpAddr)> {
    let main = experiment
        .flows
        .iter()
        .find(|flow| flow.role == FlowRole::Main);
    let of_fleet = || Some(experiment.fleet.as_ref()?.endpoints.first()?.address);
    let of_transfer = || Some(experiment.quantities.as_ref()?.peer);
    let address = main.map(|flow| flow.target).or_else(of_fleet);
    let address = address.or_else(of_transfer)?;
    Some((scenario.endpoint.clone(), address.ip()))
}

/// The latest address of each endpoint.
fn addresses_of(experiments: &[Experiment], matrix: &[Scenario]) -> BTreeMap<String, IpAddr> {
    let timed_address = |experiment: &Experiment| {
        let scenario = matrix
            .iter()
            .find(|scenario| scenario.id == experiment.scenario)?;
        Some((experiment.started, address_of(experiment, scenario)?))
    };
    let mut timed_addresses: Vec<_> = experiments.iter().filter_map(timed_address).collect();
    timed_addresses.sort_by_key(|(started, _)| *started);
    timed_addresses
        .into_iter()
        .map(|(_, address)| address)
        .collect()
}

/// The endpoint of an experiment, if a reflector answered there.
fn reflector_of(experiment: &Experiment) -> Option<String> {
    let main = experiment.flows.first().filter(|flow| flow.reflector)?;
    Some(main.name.clone())
}

/// A campaign in progress.
struct Run<'r, 'c> {
    plan: &'r Plan,
    campaign: Campaign,
    matrix: Vec<Scenario>,
    build: &'r Build,
    participants: &'r mut Participants<'c>,
    agenda: Agenda,
    /// When each block was begun.
    block_starts: BTreeMap<u32, Wall>,
    /// When each (block, scenario) failed last, in this process.
    last_failures: BTreeMap<(u32, u32), Wall>,
    /// The address at which each endpoint was measured last.
    addresses: BTreeMap<String, IpAddr>,
    /// Endpoints at which a reflector has answered.
    reflectors: BTreeSet<String>,
    /// What was reported of orders that are not followed now.
    reported_updates: BTreeMap<Ticket, Vec<Update>>,
    /// Experiments that had ended in the store before this process began.
    stored_ids: BTreeSet<ExperimentId>,
}

impl<'r, 'c> Run<'r, 'c> {
    fn new(
        plan: &'r Plan,
        campaign: Campaign,
        matrix: Vec<Scenario>,
        build: &'r Build,
        participants: &'r mut Participants<'c>,
    ) -> Result<Self, RunError> {
        let store = &participants.store;
        let experiments = map_store_error("read the experiments", store.experiments(campaign.id))?;
        let checks = map_store_error("read the checks", store.throughputs(campaign.id))?;
        let mut block_starts: BTreeMap<u32, Wall> = BTreeMap::new();
        let starts = experiments
            .iter()
            .map(|experiment| (experiment.block, experiment.started));
        for (block, started) in
            starts.chain(checks.iter().map(|check| (check.block, check.started)))
        {
            let block_start = block_starts.entry(block).or_insert(started);
            *block_start = started.min(*block_start);
        }
        let agenda = Agenda::resumed(plan, &matrix, &campaign, &experiments);
        Ok(Self {
            plan,
            campaign,
            addresses: addresses_of(&experiments, &matrix),
            matrix,
            build,
            participants,
            agenda,
            block_starts,
            last_failures: BTreeMap::new(),
            reflectors: experiments.iter().filter_map(reflector_of).collect(),
            reported_updates: BTreeMap::new(),
            stored_ids: experiments.iter().map(|experiment| experiment.id).collect(),
        })
    }

    fn carry_out(mut self) -> Result<(Campaign, CampaignProgress), RunError> {
        let (progress, remaining) = (self.agenda.progress(), self.time_left());
        self.participants.observer.report(&CampaignEvent::Begun {
            campaign: &self.campaign,
            scenarios: &self.matrix,
            progress,
            remaining,
        });
        self.adopt()?;
        while let Some(slot) = self.next_in_season()? {
            if slot.is_first_of_block {
                self.begin_block(slot.block)?;
            }
            let slots = self
                .agenda
                .concurrent_slots(slot, &|scenario| self.has_room(scenario, self.plan.pause));
            self.wait_before(&slots)?;
            if self.participants.stop.is_set() {
                return self.end(CampaignStatus::Interrupted);
            }
            // Waiting for a block, its checks and a rest may have outlasted the season.
            let mut slots = slots;
            slots.retain(|slot| self.is_in_season(slot.scenario));
            self.experiments(&slots)?;
        }
        if self.participants.stop.is_set() {
            return self.end(CampaignStatus::Interrupted);
        }
        match self.agenda.progress().given_up {
            0 => self.end(CampaignStatus::Complete),
            _ => self.end(CampaignStatus::Incomplete),
        }
    }

    /// The plan's pause, and what is left of failed experiments' rest.
    fn wait_before(&mut self, slots: &[AgendaSlot]) -> Result<(), RunError> {
        let now = self.participants.clock.now();
        let pause_end = now + self.plan.pause;
        let failure_times = slots
            .iter()
            .filter_map(|slot| self.last_failures.get(&(slot.block, slot.scenario)));
        let rest_end = failure_times
            .max()
            .map_or(pause_end, |failure_time| *failure_time + RETRY_REST);
        if rest_end > pause_end {
            self.participants
                .observer
                .report(&CampaignEvent::RetryDelayed { until: rest_end });
        }
        self.wait(rest_end.max(pause_end))
    }

    fn end(mut self, status: CampaignStatus) -> Result<(Campaign, CampaignProgress), RunError> {
        let now = self.participants.clock.now();
        let result =
            self.participants
                .store
                .set_campaign_status(self.campaign.id, status, Some(now));
        map_store_error("record how the campaign ended", result)?;
        self.campaign.status = status;
        self.campaign.ended = Some(now);
        let progress = self.agenda.progress();
        self.participants
            .observer
            .report(&CampaignEvent::Ended { status, progress });
        Ok((self.campaign, progress))
    }

    /// Until the end, if nothing fails: what is open in blocks that were begun, then whole blocks
    /// at the pace of the plan.
    fn time_left(&self) -> Span {
        let time_of_open_pairs = |has_begun: bool| {
            let open_pairs = self.agenda.open_pairs();
            let open_pairs =
                open_pairs.filter(|(block, _)| self.agenda.has_begun(*block) == has_begun);
            time_of(open_pairs, self.plan, &self.matrix, self.agenda.groups())
        };
        let whole_blocks = (0..self.plan.blocks).filter(|block| !self.agenda.has_begun(*block));
        let count = i64::try_from(whole_blocks.count()).unwrap_or(0);
        if count == 0 {
            return time_of_open_pairs(true);
        }
        let block = estimate(self.plan, &self.matrix).block;
        let pace = block.max(self.plan.block_interval);
        let next_block = self
            .block_starts
            .values()
            .max()
            .map_or(Span::ZERO, |latest_start| {
                let due = *latest_start + self.plan.block_interval;
                let now = self.participants.clock.now().unix_nanos();
                Span::from_nanos(due.unix_nanos().saturating_sub(now))
            });
        time_of_open_pairs(true).max(next_block) + pace.times(count - 1) + block
    }
}

#[cfg(test)]
mod tests;
