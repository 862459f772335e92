//! Rounds of tasks with claims of any kind: the longest first, then a search for fewer rounds.

use std::cmp::Reverse;

use neph_model::Span;

use crate::order::Generator;

use super::bound;
use super::occupancy::{Demand, Occupancy};

/// The search for fewer rounds looks at so many claims in all: some 200 ms at the most.
const MAX_LOOKS: usize = 20_000_000;
/// A table of more places than this would fill the memory: such tasks stay as the first pass has them.
const MAX_TABLE_CELLS: usize = 2_000_000;
/// The search always begins here, so that the same input has the same timetable.
const SEED: u64 = 0x6e65_7068;

/// Each task into the first round that has room: the longest first, and among equals those with the most
/// others in their way.
pub(super) fn longest_first(demand: &Demand<'_>, mut tasks: Vec<usize>) -> Vec<Vec<usize>> {
    let conflict_times = demand.conflict_times();
    tasks.sort_by_key(|task| {
        let (slot, conflict_time) = (demand.slots[*task], conflict_times[*task]);
        (Reverse(slot), Reverse(conflict_time), *task)
    });
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut occupied: Vec<Occupancy> = Vec::new();
    // By resource and mode: rounds before this one are full for it, and stay so.
    let mut full_rounds = vec![[0_usize; 4]; demand.resources.len()];
    for task in tasks {
        let needs = &demand.needs[task];
        let mut first = 0;
        for need in needs {
            let full_count = &mut full_rounds[need.resource][need.mode as usize];
            while occupied
                .get(*full_count)
                .is_some_and(|round| !round.can_take(*need, demand))
            {
                *full_count += 1;
            }
            first = first.max(*full_count);
        }
        let free_round =
            (first..rounds.len()).find(|round| occupied[*round].can_take_task(task, demand));
        let index = free_round.unwrap_or(rounds.len());
        if index == rounds.len() {
            rounds.push(Vec::new());
            occupied.push(Occupancy::all_free(demand.resources.len()));
        }
        rounds[index].push(task);
        occupied[index].take(task, demand);
    }
    rounds
}

/// Rounds of tasks of one length.
pub(super) fn rounds(demand: &Demand<'_>, tasks: &[usize]) -> Vec<Vec<usize>> {
    let mut best = longest_first(demand, tasks.to_vec());
    let slot = tasks.first().map_or(Span::ZERO, |task| demand.slots[*task]);
    let tasks_demand = Demand {
        resources: demand.resources.clone(),
        needs: tasks
            .iter()
            .map(|task| demand.needs[*task].clone())
            .collect(),
        slots: vec![slot; tasks.len()],
    };
    let min_rounds = bound::greatest_bound(&tasks_demand).span.nanos() / slot.nanos().max(1);
    let min_rounds = usize::try_from(min_rounds).unwrap_or(usize::MAX).max(1);
    let mut looks = MAX_LOOKS;
    while best.len() > min_rounds {
        let round_count = best.len() - 1;
        let search = Search::new(&tasks_demand, round_count);
        let placement = search.and_then(|search| search.run(&mut looks));
        let Some(placement) = placement else { break };
        best = vec![Vec::new(); round_count];
        for (task, round) in tasks.iter().zip(placement) {
            best[round].push(*task);
        }
    }
    best
}

/// A search for a number of rounds. Tasks without a place take one. Tasks in conflict lose theirs, which
/// they may not take back for a while (`PartialCol`: Blöchliger and Zufferey 2008).
struct Search<'d> {
    demand: &'d Demand<'d>,
    rounds: usize,
    /// By round, then by resource: the tasks that use it.
    users: Vec<Vec<usize>>,
    round_of: Vec<Option<usize>>,
    unplaced_tasks: Vec<usize>,
    /// By task, then by round: until which step it must not come back.
    barred_until: Vec<u64>,
    generator: Generator,
    step: u64,
}

impl<'d> Search<'d> {
    /// `None` where there are too many tasks, resources and rounds.
    fn new(demand: &'d Demand<'d>, rounds: usize) -> Option<Self> {
        let (tasks, resources) = (demand.needs.len(), demand.resources.len());
        if rounds == 0 || rounds.saturating_mul(tasks.max(resources)) > MAX_TABLE_CELLS {
            return None;
        }
        Some(Self {
            demand,
            rounds,
            users: vec![Vec::new(); rounds * resources],
            round_of: vec![None; tasks],
            unplaced_tasks: (0..tasks).collect(),
            barred_until: vec![0; rounds * tasks],
            generator: Generator::seeded(SEED),
            step: 0,
        })
    }

    /// The round of each task; `None` if none was found.
    fn run(mut self, looks: &mut usize) -> Option<Vec<usize>> {
        while !self.unplaced_tasks.is_empty() {
            self.step += 1;
            let count = u32::try_from(self.unplaced_tasks.len()).unwrap_or(u32::MAX);
            let chosen = self.generator.below(count) as usize;
            let task = self.unplaced_tasks.swap_remove(chosen);
            let cost = self.rounds * self.demand.needs[task].len().max(1);
            *looks = looks.checked_sub(cost)?;
            let (round, conflicting_tasks) = self.round_with_fewest_conflicts(task);
            for other in conflicting_tasks {
                self.withdraw(other, round);
            }
            self.assign_round(task, round);
        }
        self.round_of.into_iter().collect()
    }

    /// The round in which the fewest are in a task's way, of those that it may come to; and those tasks.
    fn round_with_fewest_conflicts(&mut self, task: usize) -> (usize, Vec<usize>) {
        let first = u32::try_from(self.rounds).unwrap_or(u32::MAX);
        let first = self.generator.below(first) as usize;
        let rounds = (0..self.rounds).map(|step| (first + step) % self.rounds);
        let mut best: Option<(bool, Vec<usize>, usize)> = None;
        for round in rounds {
            let conflicting_tasks = self.conflicting_tasks(task, round);
            let is_barred = self.barred_until[task * self.rounds + round] > self.step;
            let is_better = best.as_ref().is_none_or(|(is_best_barred, displaced, _)| {
                (is_barred, conflicting_tasks.len()) < (*is_best_barred, displaced.len())
            });
            if conflicting_tasks.is_empty() {
                return (round, conflicting_tasks);
            }
            if is_better {
                best = Some((is_barred, conflicting_tasks, round));
            }
        }
        best.map_or((0, Vec::new()), |(_, displaced, round)| (round, displaced))
    }

    fn conflicting_tasks(&self, task: usize, round: usize) -> Vec<usize> {
        let mut conflicting_tasks = Vec::new();
        for need in &self.demand.needs[task] {
            for user in &self.users[round * self.demand.resources.len() + need.resource] {
                let mut user_needs = self.demand.needs[*user].iter();
                let is_excluded = user_needs.any(|user_need| {
                    user_need.resource == need.resource
                        && self.demand.excludes(*need, user_need.mode)
                });
                if is_excluded && !conflicting_tasks.contains(user) {
                    conflicting_tasks.push(*user);
                }
            }
        }
        conflicting_tasks
    }

    fn assign_round(&mut self, task: usize, round: usize) {
        let base = round * self.demand.resources.len();
        for need in &self.demand.needs[task] {
            self.users[base + need.resource].push(task);
        }
        self.round_of[task] = Some(round);
    }

    fn withdraw(&mut self, task: usize, round: usize) {
        let base = round * self.demand.resources.len();
        for need in &self.demand.needs[task] {
            self.users[base + need.resource].retain(|user| *user != task);
        }
        self.round_of[task] = None;
        let barred_steps = self.unplaced_tasks.len() as u64 + u64::from(self.generator.below(10));
        self.barred_until[task * self.rounds + round] = self.step + 1 + barred_steps;
        self.unplaced_tasks.push(task);
    }
}
