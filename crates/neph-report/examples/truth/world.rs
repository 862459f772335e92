//! Worlds: campaigns of which every level is known, drawn at random around it.
//!
//! A message's time is lognormal around its experiment's level, with an autocorrelation of order 1 in
//! its logarithm. An experiment's level lies around its endpoint's. Losses come in bursts (Gilbert).

use std::net::SocketAddr;

use neph_analysis::{CampaignData, ExperimentData};
use neph_model::{
    ByteSize, Campaign, Experiment, ExperimentId, ExperimentStatus, Flow, FlowIndex, FlowRole,
    Instant, Kilometres, Marks, Message, Outcome, Parameter, ProbeKind, Scenario, ScenarioId, Seq,
    Span, Tally, Targets, Wall,
};
use neph_stats::{Random, normal_quantile};

/// A place that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    /// The median of its messages over all experiments.
    pub(crate) median_ms: f64,
}

/// Losses: their share, and how many come together on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    pub(crate) share: f64,
    pub(crate) length: f64,
}

/// What is simulated. Spreads are standard deviations of the logarithm.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) intervals_ms: Vec<i64>,
    pub(crate) blocks: u32,
    /// In each experiment.
    pub(crate) messages: u64,
    /// Between blocks: shared by all experiments of a block.
    pub(crate) between_blocks: f64,
    /// Between experiments of a block.
    pub(crate) between_experiments: f64,
    /// Between messages of an experiment.
    pub(crate) between_messages: f64,
    /// Correlation of a message with the one before.
    pub(crate) autocorrelation: f64,
    pub(crate) loss: Option<Bursts>,
    /// Whether the plan names distances, the first endpoint's the longest.
    pub(crate) has_distances: bool,
}

impl World {
    /// So many endpoints of the same median.
    pub(crate) fn with_equal_endpoints(count: usize) -> Self {
        let name = |number: usize| format!("e{number:02}");
        Self {
            endpoints: (1..=count)
                .map(|number| Endpoint {
                    name: name(number),
                    median_ms: 20.0,
                })
                .collect(),
            intervals_ms: vec![100],
            blocks: 12,
            messages: 30,
            between_blocks: 0.1,
            between_experiments: 0.08,
            between_messages: 0.1,
            autocorrelation: 0.0,
            loss: None,
            has_distances: false,
        }
    }

    /// Whether two names stand for equal things; names that are no endpoints are equal levels.
    pub(crate) fn are_equal(&self, first: &str, second: &str) -> bool {
        let median = |name: &str| {
            let mut endpoints = self.endpoints.iter();
            endpoints
                .find(|endpoint| endpoint.name == name)
                .map(|endpoint| endpoint.median_ms)
        };
        median(first) == median(second)
    }

    /// One campaign of this world; the same seed makes the same one.
    pub(crate) fn campaign(&self, seed: u64) -> CampaignData {
        let mut random = Random::new(seed);
        let campaign = Campaign::new("truth", Wall::from_unix_nanos(START));
        let scenarios = self.scenarios();
        let mut experiments = Vec::new();
        for block in 0..self.blocks {
            let block_level = self.between_blocks * normal(&mut random);
            for (index, scenario) in scenarios.iter().enumerate() {
                let level = block_level + self.between_experiments * normal(&mut random);
                let messages = self.messages(scenario, level, &mut random);
                let experiment = experiment(&campaign, scenario, (index, block), &messages);
                experiments.push(ExperimentData::new(experiment, index, &messages));
            }
        }
        CampaignData {
            campaign,
            scenarios,
            experiments,
            left_out: Vec::new(),
            throughputs: Vec::new(),
            traceroutes: Vec::new(),
        }
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for (endpoint_index, endpoint) in self.endpoints.iter().enumerate() {
            for interval in &self.intervals_ms {
                let index = u32::try_from(scenarios.len()).unwrap_or(u32::MAX);
                let nearer =
                    u32::try_from(self.endpoints.len() - endpoint_index).unwrap_or(u32::MAX);
                let km = nearer * 100;
                let distance = Kilometres::new(f64::from(km)).map(Parameter::Distance);
                scenarios.push(Scenario {
                    id: ScenarioId(u64::from(index) + 1),
                    index,
                    endpoint: endpoint.name.clone(),
                    target: Targets::read(&format!("ws://{}:8080/", endpoint.name), ProbeKind::Ws),
                    interval: Span::from_millis(*interval),
                    request_size: ByteSize(64),
                    response_size: ByteSize(64),
                    messages: self.messages,
                    parameters: self
                        .has_distances
                        .then_some(distance)
                        .flatten()
                        .into_iter()
                        .collect(),
                    varied: Vec::new(),
                });
            }
        }
        scenarios
    }

    fn messages(&self, scenario: &Scenario, level: f64, random: &mut Random) -> Vec<Message> {
        let mut endpoints = self.endpoints.iter();
        let endpoint = endpoints.find(|endpoint| endpoint.name == scenario.endpoint);
        let median = endpoint.map_or(0.0, |known| known.median_ms);
        let mut noise = AutocorrelatedNoise {
            autocorrelation: self.autocorrelation,
            value: normal(random),
        };
        let mut losses = self.loss.map(|bursts| Losses::new(bursts, random));
        let message = |seq: u64| {
            let deviation = level + self.between_messages * noise.value;
            noise.step(random);
            let time = Span::from_nanos(to_i64(median * 1e6 * deviation.exp()));
            let is_lost = losses.as_mut().is_some_and(|losses| losses.step(random));
            message_at(seq, scenario.interval, (!is_lost).then_some(time))
        };
        (0..scenario.messages).map(message).collect()
    }
}

/// A standard normal process with autocorrelation of order 1.
struct AutocorrelatedNoise {
    autocorrelation: f64,
    value: f64,
}

impl AutocorrelatedNoise {
    fn step(&mut self, random: &mut Random) {
        let innovation_share = (1.0 - self.autocorrelation * self.autocorrelation).sqrt();
        self.value = self.autocorrelation * self.value + innovation_share * normal(random);
    }
}

/// Whether messages are lost now, and how that changes from one to the next.
struct Losses {
    bursts: Bursts,
    is_in_burst: bool,
}

impl Losses {
    fn new(bursts: Bursts, random: &mut Random) -> Self {
        let is_in_burst = random.unit() < bursts.share;
        Self {
            bursts,
            is_in_burst,
        }
    }

    fn step(&mut self, random: &mut Random) -> bool {
        let is_lost = self.is_in_burst;
        let Bursts { share, length } = self.bursts;
        let change_probability = if self.is_in_burst {
            1.0 / length
        } else {
            share / (length * (1.0 - share))
        };
        if random.unit() < change_probability {
            self.is_in_burst = !self.is_in_burst;
        }
        is_lost
    }
}

const START: i64 = 1_795_000_000_000_000_000;

pub(crate) fn normal(random: &mut Random) -> f64 {
    normal_quantile(random.unit().max(1e-16))
}

#[expect(clippy::cast_possible_truncation, reason = "seconds in nanoseconds")]
fn to_i64(nanos: f64) -> i64 {
    nanos.round() as i64
}

fn message_at(seq: u64, interval: Span, time: Option<Span>) -> Message {
    let at = i64::try_from(seq).unwrap_or(i64::MAX) * interval.nanos();
    let sent = Instant::from_nanos(at);
    let mut marks = Marks::intended_at(sent);
    marks.app_send = Some(sent);
    marks.app_recv = time.map(|time| sent + time);
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = if time.is_some() {
        Outcome::Reply
    } else {
        Outcome::Lost
    };
    message
}

fn experiment(
    campaign: &Campaign,
    scenario: &Scenario,
    (index, block): (usize, u32),
    messages: &[Message],
) -> Experiment {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&block.to_be_bytes());
    id[4..8].copy_from_slice(&scenario.index.to_be_bytes());
    let lost = messages
        .iter()
        .filter(|message| message.outcome == Outcome::Lost);
    let lost = lost.count() as u64;
    Experiment {
        id: ExperimentId::from_bytes(id),
        campaign: campaign.id,
        scenario: scenario.id,
        block,
        position: u32::try_from(index).unwrap_or(u32::MAX),
        attempt: 0,
        status: ExperimentStatus::Complete,
        reason: None,
        started: Wall::from_unix_nanos(START + i64::from(block) * 60_000_000_000),
        ended: None,
        flows: vec![flow(&scenario.endpoint)],
        fleet: None,
        quantities: None,
        tally: Tally {
            messages: scenario.messages,
            replies: scenario.messages - lost,
            lost,
            ..Tally::default()
        },
        warnings: Vec::new(),
        response_p50: None,
        anchors: Vec::new(),
    }
}

fn flow(name: &str) -> Flow {
    Flow {
        index: FlowIndex(0),
        role: FlowRole::Main,
        probe: ProbeKind::Ws,
        name: name.to_owned(),
        source: None,
        target: SocketAddr::from(([192, 0, 2, 7], 8080)),
        reflector: true,
        same_clock: true,
    }
}
