//! What no timetable can be shorter than, and why.

use std::fmt;

use neph_model::Span;

use super::circuit::Circuit;
use super::density::{WeightedCircuit, densest};
use super::occupancy::Demand;
use super::resource::{Resource, UseMode};

/// A makespan that no timetable can be below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The makespan.
    pub span: Span,
    /// Why.
    pub reason: BoundReason,
}

/// Why a timetable cannot be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundReason {
    /// There is nothing to do.
    Nothing,
    /// What needs this resource has to follow each other.
    Busy(Resource),
    /// Each task needs two of these hosts, so at most half as many tasks run at a time.
    Hosts(Vec<Resource>),
    /// So many tasks exclude each other, each of them every other one.
    Exclusive(usize),
}

/// What bounds, after the words "at least 36 min 0 s: ".
impl fmt::Display for BoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is nothing to do"),
            Self::Busy(resource) => write!(
                f,
                "measurements that use {resource} run one after the other"
            ),
            Self::Hosts(hosts) => write!(
                f,
                "at most {} circuits run at a time between {} hosts",
                hosts.len() / 2,
                hosts.len()
            ),
            Self::Exclusive(tasks) => write!(f, "{tasks} measurements exclude each other"),
        }
    }
}

/// Looking for tasks that exclude each other takes at most so many comparisons.
const MAX_COMPARISONS: usize = 4_000_000;
/// Sets of hosts are looked at where there are at most so many.
const MAX_HOSTS: usize = 2_000;

/// The greatest bound that is found.
pub(super) fn greatest_bound(demand: &Demand<'_>) -> Bound {
    let mut best = Bound {
        span: Span::ZERO,
        reason: BoundReason::Nothing,
    };
    let mut busiest = Vec::new();
    let users_by_resource = users_by_resource(demand);
    for (resource, users) in users_by_resource.iter().enumerate() {
        let exclusive_tasks = exclusive_tasks(demand, resource, users);
        let span = exclusive_tasks.iter().map(|task| demand.slots[*task]).sum();
        if span > best.span {
            let reason = BoundReason::Busy(demand.resources[resource].clone());
            best = Bound { span, reason };
            busiest = exclusive_tasks;
        }
    }
    let candidates = [hosts_bound(demand), clique_bound(demand, busiest)];
    for other in candidates.into_iter().flatten() {
        if other.span > best.span {
            best = other;
        }
    }
    best
}

/// By resource: the tasks that claim it.
fn users_by_resource(demand: &Demand<'_>) -> Vec<Vec<usize>> {
    let mut users = vec![Vec::new(); demand.resources.len()];
    for (task, needs) in demand.needs.iter().enumerate() {
        for need in needs {
            users[need.resource].push(task);
        }
    }
    users
}

/// Of the users of a resource those that exclude each other: all whose modes exclude each other, and the
/// longest of one mode more.
fn exclusive_tasks(demand: &Demand<'_>, resource: usize, users: &[usize]) -> Vec<usize> {
    let mode_of = |task: usize| {
        let mut needs = demand.needs[task].iter();
        let need = needs.find(|need| need.resource == resource);
        need.map_or(UseMode::Background, |need| need.mode)
    };
    let with_mode = |mode: UseMode| {
        users
            .iter()
            .copied()
            .filter(move |task| mode_of(*task) == mode)
    };
    let longest_with_mode =
        |mode: UseMode| with_mode(mode).max_by_key(|task| (demand.slots[*task], usize::MAX - task));
    let is_host = matches!(demand.resources[resource], Resource::Host(_));
    let loads = with_mode(UseMode::Exclusive).chain(with_mode(UseMode::Load));
    let loads_and_latency: Vec<usize> = if is_host {
        loads.chain(with_mode(UseMode::Latency)).collect()
    } else {
        loads.chain(longest_with_mode(UseMode::Latency)).collect()
    };
    let exclusive_and_background: Vec<usize> = with_mode(UseMode::Exclusive)
        .chain(longest_with_mode(UseMode::Background))
        .collect();
    let total_length = |tasks: &[usize]| tasks.iter().map(|task| demand.slots[*task]).sum::<Span>();
    if total_length(&loads_and_latency) >= total_length(&exclusive_and_background) {
        loads_and_latency
    } else {
        exclusive_and_background
    }
}

/// The hosts of a task that it shares with nothing but monitoring.
fn own_hosts(demand: &Demand<'_>, task: usize) -> impl Iterator<Item = usize> {
    let needs = demand.needs[task].iter();
    let hosts = needs.filter(|need| {
        let is_host = matches!(demand.resources[need.resource], Resource::Host(_));
        is_host && need.mode != UseMode::Background
    });
    hosts.map(|need| need.resource)
}

/// What sets of hosts make of it.
fn hosts_bound(demand: &Demand<'_>) -> Option<Bound> {
    let first = demand.slots.first()?;
    // Tasks of one length run in whole rounds.
    let unit = if demand.slots.iter().all(|slot| slot == first) {
        *first
    } else {
        Span::from_nanos(1)
    };
    let weighted_circuits = (0..demand.needs.len()).filter_map(|task| {
        let mut hosts = own_hosts(demand, task);
        Some(WeightedCircuit {
            circuit: Circuit {
                from: hosts.next()?,
                to: hosts.next()?,
            },
            weight: demand.slots[task].nanos() / unit.nanos().max(1),
        })
    });
    let weighted_circuits: Vec<WeightedCircuit> = weighted_circuits.collect();
    if demand.resources.len() > MAX_HOSTS {
        return None;
    }
    let density = densest(&weighted_circuits, demand.resources.len());
    let hosts = density.ends.iter();
    let hosts: Vec<Resource> = hosts.map(|end| demand.resources[*end].clone()).collect();
    (hosts.len() > 1).then(|| Bound {
        span: unit.times(density.min_length),
        reason: BoundReason::Hosts(hosts),
    })
}

/// What excludes all users of the busiest resource takes its turn as well.
fn clique_bound(demand: &Demand<'_>, mut clique: Vec<usize>) -> Option<Bound> {
    if clique.is_empty() || demand.needs.len().saturating_mul(clique.len()) > MAX_COMPARISONS {
        return None;
    }
    let initial_len = clique.len();
    let mut candidates: Vec<usize> = (0..demand.needs.len()).collect();
    candidates.sort_by_key(|task| (std::cmp::Reverse(demand.slots[*task]), *task));
    for task in candidates {
        let excludes = |other: &usize| *other != task && demand.are_in_conflict(task, *other);
        if clique.iter().all(excludes) {
            clique.push(task);
        }
    }
    (clique.len() > initial_len).then(|| Bound {
        span: clique.iter().map(|task| demand.slots[*task]).sum(),
        reason: BoundReason::Exclusive(clique.len()),
    })
}
