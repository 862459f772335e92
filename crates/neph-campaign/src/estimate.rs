//! What a plan will cost before anything runs: messages, bytes, time.

use neph_model::{ByteSize, Scenario, Span};

use crate::pairs::sites_to_server;
use crate::plan::Plan;

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
    /// One block: throughput checks, experiments, pauses.
    pub block: Span,
    /// From the start of the first block to the end of the last.
    pub whole: Span,
}

impl Estimate {
    /// Whether a block takes longer than the interval between blocks, so that the next one starts
    /// late.
    pub fn outlasts_interval(&self, plan: &Plan) -> bool {
        plan.blocks > 1 && plan.block_interval > Span::ZERO && self.block > plan.block_interval
    }
}

/// What an experiment takes: its schedule, not the wait for its last reply.
pub fn length(scenario: &Scenario) -> Span {
    let count = i64::try_from(scenario.messages).unwrap_or(i64::MAX);
    scenario.interval.times(count)
}

/// A message of a fleet on the disk, measured: 12.4 to 16.9 bytes in a lab,
/// 12.3 in `benches/fleet.rs` of neph-store.
const FLEET_MESSAGE_BYTES: u64 = 15;

fn fleet_bytes(scenario: &Scenario) -> u64 {
    let messages = scenario.flows().map(|_| scenario.messages_of_all_flows());
    messages.unwrap_or(0).saturating_mul(FLEET_MESSAGE_BYTES)
}

/// What `plan` with its `scenarios` takes.
pub fn estimate(plan: &Plan, scenarios: &[Scenario]) -> Estimate {
    let blocks = u64::from(plan.blocks);
    let sum = |of: &dyn Fn(&Scenario) -> u64| {
        let once = scenarios.iter().map(of).fold(0, u64::saturating_add);
        once.saturating_mul(blocks)
    };
    let count = i64::try_from(scenarios.len()).unwrap_or(i64::MAX);
    let checks = plan.throughput.as_ref().map_or(Span::ZERO, |check| {
        let servers = check.servers.iter();
        let pairs = servers.map(|server| sites_to_server(plan, scenarios, server).len());
        let pairs = i64::try_from(pairs.sum::<usize>()).unwrap_or(i64::MAX);
        check.duration.times(pairs)
    });
    let running: Span = scenarios.iter().map(length).sum();
    let block = checks + running + plan.pause.times(count);
    let pace = block.max(plan.block_interval);
    Estimate {
        experiments: blocks.saturating_mul(scenarios.len() as u64),
        messages: sum(&Scenario::messages_of_all_flows),
        request_bytes: ByteSize(sum(&|scenario| {
            scenario
                .messages_of_all_flows()
                .saturating_mul(scenario.request_size.bytes())
        })),
        response_bytes: ByteSize(sum(&|scenario| {
            scenario
                .messages_of_all_flows()
                .saturating_mul(scenario.response_size.bytes())
        })),
        fleet_bytes: ByteSize(sum(&fleet_bytes)),
        block,
        whole: pace.times(i64::from(plan.blocks) - 1) + block,
    }
}
