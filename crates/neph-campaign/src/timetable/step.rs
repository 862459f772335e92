//! Rounds in step: each begins when the longest task of the one before has ended.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use neph_model::Span;

use super::bound;
use super::circuit::Circuit;
use super::circuits;
use super::density::{WeightedCircuit, densest};
use super::occupancy::{Demand, Need, Occupancy};
use super::resource::{Resource, UseMode};
use super::search;
use super::table::{Round, Timetable};
use super::task::Task;

/// Moving tasks between rounds takes at most so many looks at a round.
const MAX_LOOKS: usize = 4_000_000;

/// More ends of circuits than that are left to the general search: looking for the busiest sets of them
/// takes the square of their number.
const MAX_ENDS: usize = 2_000;

/// Puts tasks into rounds that follow each other, so that their lengths together are short.
///
/// Meshes of equally long tasks get as few rounds as there can be. For other tasks it may be longer than
/// needed; [`Timetable::bound`] shows by how much at most. Takes some 40 ms for a mesh
/// of 20,000 tasks, and a second for as many of all modes and several lengths.
pub fn rounds(tasks: &[Task]) -> Timetable {
    let demand = Demand::of(tasks);
    let bound = bound::greatest_bound(&demand);
    let mut best = longest_rounds_first(&demand, rounds_by_length(&demand));
    if total_length(&demand, &best) > bound.span {
        let longest_first = search::longest_first(&demand, all_tasks(&demand));
        let longest_first = longest_rounds_first(&demand, longest_first);
        best = shorter_rounds(&demand, best, longest_first);
    }
    if total_length(&demand, &best) > bound.span {
        let merged = merge_rounds(&demand, best.clone());
        best = shorter_rounds(&demand, merged, best);
    }
    let mut start = Span::ZERO;
    let rounds = best.into_iter().map(|mut tasks| {
        tasks.sort_unstable();
        let length = length(&demand, &tasks);
        let round = Round {
            start,
            length,
            tasks,
        };
        start += length;
        round
    });
    let rounds: Vec<Round> = rounds.collect();
    Timetable {
        rounds,
        makespan: start,
        bound,
    }
}

fn all_tasks(demand: &Demand<'_>) -> Vec<usize> {
    (0..demand.needs.len()).collect()
}

fn length(demand: &Demand<'_>, tasks: &[usize]) -> Span {
    let slots = tasks.iter().map(|task| demand.slots[*task]);
    slots.max().unwrap_or(Span::ZERO)
}

fn total_length(demand: &Demand<'_>, rounds: &[Vec<usize>]) -> Span {
    rounds.iter().map(|tasks| length(demand, tasks)).sum()
}

fn shorter_rounds(
    demand: &Demand<'_>,
    first: Vec<Vec<usize>>,
    other: Vec<Vec<usize>>,
) -> Vec<Vec<usize>> {
    if total_length(demand, &other) < total_length(demand, &first) {
        other
    } else {
        first
    }
}

/// The longest rounds first; among equals those that were first.
fn longest_rounds_first(demand: &Demand<'_>, mut rounds: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    rounds.retain(|tasks| !tasks.is_empty());
    rounds.sort_by_key(|tasks| Reverse(length(demand, tasks)));
    rounds
}

/// Rounds of tasks of one length, for each length.
fn rounds_by_length(demand: &Demand<'_>) -> Vec<Vec<usize>> {
    let mut tasks_by_length: BTreeMap<Span, Vec<usize>> = BTreeMap::new();
    for (task, slot) in demand.slots.iter().enumerate() {
        tasks_by_length.entry(*slot).or_default().push(task);
    }
    let classes = tasks_by_length.into_values();
    classes
        .flat_map(|tasks| {
            let rounds_of_circuits = circuit_rounds(demand, &tasks);
            rounds_of_circuits.unwrap_or_else(|| search::rounds(demand, &tasks))
        })
        .collect()
}

/// Rounds of tasks that are circuits; `None` if some are not.
fn circuit_rounds(demand: &Demand<'_>, tasks: &[usize]) -> Option<Vec<Vec<usize>>> {
    // A task with one host has its other end to itself.
    let mut ends = 0;
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let mut number = |need: Option<&Need>| {
        let next = ends;
        let number = need.map_or(next, |need| *numbers.entry(need.resource).or_insert(next));
        ends += usize::from(number == next);
        number
    };
    let mut circuits = Vec::with_capacity(tasks.len());
    for task in tasks {
        let needs = &demand.needs[*task];
        let is_circuit = (1..=2).contains(&needs.len())
            && needs.iter().all(|need| {
                let is_host = matches!(demand.resources[need.resource], Resource::Host(_));
                is_host && need.mode != UseMode::Background
            });
        if !is_circuit {
            return None;
        }
        circuits.push(Circuit {
            from: number(needs.first()),
            to: number(needs.get(1)),
        });
    }
    if ends > MAX_ENDS {
        return None;
    }
    let min_rounds = min_rounds(&circuits, ends);
    let rounds = circuits::rounds(&circuits, ends, min_rounds)?;
    let rounds = rounds.into_iter();
    let task = |circuit: usize| tasks[circuit];
    Some(
        rounds
            .map(|round| round.into_iter().map(task).collect())
            .collect(),
    )
}

/// How many rounds circuits need at least.
fn min_rounds(circuits: &[Circuit], ends: usize) -> usize {
    let weighted_circuits = circuits.iter().map(|circuit| WeightedCircuit {
        circuit: *circuit,
        weight: 1,
    });
    let weighted_circuits: Vec<WeightedCircuit> = weighted_circuits.collect();
    usize::try_from(densest(&weighted_circuits, ends).min_length).unwrap_or(usize::MAX)
}

/// Moves the longest task of each round, from the shortest round on, into one that is as long anyway: a
/// round becomes shorter so, or vanishes.
fn merge_rounds(demand: &Demand<'_>, mut rounds: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let count = rounds.len();
    if count.saturating_mul(demand.needs.len()) > MAX_LOOKS {
        return rounds;
    }
    let mut occupied = vec![Occupancy::all_free(demand.resources.len()); count];
    for (round, tasks) in rounds.iter().enumerate() {
        for task in tasks {
            occupied[round].take(*task, demand);
        }
    }
    for from in (0..count).rev() {
        rounds[from].sort_by_key(|task| (demand.slots[*task], Reverse(*task)));
        while let Some(&task) = rounds[from].last() {
            let can_take = |to: &usize| {
                let is_long = length(demand, &rounds[*to]) >= demand.slots[task];
                *to != from && is_long && occupied[*to].can_take_task(task, demand)
            };
            let Some(to) = (0..count).find(can_take) else {
                break;
            };
            rounds[from].pop();
            rounds[to].push(task);
            occupied[from].release(task, demand);
            occupied[to].take(task, demand);
        }
    }
    longest_rounds_first(demand, rounds)
}
