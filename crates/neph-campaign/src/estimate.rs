//! What a plan will cost before anything runs: messages, bytes, time.

use std::collections::BTreeMap;

use neph_model::{ByteSize, Scenario, Span};
use neph_store::most_journalled;

use crate::lengths::payloads;
pub use crate::lengths::{TraceTime, length, trace_time};
use crate::pairs::{site_of, sites_to_server};
use crate::plan::Plan;
use crate::rounds::groups;

/// What a whole campaign takes if nothing fails. Payload bytes of main flows only: headers, TLS,
/// echoes and throughput checks come on top. Saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Scenarios times blocks.
    pub experiments: u64,
    /// Messages of all main flows.
    pub messages: u64,
    /// Request payloads.
    pub request_bytes: ByteSize,
    /// Reply payloads.
    pub response_bytes: ByteSize,
    /// What the messages of fleets take on the disk.
    pub fleet_bytes: ByteSize,
    /// What they take on top while they are measured: of those that run at the same time.
    pub journal_bytes: ByteSize,
    /// One block: throughput checks, experiments, traces of flows, pauses.
    pub block: Span,
    /// What of it the throughput checks take.
    pub checks: Span,
    /// What traces of flows add to a block, at most, where routers answer once a second.
    pub slow_traces: Span,
    /// From the start of the first block to the end of the last.
    pub total: Span,
}

impl Estimate {
    /// Whether a block takes longer than the interval between blocks, so that the next one starts
    /// late.
    pub fn outlasts_interval(&self, plan: &Plan) -> bool {
        plan.blocks > 1 && plan.block_interval > Span::ZERO && self.block > plan.block_interval
    }
}

/// Hours, minutes and seconds.
pub fn to_text(span: Span) -> String {
    let seconds = span.nanos() / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// How long experiments take, each with the plan's pause before it, for (block, scenario) pairs. Those
/// of one block and group run at the same time. Their routes are traced one after the other by each
/// agent, or all by this host.
pub(crate) fn time_of(
    pairs: impl Iterator<Item = (u32, u32)>,
    plan: &Plan,
    scenarios: &[Scenario],
    groups: &[u32],
) -> Span {
    let mut longest: BTreeMap<(u32, u32), Span> = BTreeMap::new();
    let mut traces: BTreeMap<_, BTreeMap<Option<String>, Span>> = BTreeMap::new();
    for (block, scenario) in pairs {
        let group = groups[scenario as usize];
        let scenario = &scenarios[scenario as usize];
        let span = longest.entry((block, group)).or_default();
        *span = length(scenario).max(*span);
        let site = site_of(plan, scenario).filter(|_| !plan.agents.is_empty());
        let traces_by_site = traces.entry((block, group)).or_default();
        *traces_by_site.entry(site).or_default() += trace_time(plan, scenario).usual;
    }
    let experiments = longest.into_values().map(|span| span + plan.pause);
    let traces = traces
        .into_values()
        .filter_map(|sites| sites.into_values().max());
    experiments.chain(traces).sum()
}

/// A message of a fleet on the disk, measured: 12.4 to 16.9 bytes in a lab,
/// 12.3 in `benches/fleet.rs` of neph-store.
const FLEET_MESSAGE_BYTES: u64 = 15;

fn fleet_bytes(scenario: &Scenario) -> u64 {
    let messages = scenario.flows().map(|_| scenario.messages_of_all_flows());
    messages.unwrap_or(0).saturating_mul(FLEET_MESSAGE_BYTES)
}

/// The most that the journals of fleets that run at the same time take.
fn journal_bytes(scenarios: &[Scenario], groups: &[u32]) -> u64 {
    let mut bytes_by_group: BTreeMap<u32, u64> = BTreeMap::new();
    for (scenario, group) in scenarios.iter().zip(groups) {
        if scenario.flows().is_some() {
            let messages = scenario.messages_of_all_flows();
            *bytes_by_group.entry(*group).or_default() +=
                most_journalled(messages, length(scenario)).bytes();
        }
    }
    bytes_by_group.into_values().max().unwrap_or(0)
}

/// What `plan` with its `scenarios` takes.
pub fn estimate(plan: &Plan, scenarios: &[Scenario]) -> Estimate {
    let blocks = u64::from(plan.blocks);
    let campaign_sum = |count_of: &dyn Fn(&Scenario) -> u64| {
        let block_sum = scenarios.iter().map(count_of).fold(0, u64::saturating_add);
        block_sum.saturating_mul(blocks)
    };
    let checks = plan.throughput.as_ref().map_or(Span::ZERO, |check| {
        let servers = check.servers.iter();
        let pairs = servers.map(|server| sites_to_server(plan, scenarios, &server.value).len());
        let pairs = i64::try_from(pairs.sum::<usize>()).unwrap_or(i64::MAX);
        check.duration.times(pairs)
    });
    let groups = groups(plan, scenarios);
    let pairs = (0..).zip(scenarios).map(|(scenario, _)| (0, scenario));
    let block = checks + time_of(pairs, plan, scenarios, &groups);
    let block_period = block.max(plan.block_interval);
    Estimate {
        experiments: blocks.saturating_mul(scenarios.len() as u64),
        messages: campaign_sum(&|scenario| {
            let is_transfer = scenario.measure().is_transfer();
            if is_transfer {
                0
            } else {
                scenario.messages_of_all_flows()
            }
        }),
        request_bytes: ByteSize(campaign_sum(&|scenario| payloads(scenario).0)),
        response_bytes: ByteSize(campaign_sum(&|scenario| payloads(scenario).1)),
        fleet_bytes: ByteSize(campaign_sum(&fleet_bytes)),
        journal_bytes: ByteSize(journal_bytes(scenarios, &groups)),
        block,
        checks,
        slow_traces: scenarios
            .iter()
            .map(|scenario| trace_time(plan, scenario))
            .map(|time| time.slow - time.usual)
            .sum(),
        total: block_period.times(i64::from(plan.blocks) - 1) + block,
    }
}
