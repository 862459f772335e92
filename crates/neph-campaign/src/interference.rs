//! Which circuits of a plan disturb each other: what is measured to find out, and what follows from it. Pure.
//!
//! Owns the design: each circuit is measured alone, and two circuits without a common host and declared
//! link at the same time. A design is an ordinary plan ([`Design::text`]): a campaign has blocks in random
//! order, retries and resume, and stores each result once. [`evaluate_pairs`] reads its results.

mod design_text;
mod evaluation;

use std::collections::BTreeSet;

use neph_model::{BitRate, ByteSize, Span};
use neph_stats::blocks_needed;

use crate::expand::scenarios;
use crate::pairs::site_of;
use crate::plan::{Plan, PlannedCircuit};
use crate::rounds::resources;
use crate::timetable::Resource;

pub use evaluation::{
    GoodputShare, InterferenceVerdict, PairFinding, TransferReading, evaluate_pairs, shared_links,
};

/// Blocks on top of the least that can decide: an experiment may fail.
const SPARE_BLOCKS: usize = 1;
/// Pairs of circuits, at most: each takes a round of every block.
const MAX_PAIRS: usize = 200;
/// What a campaign's name begins with.
const CAMPAIGN_PREFIX: &str = "interference";
/// The network of a circuit that is measured alone.
const ALONE_NETWORK: &str = "alone";
/// Prefix of the network of a circuit that is measured at the same time as another one.
const WITH_PREFIX: &str = "with ";

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DesignRequest {
    /// Blocks; as many as a verdict needs, and one more, if that is not given.
    pub blocks: Option<u32>,
    /// How long each transfer is.
    pub duration: Span,
    /// The rate of each transfer, at most.
    pub rate: BitRate,
    /// Payload of all transfers together, at most.
    pub bytes: ByteSize,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// Circuits that are measured, in the order of the plan.
    pub circuits: Vec<PlannedCircuit>,
    /// Those that are measured at the same time, by their places.
    pub pairs: Vec<(usize, usize)>,
    /// Pairs that are not measured, since a timetable separates them: their places, and what both use.
    pub separated_pairs: Vec<(usize, usize, Resource)>,
    /// How many blocks.
    pub blocks: u32,
    /// Payload of all transfers, at most.
    pub bytes: ByteSize,
    /// The plan that measures it.
    pub text: String,
}

/// Nothing can be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// The plan has no agents.
    #[error(
        "the plan has no site with an agent: circuits are from a [[site]] with an agent to an endpoint"
    )]
    NoAgents,
    /// No two circuits can run at the same time.
    #[error(
        "no two circuits of the plan run at the same time, since each two share a host or a declared link: there is \
         nothing to find out"
    )]
    NoPairs,
    /// More than can be measured.
    #[error(
        "{0} pairs of circuits are more than {MAX_PAIRS}: write a plan with fewer endpoints or sites"
    )]
    TooManyPairs(usize),
    /// More bytes than allowed.
    #[error(
        "{runs} transfers of {duration} at {rate} are up to {bytes}, more than the {limit} that are allowed: \
         allow more, or ask for fewer blocks, shorter transfers or a lower rate"
    )]
    TooManyBytes {
        /// Transfers.
        runs: u64,
        /// Of this length.
        duration: String,
        /// At this rate.
        rate: String,
        /// Together.
        bytes: ByteSize,
        /// What is allowed.
        limit: ByteSize,
    },
    /// The text of the plan is no TOML.
    #[error("the plan cannot be taken as TOML: {0}")]
    Text(String),
}

/// `ams -> service`.
pub fn circuit_name(circuit: &PlannedCircuit) -> String {
    format!("{} -> {}", circuit.site, circuit.endpoint)
}

/// What is measured to find out which circuits of `plan` disturb each other.
///
/// # Errors
/// Nothing can be measured, or more than is allowed.
pub fn create_design(plan: &Plan, request: &DesignRequest) -> Result<Design, DesignError> {
    if plan.agents.is_empty() {
        return Err(DesignError::NoAgents);
    }
    let planned_circuits = circuits(plan);
    let resource_sets: Vec<BTreeSet<Resource>> = planned_circuits
        .iter()
        .map(|circuit| circuit_resources(plan, circuit))
        .collect();
    let (mut pairs, mut separated_pairs) = (Vec::new(), Vec::new());
    for (index, resources) in resource_sets.iter().enumerate() {
        for (other, other_resources) in resource_sets.iter().enumerate().skip(index + 1) {
            match resources.intersection(other_resources).next() {
                None => pairs.push((index, other)),
                Some(shared) => separated_pairs.push((index, other, shared.clone())),
            }
        }
    }
    match pairs.len() {
        0 => return Err(DesignError::NoPairs),
        count if count > MAX_PAIRS => return Err(DesignError::TooManyPairs(count)),
        _ => {}
    }
    let min_blocks = blocks_needed(2 * pairs.len()) + SPARE_BLOCKS;
    let blocks = request
        .blocks
        .unwrap_or_else(|| u32::try_from(min_blocks).unwrap_or(u32::MAX));
    let bytes = total_bytes(request, TransferCount::new(&pairs, blocks))?;
    let mut design = Design {
        circuits: planned_circuits,
        pairs,
        separated_pairs,
        blocks,
        bytes,
        text: String::new(),
    };
    design.text = design_text::text(plan, &design, request)?;
    Ok(design)
}

/// How many transfers there are.
#[derive(Clone, Copy)]
struct TransferCount(u64);

impl TransferCount {
    fn new(pairs: &[(usize, usize)], blocks: u32) -> Self {
        let measured_circuits: BTreeSet<usize> = pairs
            .iter()
            .flat_map(|(first, second)| [*first, *second])
            .collect();
        let runs_per_block = measured_circuits.len() + 2 * pairs.len();
        Self(u64::from(blocks) * runs_per_block as u64)
    }
}

/// The payload of all transfers, unless it is more than is allowed.
fn total_bytes(
    request: &DesignRequest,
    TransferCount(runs): TransferCount,
) -> Result<ByteSize, DesignError> {
    let millis = u64::try_from(request.duration.nanos() / 1_000_000).unwrap_or(0);
    let bytes_per_run = u128::from(request.rate.bits_per_second()) * u128::from(millis) / 8000;
    let bytes = u64::try_from(bytes_per_run * u128::from(runs)).unwrap_or(u64::MAX);
    if bytes > request.bytes.0 {
        return Err(DesignError::TooManyBytes {
            runs,
            duration: request.duration.exact(),
            rate: request.rate.exact(),
            bytes: ByteSize(bytes),
            limit: request.bytes,
        });
    }
    Ok(ByteSize(bytes))
}

/// The circuits of a plan, each once.
fn circuits(plan: &Plan) -> Vec<PlannedCircuit> {
    let mut circuits: Vec<PlannedCircuit> = Vec::new();
    for scenario in scenarios(plan) {
        let Some(site) = site_of(plan, &scenario) else {
            continue;
        };
        let endpoint = scenario.endpoint;
        let circuit = PlannedCircuit { site, endpoint };
        if !circuits.contains(&circuit) {
            circuits.push(circuit);
        }
    }
    circuits
}

/// What a circuit uses, by the plan.
fn circuit_resources(plan: &Plan, circuit: &PlannedCircuit) -> BTreeSet<Resource> {
    resources(plan, Some(&circuit.site), &circuit.endpoint)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;
