//! A campaign: its plan and matrix, its experiments, and what was measured once per block.

use std::net::IpAddr;

use neph_model::{
    BitRate, BlockOrder, ByteSize, Campaign, Experiment, ExperimentStatus, Hop, Parameters,
    PingBetween, RouteLength, Scenario, Span, Throughput, ThroughputSecond, Traceroute, UtcOffset,
    Wall, Warning, reply_size_in_words,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::lists::one_based;
use super::{ExperimentRow, PingsRow};
use crate::cell::OrDash;
use crate::sections::{Pairs, Sections};
use crate::version::Version;
use crate::wall_time;

/// The input of a campaign's document.
#[derive(Clone, Copy, Debug)]
pub struct CampaignParts<'s> {
    /// The campaign.
    pub campaign: &'s Campaign,
    /// Its status, with the command that resumes it if it was interrupted.
    pub status: (&'s str, Option<&'s str>),
    /// Its scenarios.
    pub scenarios: &'s [Scenario],
    /// Its experiments.
    pub experiments: &'s [Experiment],
    /// Its throughput checks.
    pub checks: &'s [Throughput],
    /// Its traceroutes.
    pub routes: &'s [Traceroute],
    /// The pings between its experiments.
    pub pings: &'s [PingBetween],
    /// The time zone in which its times are shown.
    pub offset: UtcOffset,
}

/// A campaign with its scenarios, its experiments and its checks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CampaignDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Facts about the campaign.
    pub campaign: CampaignFacts,
    /// Its scenarios.
    pub scenarios: Vec<ScenarioRow>,
    /// Its experiments.
    pub experiments: Vec<ExperimentRow>,
    /// Warnings of its experiments.
    pub warnings: Vec<WarningKindRow>,
    /// Throughput checks.
    pub throughput: Vec<ThroughputRow>,
    /// Traceroutes.
    pub traceroutes: Vec<TracerouteRow>,
    /// Pings between experiments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pings_between: Vec<PingsRow>,
    /// Text of the plan.
    pub plan: String,
    /// Text of the topology; null without a lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
}

crate::rows! {
    /// Facts about a campaign.
    pub struct CampaignFacts {
        /// Id of the campaign.
        id: String => left "id",
        /// Name of the campaign.
        name: String => left "name",
        /// Status: `running`, `complete`, `interrupted`, `incomplete` or `imported`.
        status: String => left "status" by |row| match &row.resume_command {
            Some(command) => format!("{} ({command})", row.status),
            None => row.status.clone(),
        },
        /// When it began.
        started_unix_ns: Wall => left "started" by |row| {
            wall_time::local_text(row.started_unix_ns, row.offset)
        },
        /// When it ended; null until then.
        ended_unix_ns: Option<Wall> => left "ended" by |row| ended_text(row.ended_unix_ns, row.offset),
        /// Number of planned blocks.
        blocks: u32 => left "blocks",
        /// Order of scenarios in a block: `random` or `sequential`.
        order: &'static str => left "order",
        /// Seed of the random order.
        seed: u64 => left "seed",
        /// Path of the plan.
        plan_path: String => left "plan file",
        /// SHA-256 of the plan, hexadecimal; null without a plan.
        plan_hash: Option<String> => left "plan SHA-256",
        /// SHA-256 of the topology, hexadecimal; null without a lab.
        #[serde(skip_serializing_if = "Option::is_none")]
        topology_hash: Option<String> => left "topology SHA-256" by |row| {
            row.topology_hash.clone().unwrap_or_default()
        },
        ; shown
        /// Time zone in which times are shown.
        offset: UtcOffset,
        /// Command that resumes an interrupted campaign.
        resume_command: Option<String>,
    }
}

crate::rows! {
    /// A scenario of a campaign.
    pub struct ScenarioRow {
        /// Place in the plan, from 0.
        index: u32 => right "NO" by |row| one_based(row.index),
        /// Label with all parameters.
        label: String => left "SCENARIO" by |row| row.label_shown.clone(),
        /// The target.
        target: String => left "TARGET",
        /// Kind of probe.
        probe: &'static str => left "PROBE" by |row| row.unless_transfer(row.probe),
        /// Time between two messages.
        interval_ns: Span => right "INTERVAL" by |row| row.unless_transfer(&row.interval_ns.to_string()),
        /// Payload of a request.
        request_bytes: ByteSize => right "REQUEST" by |row| row.unless_transfer(&row.request_bytes.to_string()),
        /// Payload of a reply.
        response_bytes: ByteSize => right "REPLY" by |row| row.unless_transfer(&row.reply_shown),
        /// Messages per experiment and flow.
        messages: u64 => right "MESSAGES" by |row| row.unless_transfer(&row.messages.to_string()),
        /// Further parameters by name, as text.
        parameters: Parameters => left "FIXED" by |row| {
            let fixed = row.parameters.iter();
            let fixed: Vec<String> = fixed.map(|parameter| format!("{}={}", parameter.name(), parameter.text())).collect();
            fixed.join(" ")
        },
        ; shown
        /// Label without the parts that all scenarios share.
        label_shown: String,
        /// Payload of a reply, with that of a neph reflector if it differs.
        reply_shown: String,
        /// Whether it measures a transfer, which has no messages.
        is_transfer: bool,
    }
}

impl ScenarioRow {
    /// A cell that has no meaning for a transfer.
    fn unless_transfer(&self, cell: &str) -> String {
        if self.is_transfer { "-" } else { cell }.to_owned()
    }
}

crate::rows! {
    /// A warning of a campaign's experiments.
    pub struct WarningKindRow {
        /// Number of experiments with this warning.
        experiments: u64 => right "EXPERIMENTS",
        /// Text of the warning in one of them.
        example: String => left "FOR EXAMPLE",
        /// Remedy.
        advice: String => left "ADVICE",
    }
}

crate::rows! {
    /// A throughput check.
    pub struct ThroughputRow {
        /// The block, from 0.
        block: u32 => right "BLOCK" by |row| one_based(row.block),
        /// Name of the endpoint.
        endpoint: String => left "ENDPOINT",
        /// Lab site that sent; null for the host itself.
        site: Option<String> => left "FROM",
        /// Program that ran it: `neph` or `iperf3`.
        tool: String => left "TOOL",
        /// Goodput; null if the check failed.
        goodput_bits_per_s: Option<BitRate> => right "GOODPUT",
        /// Retransmitted segments; null if the check failed.
        retransmissions: Option<u64> => right "RETRANSMISSIONS",
        /// Retransmitted segments that the peer had received already; null if the check failed.
        spurious_retransmissions: Option<u64> => right "SPURIOUS",
        /// Results of each second.
        seconds: Vec<ThroughputSecond> => left "BY SECOND" by |row| {
            let goodputs: Vec<String> = row.seconds.iter().map(|second| second.goodput.to_string()).collect();
            goodputs.join(", ")
        },
        /// Why it failed; null otherwise.
        failure: Option<String> => left "FAILURE" by |row| row.failure.clone().unwrap_or_default(),
    }
}

crate::rows! {
    /// A traceroute.
    pub struct TracerouteRow {
        /// The block, from 0.
        block: u32 => right "BLOCK" by |row| one_based(row.block),
        /// Name of the endpoint.
        endpoint: String => left "ENDPOINT",
        /// Lab site that sent the probes; null for the host itself.
        site: Option<String> => left "FROM",
        /// Address of the destination.
        destination: IpAddr => left "DESTINATION" by |row| row.destination.to_string(),
        /// Whether the destination answered.
        reached: bool => left "REACHED" by |row| if row.reached { "yes" } else { "no" }.to_owned(),
        /// Number of hops; null if the destination did not answer.
        length: Option<RouteLength> => left "LENGTH" by |row| length_text(row.length),
        /// The hops.
        hops: Vec<Hop> => left "HOPS" by |row| {
            let hops: Vec<String> = row.hops.iter().map(hop_text).collect();
            hops.join(", ")
        },
        /// Why it failed; null otherwise.
        failure: Option<String> => left "FAILURE" by |row| row.failure.clone().unwrap_or_default(),
    }
}

impl CampaignDocument {
    /// The document of these parts, and of the rows of the experiments.
    pub fn of(parts: &CampaignParts<'_>, experiments: Vec<ExperimentRow>) -> Self {
        Self {
            schema: Version,
            campaign: properties_of(parts),
            scenarios: scenario_rows(parts.scenarios),
            experiments,
            warnings: warning_rows(parts.experiments, parts.scenarios),
            throughput: parts.checks.iter().map(throughput_row).collect(),
            traceroutes: parts.routes.iter().map(traceroute_row).collect(),
            pings_between: PingsRow::all(parts.pings),
            plan: parts.campaign.plan_text.clone(),
            topology: parts.campaign.topology_text.clone(),
        }
    }

    /// The text form.
    pub fn text(&self) -> String {
        let mut sections = Sections::default();
        sections.pairs("Campaign", &Pairs::of(&self.campaign));
        sections.table("Scenarios", &self.scenarios);
        sections.table("Experiments", &self.experiments);
        sections.table("Warnings", &self.warnings);
        sections.table("Throughput checks", &self.throughput);
        sections.table("Traceroutes", &self.traceroutes);
        sections.table("Pings between blocks", &self.pings_between);
        sections.quote("Plan", &self.plan);
        sections.quote("Topology", self.topology.as_deref().unwrap_or_default());
        sections.text()
    }
}

/// When something ended; `-` while it runs.
pub(super) fn ended_text(ended: Option<Wall>, offset: UtcOffset) -> String {
    ended.or_dash(|time| wall_time::local_text(time, offset))
}

fn properties_of(parts: &CampaignParts<'_>) -> CampaignFacts {
    let campaign = parts.campaign;
    let (status, resume_command) = parts.status;
    CampaignFacts {
        id: campaign.id.to_string(),
        name: campaign.name.clone(),
        status: status.to_owned(),
        started_unix_ns: campaign.started,
        ended_unix_ns: campaign.ended,
        blocks: campaign.blocks,
        order: match campaign.order {
            BlockOrder::Random => "random",
            BlockOrder::Sequential => "sequential",
        },
        seed: campaign.seed,
        plan_path: campaign.plan_path.clone(),
        plan_hash: Some(campaign.plan_hash.clone()).filter(|hash| !hash.is_empty()),
        topology_hash: campaign.topology_hash.clone(),
        offset: parts.offset,
        resume_command: resume_command.map(str::to_owned),
    }
}

fn scenario_rows(scenarios: &[Scenario]) -> Vec<ScenarioRow> {
    let rows = scenarios.iter().zip(Scenario::labels_apart(scenarios));
    let rows = rows.map(|(scenario, label_shown)| ScenarioRow {
        index: scenario.index,
        label: scenario.label(),
        target: scenario.target.to_string(),
        probe: scenario.probe().name(),
        interval_ns: scenario.interval,
        request_bytes: scenario.request_size,
        response_bytes: scenario.response_size,
        messages: scenario.messages,
        parameters: scenario.parameters.clone(),
        label_shown,
        reply_shown: reply_size_in_words(scenario.probe(), scenario.response_size),
        is_transfer: scenario.measure().is_transfer(),
    });
    rows.collect()
}

/// Each kind of warning once, with the number of experiments and the remedy; by load if the plan
/// generates one and the remedy depends on it. Only complete experiments count, if there are any.
fn warning_rows(experiments: &[Experiment], scenarios: &[Scenario]) -> Vec<WarningKindRow> {
    let load = |experiment: &Experiment| {
        let scenario = scenarios
            .iter()
            .find(|scenario| scenario.id == experiment.scenario);
        scenario.and_then(Scenario::stress)
    };
    let is_complete = |experiment: &&Experiment| experiment.status == ExperimentStatus::Complete;
    let has_complete = experiments
        .iter()
        .any(|experiment| is_complete(&experiment));
    let counted = experiments
        .iter()
        .filter(|experiment| !has_complete || is_complete(experiment));
    let mut rows: Vec<WarningKindRow> = Vec::new();
    for experiment in counted {
        let generated_load = experiment.generated_load(load(experiment));
        for warning in &experiment.warnings {
            let warning: &Warning = warning;
            let advice = warning.advice_under(generated_load.as_deref().as_slice());
            match rows.iter_mut().find(|row| row.advice == advice) {
                Some(row) => row.experiments += 1,
                None => rows.push(WarningKindRow {
                    experiments: 1,
                    example: warning.to_string(),
                    advice,
                }),
            }
        }
    }
    rows
}

fn throughput_row(check: &Throughput) -> ThroughputRow {
    let sum = |value: fn(&ThroughputSecond) -> u32| -> u64 {
        check
            .seconds
            .iter()
            .map(|second| u64::from(value(second)))
            .sum()
    };
    // A failed check has no result, which differs from 0 bit/s.
    let is_known = check.failure.is_none();
    ThroughputRow {
        block: check.block,
        endpoint: check.endpoint.clone(),
        site: check.site.clone(),
        tool: check.tool.clone(),
        goodput_bits_per_s: is_known.then_some(check.goodput),
        retransmissions: is_known.then(|| sum(|second| second.retransmissions)),
        spurious_retransmissions: is_known.then(|| sum(|second| second.spurious_retransmissions)),
        seconds: check.seconds.clone(),
        failure: check.failure.clone(),
    }
}

fn traceroute_row(route: &Traceroute) -> TracerouteRow {
    TracerouteRow {
        block: route.block,
        endpoint: route.endpoint.clone(),
        site: route.site.clone(),
        destination: route.destination,
        reached: route.reached,
        length: route.length(),
        hops: route.hops.clone(),
        failure: route.failure.clone(),
    }
}

/// `3`, `at most 9`
fn length_text(length: Option<RouteLength>) -> String {
    match length {
        None => "-".to_owned(),
        Some(length) if length.is_sure() => length.most.to_string(),
        Some(length) => format!("at most {}", length.most),
    }
}

/// `3 10.0.0.1 4.02 ms`, `4 *`
fn hop_text(hop: &Hop) -> String {
    let addresses: Vec<String> = hop.addresses.iter().map(ToString::to_string).collect();
    let min_round_trip: Option<&Span> = hop.round_trips.iter().min();
    match (addresses.is_empty(), min_round_trip) {
        (true, _) => format!("{} *", hop.ttl),
        (false, None) => format!("{} {}", hop.ttl, addresses.join("/")),
        (false, Some(span)) => format!("{} {} {span}", hop.ttl, addresses.join("/")),
    }
}
