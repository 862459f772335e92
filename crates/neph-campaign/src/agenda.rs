//! What to run next, from what has been run: pure, and the same on the first start and after any
//! crash.
//!
//! The rule:
//! 1. Blocks go in order, and within a block every scenario is tried once in the block's order.
//!    A started block is completed before anything else.
//! 2. Between two blocks, incomplete scenarios of earlier blocks are tried once more. The tries of a
//!    broken endpoint are thus spread over the campaign, and not used up within one bad minute.
//! 3. After the last block, each incomplete scenario is tried until it is complete, or has failed as
//!    often as the plan allows.
//!
//! Scenarios that run at the same time have one place of this order: the next one starts the others of
//! its block and group too. These are the fleets of a flow set, or a round of a timetable, where sites
//! are agents.
//!
//! Where scenarios have seasons, those that may not run now are skipped. Those that may run come
//! first, of the front block, then of later ones, so that a short season is used to its end.
//!
//! Of those that wait for another try, the scenario with the fewest complete experiments comes first.
//! Only failures use up tries; an interruption does not. What a policy refuses is not tried again
//! within its block. To resume is to ask for what is unfinished, so it has all its tries again.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{BlockOrder, Campaign, Experiment, ExperimentStatus, Scenario, ScenarioId};

use crate::order::order_of_block;
use crate::plan::Plan;
use crate::rounds::groups;

/// The next experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgendaSlot {
    /// The block, from 0.
    pub block: u32,
    /// The scenario's index in the plan's matrix.
    pub scenario: u32,
    /// Its place in the order of execution within the block: how many came before it there.
    pub position: u32,
    /// How often the scenario was tried in this block before.
    pub attempt: u32,
    /// Whether it is the first of its block.
    pub is_first_of_block: bool,
}

/// One experiment that has ended, as far as the agenda cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedExperiment {
    /// Its block.
    pub block: u32,
    /// Its scenario.
    pub scenario: ScenarioId,
    /// How it ended. Running counts as interrupted: the caller has recovered first.
    pub status: ExperimentStatus,
    /// Another try would fail in the same way.
    pub is_permanent: bool,
}

impl From<&Experiment> for EndedExperiment {
    fn from(experiment: &Experiment) -> Self {
        Self {
            block: experiment.block,
            scenario: experiment.scenario,
            status: experiment.status,
            is_permanent: false,
        }
    }
}

/// How far a campaign is. The parts add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CampaignProgress {
    /// Scenario and block pairs.
    pub total: u64,
    /// With a complete experiment.
    pub complete: u64,
    /// Failed as often as allowed.
    pub given_up: u64,
    /// Still to be carried out.
    pub open: u64,
}

/// A scenario within a block.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    attempts: u32,
    failures: u32,
    is_complete: bool,
}

/// What has been carried out and what has not.
#[derive(Debug)]
pub struct Agenda {
    order: BlockOrder,
    seed: u64,
    tries: u32,
    blocks: u32,
    index_of: BTreeMap<ScenarioId, u32>,
    /// What runs at the same time, by scenario.
    groups: Vec<u32>,
    /// By block, then by scenario.
    cells: Vec<Vec<Cell>>,
    /// Experiments per block.
    experiment_counts: Vec<u32>,
    /// Complete experiments per scenario.
    complete_counts: Vec<u32>,
    /// Pairs that were tried, are not complete, and may be tried again.
    retry_pairs: BTreeSet<(u32, u32)>,
    /// The first block that has an untried scenario.
    current_block: u32,
    /// The order of the front block.
    current_order: Vec<u32>,
}

impl Agenda {
    /// The agenda of `plan` with its `scenarios` when nothing has been run. `seed` and `order` are
    /// the campaign's own, which may differ from the plan's.
    pub fn new(plan: &Plan, scenarios: &[Scenario], order: BlockOrder, seed: u64) -> Self {
        let count = scenarios.len();
        let ids = scenarios.iter().map(|scenario| scenario.id);
        let mut agenda = Self {
            order,
            seed,
            tries: plan.tries,
            blocks: plan.blocks,
            index_of: ids.zip(0..).collect(),
            groups: groups(plan, scenarios),
            cells: vec![vec![Cell::default(); count]; plan.blocks as usize],
            experiment_counts: vec![0; plan.blocks as usize],
            complete_counts: vec![0; count],
            retry_pairs: BTreeSet::new(),
            current_block: 0,
            current_order: Vec::new(),
        };
        agenda.current_order = agenda.order_of(0);
        agenda
    }

    /// Where a campaign stands that had these `experiments`: what is not complete has all its tries
    /// again.
    pub(crate) fn resumed(
        plan: &Plan,
        scenarios: &[Scenario],
        campaign: &Campaign,
        experiments: &[Experiment],
    ) -> Self {
        let mut agenda = Self::new(plan, scenarios, campaign.order, campaign.seed);
        for experiment in experiments {
            agenda.record_end(EndedExperiment::from(experiment));
        }
        agenda.allow_retry();
        agenda
    }

    fn order_of(&self, block: u32) -> Vec<u32> {
        let count = u32::try_from(self.complete_counts.len()).expect("a matrix has at most 10,000");
        order_of_block(self.order, self.seed, block, count)
    }

    /// Takes note of an experiment that has ended. One of a block or scenario that the plan does
    /// not have is ignored.
    pub fn record_end(&mut self, ended: EndedExperiment) {
        let Some(&scenario) = self.index_of.get(&ended.scenario) else {
            return;
        };
        let (row, column) = (ended.block as usize, scenario as usize);
        let Some(cell) = self.cells.get_mut(row).map(|cells| &mut cells[column]) else {
            return;
        };
        cell.attempts += 1;
        match ended.status {
            ExperimentStatus::Complete if !cell.is_complete => {
                cell.is_complete = true;
                self.complete_counts[column] += 1;
            }
            ExperimentStatus::Failed if ended.is_permanent => cell.failures = self.tries,
            ExperimentStatus::Failed => cell.failures += 1,
            _ => {}
        }
        let pair = (ended.block, scenario);
        if cell.is_complete || cell.failures >= self.tries {
            self.retry_pairs.remove(&pair);
        } else {
            self.retry_pairs.insert(pair);
        }
        self.experiment_counts[row] += 1;
        self.advance();
    }

    /// Gives what is not complete all its tries again.
    pub fn allow_retry(&mut self) {
        for (block, cells) in (0..).zip(&mut self.cells) {
            for (scenario, cell) in (0..).zip(cells) {
                cell.failures = 0;
                if cell.attempts > 0 && !cell.is_complete {
                    self.retry_pairs.insert((block, scenario));
                }
            }
        }
    }

    fn advance(&mut self) {
        while self.current_block < self.blocks {
            let cells = &self.cells[self.current_block as usize];
            if cells.iter().any(|cell| cell.attempts == 0) {
                return;
            }
            self.current_block += 1;
            self.current_order = self.order_of(self.current_block);
        }
    }

    /// What to run next, if it were always the season for it; `None` when everything is complete
    /// or given up.
    pub fn next(&self) -> Option<AgendaSlot> {
        self.next_allowed(&|_| true)
    }

    /// What to run next among the scenarios that may run now; `None` if none of those is open.
    pub fn next_allowed(&self, is_allowed: &dyn Fn(u32) -> bool) -> Option<AgendaSlot> {
        if self.current_block >= self.blocks {
            return self
                .next_retry(u32::MAX, is_allowed)
                .map(|pair| self.slot(pair));
        }
        let has_begun = self.experiment_counts[self.current_block as usize] > 0;
        if !has_begun && let Some(pair) = self.next_retry(self.current_block, is_allowed) {
            return Some(self.slot(pair));
        }
        let block = self.current_block;
        if let Some(scenario) = self.next_untried(block, &self.current_order, is_allowed) {
            return Some(self.slot((block, scenario)));
        }
        // What waits for its season does not hold up what could run now in later blocks.
        ((self.current_block + 1)..self.blocks).find_map(|block| {
            let scenario = self.next_untried(block, &self.order_of(block), is_allowed)?;
            Some(self.slot((block, scenario)))
        })
    }

    /// What runs at the same time as `first_slot`, which has come from [`Self::next_allowed`]: `first_slot`
    /// itself, then what is open of its block and group, in the block's order. What failed waits for its own
    /// next try, unless that is what `first_slot` is.
    pub fn concurrent_slots(
        &self,
        first_slot: AgendaSlot,
        is_allowed: &dyn Fn(u32) -> bool,
    ) -> Vec<AgendaSlot> {
        let cells = &self.cells[first_slot.block as usize];
        let group = self.groups[first_slot.scenario as usize];
        let is_retry = cells[first_slot.scenario as usize].failures > 0;
        let parallel_slots = self
            .order_of(first_slot.block)
            .into_iter()
            .filter(|scenario| {
                let cell = &cells[*scenario as usize];
                let is_open = !cell.is_complete
                    && cell.failures < self.tries
                    && (is_retry || cell.failures == 0);
                *scenario != first_slot.scenario
                    && self.groups[*scenario as usize] == group
                    && is_open
            });
        let parallel_slots = parallel_slots.filter(|scenario| is_allowed(*scenario));
        let parallel_slots = (1..)
            .zip(parallel_slots)
            .map(|(offset, scenario)| AgendaSlot {
                position: first_slot.position + offset,
                is_first_of_block: false,
                ..self.slot((first_slot.block, scenario))
            });
        std::iter::once(first_slot).chain(parallel_slots).collect()
    }

    fn next_untried(
        &self,
        block: u32,
        order: &[u32],
        is_allowed: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let cells = &self.cells[block as usize];
        let mut untried = order
            .iter()
            .filter(|scenario| cells[**scenario as usize].attempts == 0);
        untried.find(|scenario| is_allowed(**scenario)).copied()
    }

    /// Of the pairs whose next try is due before block `before_block` begins, the one whose scenario
    /// has the fewest complete experiments. Of several, the least tried, then the oldest, then the
    /// first in the order of its block.
    fn next_retry(
        &self,
        before_block: u32,
        is_allowed: &dyn Fn(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let rank = |(block, scenario): (u32, u32)| {
            let attempts = self.cells[block as usize][scenario as usize].attempts;
            (self.complete_counts[scenario as usize], attempts, block)
        };
        let is_due = |(block, scenario): &(u32, u32)| {
            let attempts = self.cells[*block as usize][*scenario as usize].attempts;
            let is_block_reached =
                before_block == u32::MAX || attempts <= before_block.saturating_sub(*block);
            is_block_reached && is_allowed(*scenario)
        };
        let due_pairs = self.retry_pairs.iter().copied().filter(is_due);
        let best_rank = due_pairs.map(rank).min()?;
        let (_, _, block) = best_rank;
        let is_best = |scenario: &u32| {
            let pair = (block, *scenario);
            self.retry_pairs.contains(&pair) && is_due(&pair) && rank(pair) == best_rank
        };
        let scenario = self.order_of(block).into_iter().find(is_best)?;
        Some((block, scenario))
    }

    fn slot(&self, (block, scenario): (u32, u32)) -> AgendaSlot {
        let position = self.experiment_counts[block as usize];
        AgendaSlot {
            block,
            scenario,
            position,
            attempt: self.cells[block as usize][scenario as usize].attempts,
            is_first_of_block: position == 0,
        }
    }

    /// How far the campaign is.
    pub fn progress(&self) -> CampaignProgress {
        let mut progress = CampaignProgress::default();
        for cell in self.cells.iter().flatten() {
            progress.total += 1;
            if cell.is_complete {
                progress.complete += 1;
            } else if cell.failures >= self.tries {
                progress.given_up += 1;
            } else {
                progress.open += 1;
            }
        }
        progress
    }

    /// The pairs still to be carried out, as (block, scenario): those of blocks that were begun
    /// and those of blocks that were not.
    pub(crate) fn open_pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.blocks)
            .zip(&self.cells)
            .flat_map(move |(block, cells)| {
                (0..).zip(cells).filter_map(move |(scenario, cell)| {
                    let is_open = !cell.is_complete && cell.failures < self.tries;
                    is_open.then_some((block, scenario))
                })
            })
    }

    /// What runs at the same time, by scenario.
    pub(crate) fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Whether any scenario of `block` has been tried.
    pub(crate) fn has_begun(&self, block: u32) -> bool {
        self.experiment_counts
            .get(block as usize)
            .is_some_and(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests;
