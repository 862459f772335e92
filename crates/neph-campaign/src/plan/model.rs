//! What a plan means, once it has been read: no text, no places, nothing that contradicts itself.

use std::collections::BTreeMap;
use std::ops::Range;

use neph_model::alarm::Rule;
use neph_model::{
    Authenticated, BlockOrder, ByteSize, EchoTo, FlowTraceOrder, Measure, Parameter, ParameterName,
    ReflectorSpec, Scenario, Span, Stress, Target, ThroughputServer, ThroughputTool, TraceLimits,
    sent_size,
};
use neph_text::Spanned;
use sha2::{Digest, Sha256};

use super::agents::AgentSite;
use super::{ComparePlan, PlotPlan, Season, SharedResource};
use crate::alarm_evaluator::AlarmQuantity;
use crate::timetable::UseMode;

/// A plan: everything that is measured, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name; campaigns carry it.
    pub name: String,
    /// Its text, byte for byte.
    pub text: String,
    /// Where it was read from.
    pub path: String,
    /// In the order of the text; at least one, names differ.
    pub endpoints: Vec<Endpoint>,
    /// Combinations that are left out.
    pub skips: Vec<Skip>,
    /// How many passes over all scenarios; at least 1.
    pub blocks: u32,
    /// From the start of one block to the start of the next; a longer block is followed at once.
    pub block_interval: Span,
    /// The block interval if no block may outlast it (plan key `every`), with its position.
    pub strict_block_interval: Option<Spanned<Span>>,
    /// Rest before each experiment.
    pub pause: Span,
    /// The order within a block.
    pub order: BlockOrder,
    /// How fleets take their pairs.
    pub pair_order: PairOrder,
    /// Decides every shuffle; if absent, each campaign draws its own.
    pub seed: Option<u64>,
    /// After how long a message counts as lost.
    pub timeout: Span,
    /// How often an experiment may fail before its scenario is given up in its block; at least 1.
    pub tries: u32,
    /// The interval of the ICMP echo that runs alongside each main flow, if there is one.
    pub icmp_echo_interval: Option<Span>,
    /// Further destinations of ICMP echo.
    pub pings: Vec<Spanned<EchoTo>>,
    /// The throughput check at the start of each block.
    pub throughput: Option<ThroughputPlan>,
    /// The traceroute at the start of each block.
    pub traceroute: Option<TraceLimits>,
    /// The trace of the flows of each fleet.
    pub flow_trace: Option<FlowTraceOrder>,
    /// What the report shows.
    pub plot: PlotPlan,
    /// What is to be shown equivalent.
    pub compares: Vec<ComparePlan>,
    /// The endpoint that the others are compared with; `None`: the first one.
    pub baseline: Option<String>,
    /// Times of the week within which experiments run; none: at any time.
    pub seasons: Vec<Season>,
    /// The lab that is brought up for it.
    pub lab: Option<LabPlan>,
    /// Sites at a distance, with their agents; none where there is a lab.
    pub agents: Vec<AgentSite>,
    /// Links and overlays that several of its circuits share.
    pub shared: Vec<SharedResource>,
    /// Sites that `from` names, wherever it is written: the topology knows which there are.
    pub referenced_sites: Vec<Spanned<String>>,
    /// Files that `key_file` names, wherever it is written.
    pub key_files: Vec<Spanned<String>>,
    /// Loads of every `stress` in the plan: the topology knows their sites.
    pub background_loads: Vec<Spanned<Stress>>,
    /// Congestion controls that the plan names anywhere: the kernel knows which exist.
    pub congestion_controls: Vec<Spanned<String>>,
    /// What makes an experiment suspect.
    pub limits: Limits,
    /// What a reader of this plan should know, such as settings that have no effect here.
    pub notes: Vec<String>,
}

impl Plan {
    /// SHA-256 of its text, 64 hex digits.
    pub fn hash(&self) -> String {
        sha256_hex(&self.text)
    }

    /// The rules by which an experiment of a scenario is evaluated while it runs.
    pub fn alarm_rules(&self, scenario: &Scenario) -> &[Rule<AlarmQuantity>] {
        let mut endpoints = self.endpoints.iter();
        let endpoint = endpoints.find(|endpoint| endpoint.name == scenario.endpoint);
        endpoint.map_or(&[], |endpoint| &endpoint.alarms)
    }

    /// Whether any experiment has alarms.
    pub fn has_alarms(&self) -> bool {
        let mut endpoints = self.endpoints.iter();
        endpoints.any(|endpoint| !endpoint.alarms.is_empty())
    }

    /// The topologies that its lab has, each once: the lab's own, then those of seasons. None
    /// without a lab.
    pub fn topologies(&self) -> Vec<&Spanned<String>> {
        let Some(lab) = &self.lab else {
            return Vec::new();
        };
        let mut topologies = vec![&lab.topology];
        for topology in self
            .seasons
            .iter()
            .filter_map(|season| season.topology.as_ref())
        {
            if topologies.iter().all(|other| other.value != topology.value) {
                topologies.push(topology);
            }
        }
        topologies
    }

    /// The topology that a lab has in a season.
    pub fn season_topology(&self, season: Option<&str>) -> Option<&Spanned<String>> {
        let lab = self.lab.as_ref()?;
        let mut seasons = self.seasons.iter();
        let season = seasons.find(|candidate| season == Some(candidate.name.as_str()));
        season
            .and_then(|season| season.topology.as_ref())
            .or(Some(&lab.topology))
    }
}

/// SHA-256 of a text, 64 hex digits.
pub(crate) fn sha256_hex(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |hex, byte| {
        hex + &format!("{byte:02x}")
    })
}

/// How the fleets of one flow set take their pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PairOrder {
    /// All at the same time, so that a result of one moment applies to all.
    #[default]
    Concurrent,
    /// One after the other, so that none is in the way of another.
    Sequential,
}

/// An endpoint and what is varied towards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name on screen.
    pub name: String,
    /// Where it is reached.
    pub target: Target,
    /// Where the plan writes its address, in bytes of the plan's text.
    pub address_span: Range<usize>,
    /// The site of the endpoint, if it is one of the plan's.
    pub site: Option<String>,
    /// How it is measured: what may run at the same time follows from that.
    pub mode: UseMode,
    /// Its scenarios are all combinations of these.
    pub axes: Axes,
    /// The alarms that are evaluated while one of them is measured.
    pub alarms: Vec<Rule<AlarmQuantity>>,
}

impl Endpoint {
    /// The payload of a request whose plan has the size `requested`.
    pub(crate) fn actual_request_size(&self, requested: ByteSize) -> ByteSize {
        sent_size(self.target.kind(), requested, self.axes.authenticated())
    }
}

/// Parameters, each with several values.
pub type ParameterLists = BTreeMap<ParameterName, Vec<Parameter>>;

/// What multiplies into scenarios. No list is empty, no value occurs twice in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// Time between two requests; never zero.
    pub intervals: Vec<Span>,
    /// Request payloads, as they are sent.
    pub request_sizes: Vec<ByteSize>,
    /// Reply payloads. One that the transport cannot choose (UDP, ICMP) is the request's size.
    pub response_sizes: Vec<ByteSize>,
    /// How long an experiment is.
    pub length: ExperimentLength,
    /// Every other parameter, with its values.
    pub parameters: ParameterLists,
    /// A sentence for each size of the plan that is sent with another value.
    pub size_notes: Vec<String>,
}

impl Axes {
    /// The values of the parameter that `select` returns; none if the plan does not fix it.
    pub fn values<'a, T: 'a>(
        &'a self,
        select: impl Fn(&'a Parameter) -> Option<&'a T> + 'a,
    ) -> impl Iterator<Item = &'a T> {
        self.parameters.values().flatten().filter_map(select)
    }

    /// How many seconds a transfer takes; at least one.
    pub(crate) fn transfer_seconds(&self) -> u64 {
        let span = match self.length {
            ExperimentLength::Duration(span) => span,
            ExperimentLength::Messages(count) => {
                let first = self.intervals.first().copied().unwrap_or(Measure::SECOND);
                first.times(i64::try_from(count).unwrap_or(i64::MAX))
            }
        };
        u64::try_from(span.nanos() / Measure::SECOND.nanos())
            .unwrap_or(1)
            .max(1)
    }

    /// Whether STAMP packets with these parameters have a tag.
    pub(crate) fn authenticated(&self) -> Authenticated {
        Authenticated::by(self.values(Parameter::key_file).next())
    }
}

/// How long an experiment is; the messages are derived from the duration or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentLength {
    /// As many messages as fit.
    Duration(Span),
    /// As long as they take.
    Messages(u64),
}

impl ExperimentLength {
    /// How many messages an experiment has at `interval`; 0 if the duration is shorter than it.
    pub fn messages(self, interval: Span) -> u64 {
        match self {
            Self::Messages(count) => count,
            Self::Duration(span) => {
                let count = span.nanos() / interval.nanos().max(1);
                u64::try_from(count).unwrap_or(0)
            }
        }
    }
}

/// A combination that is left out: every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skip {
    /// Names of endpoints; empty: all.
    pub endpoints: Vec<String>,
    /// Intervals; empty: all.
    pub intervals: Vec<Span>,
    /// Request sizes; empty: all.
    pub request_sizes: Vec<ByteSize>,
    /// Reply sizes; empty: all.
    pub response_sizes: Vec<ByteSize>,
    /// Values of other parameters.
    pub parameters: ParameterLists,
}

/// The throughput check at the start of each block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThroughputPlan {
    /// How long each transfer takes.
    pub duration: Span,
    /// Which program does it.
    pub tool: ThroughputTool,
    /// Where to; at least one, each address once.
    pub servers: Vec<Spanned<ThroughputServer>>,
}

/// The lab that is brought up for a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabPlan {
    /// The topology file, relative to the plan's folder.
    pub topology: Spanned<String>,
    /// The site that the prober runs in.
    pub prober: Spanned<String>,
    /// The reflectors that are started.
    pub reflectors: Vec<LabReflector>,
}

/// A reflector in a lab site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabReflector {
    /// The site.
    pub site: Spanned<String>,
    /// What its flags ask for, at their place.
    pub spec: Spanned<ReflectorSpec>,
}

/// What makes an experiment suspect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Highest 99th percentile of the sender's lateness.
    pub lateness_p99: Span,
    /// Highest share of CPU time that the hypervisor gives to others, percent.
    pub steal_percent: f64,
    /// Highest share of CPU time not idle, percent.
    pub busy_percent: f64,
    /// Highest share of replied messages without their kernel timestamps, percent.
    pub timestamps_missing_percent: f64,
    /// Minimum number of replies: with fewer, the percentiles have no confidence interval.
    pub min_replies: u64,
}

/// Lateness: 1 ms is a requirement of the project. Steal: machines of this project lose 2-10 ms to the
/// hypervisor once in one or two seconds, 1 % at most, so 5 % is exceptional. Busy: beyond 90 % of all cores
/// some thread waits for one. Timestamps: a few messages around a reconnect lack them; more than 1 % is a
/// property of the path. Replies: a median's 95 % confidence interval exists from 6 on.
impl Default for Limits {
    fn default() -> Self {
        Self {
            lateness_p99: Span::from_millis(1),
            steal_percent: 5.0,
            busy_percent: 90.0,
            timestamps_missing_percent: 1.0,
            min_replies: 6,
        }
    }
}
