//! Tasks with their resources as numbers, and how far each resource is taken in a round.

use std::collections::BTreeMap;

use neph_model::Span;

use super::resource::{Resource, UseMode};
use super::task::Task;

/// A resource by number, and how it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) resource: usize,
    pub(super) mode: UseMode,
}

/// What all tasks need.
#[derive(Debug)]
pub(super) struct Demand<'t> {
    /// By number.
    pub(super) resources: Vec<&'t Resource>,
    /// By task.
    pub(super) needs: Vec<Vec<Need>>,
    /// By task: how long it has its resources.
    pub(super) slots: Vec<Span>,
}

impl<'t> Demand<'t> {
    pub(super) fn of(tasks: &'t [Task]) -> Self {
        let mut numbers: BTreeMap<&Resource, usize> = BTreeMap::new();
        for claim in tasks.iter().flat_map(Task::claims) {
            numbers.entry(&claim.resource).or_insert(0);
        }
        for (number, value) in numbers.values_mut().enumerate() {
            *value = number;
        }
        let needs = tasks.iter().map(|task| {
            let claims = task.claims().iter();
            let needs = claims.map(|claim| Need {
                resource: numbers[&claim.resource],
                mode: claim.mode,
            });
            needs.collect()
        });
        Self {
            needs: needs.collect(),
            slots: tasks.iter().map(Task::slot).collect(),
            resources: numbers.into_keys().collect(),
        }
    }

    /// Whether two tasks must not overlap.
    pub(super) fn are_in_conflict(&self, task: usize, other: usize) -> bool {
        self.needs[task].iter().any(|need| {
            let mut other_needs = self.needs[other].iter();
            other_needs.any(|other_need| {
                need.resource == other_need.resource && self.excludes(*need, other_need.mode)
            })
        })
    }

    /// Whether a need excludes another use of its resource.
    pub(super) fn excludes(&self, need: Need, other: UseMode) -> bool {
        need.mode.excludes(other, self.resources[need.resource])
    }

    /// By task: how long what it conflicts with on one resource takes, the worst of its resources.
    pub(super) fn conflict_times(&self) -> Vec<Span> {
        let mut busy = vec![[Span::ZERO; UseMode::ALL.len()]; self.resources.len()];
        for (needs, slot) in self.needs.iter().zip(&self.slots) {
            for need in needs {
                busy[need.resource][need.mode as usize] += *slot;
            }
        }
        let conflict_time = |need: &Need| {
            let others = UseMode::ALL
                .iter()
                .filter(|other| self.excludes(*need, **other));
            others
                .map(|other| busy[need.resource][*other as usize])
                .sum()
        };
        let needs = self.needs.iter();
        needs
            .map(|needs| needs.iter().map(conflict_time).max().unwrap_or(Span::ZERO))
            .collect()
    }
}

/// How many users of each mode each resource has at a time.
#[derive(Clone, Debug)]
pub(super) struct Occupancy(Vec<[u32; UseMode::ALL.len()]>);

impl Occupancy {
    /// Of so many resources, all of them free.
    pub(super) fn all_free(resources: usize) -> Self {
        Self(vec![[0; UseMode::ALL.len()]; resources])
    }

    /// Whether a need finds nothing that it excludes.
    pub(super) fn can_take(&self, need: Need, demand: &Demand<'_>) -> bool {
        let users = &self.0[need.resource];
        let mut modes = UseMode::ALL.iter();
        !modes.any(|mode| users[*mode as usize] > 0 && demand.excludes(need, *mode))
    }

    /// Whether all needs of a task find nothing that they exclude.
    pub(super) fn can_take_task(&self, task: usize, demand: &Demand<'_>) -> bool {
        let mut needs = demand.needs[task].iter();
        needs.all(|need| self.can_take(*need, demand))
    }

    pub(super) fn take(&mut self, task: usize, demand: &Demand<'_>) {
        for need in &demand.needs[task] {
            self.0[need.resource][need.mode as usize] += 1;
        }
    }

    pub(super) fn release(&mut self, task: usize, demand: &Demand<'_>) {
        for need in &demand.needs[task] {
            self.0[need.resource][need.mode as usize] -= 1;
        }
    }
}
