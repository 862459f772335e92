//! A timetable without steps: each task begins as soon as what it claims is free.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use neph_model::Span;

use super::occupancy::{Demand, Occupancy};
use super::step;
use super::table::{Round, Timetable};
use super::task::Task;

/// Puts tasks one after the other so that all end early, each when what it claims is free. For agents
/// that begin at agreed times; a campaign follows [`step::rounds`].
///
/// Of three timetables the shortest: the rounds in step; the longest task first; and first the one whose
/// resources have the most to do. Time grows with the square of the tasks where lengths differ.
pub fn pack_tasks(tasks: &[Task]) -> Timetable {
    let mut best = step::rounds(tasks);
    if best.makespan == best.bound.span {
        return best;
    }
    let demand = Demand::of(tasks);
    let conflict_times = demand.conflict_times();
    let mut by_length: Vec<usize> = (0..tasks.len()).collect();
    let mut by_conflict_time = by_length.clone();
    by_length.sort_by_key(|task| {
        (
            Reverse(demand.slots[*task]),
            Reverse(conflict_times[*task]),
            *task,
        )
    });
    by_conflict_time.sort_by_key(|task| {
        (
            Reverse(conflict_times[*task]),
            Reverse(demand.slots[*task]),
            *task,
        )
    });
    for order in [by_length, by_conflict_time] {
        let starts = starts(&demand, order);
        let ends = starts.iter().zip(&demand.slots);
        let makespan = ends.map(|(start, slot)| *start + *slot).max();
        let makespan = makespan.unwrap_or(Span::ZERO);
        if makespan < best.makespan {
            best.makespan = makespan;
            best.rounds = rounds_by_start(&demand, &starts);
        }
    }
    best
}

/// When each task begins if what comes first in `order` goes first.
fn starts(demand: &Demand<'_>, mut order: Vec<usize>) -> Vec<Span> {
    let mut starts = vec![Span::ZERO; order.len()];
    let mut occupancy = Occupancy::all_free(demand.resources.len());
    let mut running: BTreeMap<Span, Vec<usize>> = BTreeMap::new();
    let mut now = Span::ZERO;
    loop {
        order.retain(|task| {
            if !occupancy.can_take_task(*task, demand) {
                return true;
            }
            starts[*task] = now;
            // What takes no time is over at once.
            if demand.slots[*task] > Span::ZERO {
                occupancy.take(*task, demand);
                let end = now + demand.slots[*task];
                running.entry(end).or_default().push(*task);
            }
            false
        });
        let Some((end, finished_tasks)) = running.pop_first() else {
            return starts;
        };
        for task in finished_tasks {
            occupancy.release(task, demand);
        }
        now = end;
    }
}

fn rounds_by_start(demand: &Demand<'_>, starts: &[Span]) -> Vec<Round> {
    let mut tasks_by_start: BTreeMap<Span, Vec<usize>> = BTreeMap::new();
    for (task, start) in starts.iter().enumerate() {
        tasks_by_start.entry(*start).or_default().push(task);
    }
    let rounds = tasks_by_start.into_iter().map(|(start, tasks)| {
        let length = tasks.iter().map(|task| demand.slots[*task]).max();
        Round {
            start,
            length: length.unwrap_or(Span::ZERO),
            tasks,
        }
    });
    rounds.collect()
}
