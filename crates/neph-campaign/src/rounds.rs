//! The rounds of a plan: which of its experiments run at the same time where sites are agents.
//!
//! Owns what an experiment claims. Its site and the host of its endpoint, in the mode of the endpoint, and
//! the links and overlays that the plan declares. Fleets of one flow set are one task, as they are one
//! order. On one host everything but those runs one after the other. Pure.

use std::collections::BTreeMap;

use neph_model::{ByteSize, Scenario, Span};

use crate::flow_sets;
use crate::lengths::{length, payloads, trace_time};
use crate::pairs::site_of;
use crate::plan::Plan;
use crate::timetable::{self, Claim, Resource, Task, Timetable, UseMode};

/// What a block does with a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// The host, link or overlay.
    pub resource: Resource,
    /// How long something uses it; what uses it at the same time counts once each.
    pub busy_time: Span,
    /// Request payloads.
    pub request_bytes: ByteSize,
    /// Reply payloads.
    pub response_bytes: ByteSize,
}

/// The timetable of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRounds {
    /// By task: its scenarios, as indices of the matrix.
    pub tasks: Vec<Vec<u32>>,
    /// When each task runs. The order of rounds within a block is another one where the plan's is random.
    pub table: Timetable,
    /// What each resource has to carry, by resource.
    pub usage: Vec<ResourceUsage>,
    /// How long the tasks are one after the other.
    pub sequential_duration: Span,
}

impl PlanRounds {
    /// The scenarios of each round, as indices of the matrix, in order.
    pub fn scenarios(&self) -> impl Iterator<Item = Vec<u32>> {
        self.table.rounds.iter().map(|round| {
            let tasks = round.tasks.iter();
            let mut scenarios: Vec<u32> =
                tasks.flat_map(|task| self.tasks[*task].clone()).collect();
            scenarios.sort_unstable();
            scenarios
        })
    }
}

/// The round of each scenario, by index: those of one round run at the same time. Rounds are counted from
/// 0; without agents a round is the fleets of one flow set, or one scenario.
pub fn groups(plan: &Plan, scenarios: &[Scenario]) -> Vec<u32> {
    if plan.agents.is_empty() {
        return flow_sets::groups(plan, scenarios);
    }
    let mut groups = vec![0; scenarios.len()];
    for (round, round_scenarios) in (0..).zip(rounds(plan, scenarios).scenarios()) {
        for scenario in round_scenarios {
            groups[scenario as usize] = round;
        }
    }
    groups
}

/// The timetable of a block of `plan` with its `scenarios`: with the plan's pause before each round,
/// without throughput checks and traceroutes at its start.
pub fn rounds(plan: &Plan, scenarios: &[Scenario]) -> PlanRounds {
    let mut scenarios_by_group: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (scenario, group) in (0..).zip(flow_sets::groups(plan, scenarios)) {
        scenarios_by_group.entry(group).or_default().push(scenario);
    }
    let task_scenarios: Vec<Vec<u32>> = scenarios_by_group.into_values().collect();
    let tasks = task_scenarios.iter().map(|indices| {
        let concurrent = indices.iter().map(|index| &scenarios[*index as usize]);
        task(plan, &concurrent.collect::<Vec<_>>())
    });
    let tasks: Vec<Task> = tasks.collect();
    let season = |task: usize| scenarios[task_scenarios[task][0] as usize].season();
    let mut tasks_by_season: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for task in 0..tasks.len() {
        tasks_by_season.entry(season(task)).or_default().push(task);
    }
    PlanRounds {
        table: chain_timetables(&tasks, tasks_by_season.into_values()),
        usage: usage(plan, scenarios),
        sequential_duration: tasks.iter().map(Task::slot).sum(),
        tasks: task_scenarios,
    }
}

/// Timetables of parts that must not mix, as what runs in different seasons.
fn chain_timetables(tasks: &[Task], parts: impl Iterator<Item = Vec<usize>>) -> Timetable {
    let mut combined: Option<Timetable> = None;
    let mut max_bound = Span::ZERO;
    for part in parts {
        let part_tasks: Vec<Task> = part.iter().map(|task| tasks[*task].clone()).collect();
        let mut table = timetable::rounds(&part_tasks);
        for round in &mut table.rounds {
            round.tasks.iter_mut().for_each(|task| *task = part[*task]);
        }
        let Some(total) = &mut combined else {
            max_bound = table.bound.span;
            combined = Some(table);
            continue;
        };
        for mut round in table.rounds {
            round.start += total.makespan;
            total.rounds.push(round);
        }
        total.makespan += table.makespan;
        total.bound.span += table.bound.span;
        if table.bound.span > max_bound {
            max_bound = table.bound.span;
            total.bound.reason = table.bound.reason;
        }
    }
    combined.unwrap_or_else(|| timetable::rounds(&[]))
}

/// Scenarios that are one task: as long as the longest, with their traces, which each site makes one after
/// the other.
fn task(plan: &Plan, scenarios: &[&Scenario]) -> Task {
    let max_length = scenarios.iter().map(|scenario| length(scenario)).max();
    let mut traces: BTreeMap<Option<String>, Span> = BTreeMap::new();
    for scenario in scenarios {
        let site = site_of(plan, scenario).filter(|_| !plan.agents.is_empty());
        *traces.entry(site).or_default() += trace_time(plan, scenario).usual;
    }
    let traces = traces.into_values().max().unwrap_or(Span::ZERO);
    let duration = plan.pause + max_length.unwrap_or(Span::ZERO) + traces;
    Task::new(
        duration,
        scenarios.iter().flat_map(|scenario| claims(plan, scenario)),
    )
}

/// What a scenario claims.
fn claims(plan: &Plan, scenario: &Scenario) -> Vec<Claim> {
    if plan.agents.is_empty() {
        return vec![Claim::new(Resource::Host("here".to_owned()), UseMode::Load)];
    }
    let mut endpoints = plan.endpoints.iter();
    let endpoint = endpoints.find(|endpoint| endpoint.name == scenario.endpoint);
    let mode = endpoint.map_or(UseMode::Latency, |endpoint| endpoint.mode);
    // Fleets of other flow sets are never in one round at a site: their rates would add up.
    let mode = if scenario.measure().fills_links() {
        mode.min(UseMode::Load)
    } else if scenario.flows().is_some() || scenario.measure().is_transfer() {
        mode.min(UseMode::Latency)
    } else {
        mode
    };
    let site = site_of(plan, scenario);
    let resources = resources(plan, site.as_deref(), &scenario.endpoint).into_iter();
    resources
        .map(|resource| Claim::new(resource, mode))
        .collect()
}

/// What a circuit from `site` to `endpoint` uses: the hosts of both ends, and links and overlays that the
/// plan declares.
pub(crate) fn resources(plan: &Plan, site: Option<&str>, endpoint: &str) -> Vec<Resource> {
    let planned_endpoint = plan
        .endpoints
        .iter()
        .find(|candidate| candidate.name == endpoint);
    let endpoint_site = planned_endpoint.and_then(|endpoint| endpoint.site.as_deref());
    let host = endpoint_site.or_else(|| planned_endpoint.map(|endpoint| endpoint.target.host()));
    let shared = plan.shared.iter();
    let shared = shared.filter(|shared| shared.is_used_by_circuit(site, endpoint, endpoint_site));
    let shared = shared.map(|shared| shared.resource.clone());
    let hosts = site.into_iter().chain(host);
    let hosts = hosts.map(|host| Resource::Host(host.to_owned()));
    hosts.chain(shared).collect()
}

/// What each resource has to carry in a block.
fn usage(plan: &Plan, scenarios: &[Scenario]) -> Vec<ResourceUsage> {
    let mut usages: BTreeMap<Resource, ResourceUsage> = BTreeMap::new();
    for scenario in scenarios {
        let (request_bytes, response_bytes) = payloads(scenario);
        // Both ends may be one host, which has the bytes once.
        for claim in Task::new(Span::ZERO, claims(plan, scenario)).claims() {
            let usage = usages.entry(claim.resource.clone());
            let usage = usage.or_insert_with(|| ResourceUsage {
                resource: claim.resource.clone(),
                busy_time: Span::ZERO,
                request_bytes: ByteSize(0),
                response_bytes: ByteSize(0),
            });
            let add = |to: &mut ByteSize, bytes| *to = ByteSize(to.0.saturating_add(bytes));
            usage.busy_time += length(scenario);
            add(&mut usage.request_bytes, request_bytes);
            add(&mut usage.response_bytes, response_bytes);
        }
    }
    usages.into_values().collect()
}

#[cfg(test)]
mod tests;
