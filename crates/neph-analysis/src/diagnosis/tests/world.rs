//! A world: a virtual path, who talks over it and how often, as a campaign.

use std::net::SocketAddr;
use std::ops::Range;

use neph_model::{
    ByteSize, Campaign, CampaignId, CampaignStatus, Experiment, ExperimentId, ExperimentStatus,
    Flow, FlowIndex, FlowRole, HostFacts, Load, Message, Parameters, ProbeKind, Provenance,
    Scenario, ScenarioId, Span, Tally, Targets, Wall,
};
use neph_stats::Random;

use super::path::{Line, echoes};
use super::stalling::{Stalling, Still};
use crate::{CampaignData, ExperimentData};

const START: i64 = 1_795_000_000_000_000_000;

/// A queue that somebody else fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub from: f64,
    pub(crate) to: f64,
    pub(crate) peak_ms: f64,
}

/// Everything that is put in. The default is a quiet path of 20 ms.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) round_trip_ms: f64,
    /// Scale of the exponential jitter.
    pub(crate) jitter_ms: f64,
    pub(crate) rate_mbit: f64,
    /// What each path adds; the source port chooses.
    pub(crate) paths_ms: Vec<f64>,
    /// What later blocks add: a route that changed.
    pub(crate) later_ms: f64,
    /// From which share of the blocks on, and up to which.
    pub(crate) later: Range<f64>,
    pub(crate) queue: Option<Queue>,
    /// The share of it that ICMP echoes meet.
    pub(crate) echoes_wait: f64,
    /// A longer way for a while: no queue.
    pub(crate) detour: Option<Queue>,
    pub(crate) restarts: bool,
    /// What the host tells of `net.ipv4.tcp_slow_start_after_idle`, whatever its TCP does.
    pub(crate) sysctl: &'static str,
    /// Of the sender, where the host tells it.
    pub(crate) congestion: Option<&'static str>,
    /// Segments that the window never exceeds.
    pub(crate) window: Option<u32>,
    /// Segments for which the receiver has room, however large the window.
    pub(crate) room: Option<u32>,
    /// Which share of a message's wait in our host comes before its bytes are with the interface's
    /// queue; none: the kernel does not tell.
    pub(crate) sched: Option<f64>,
    /// Mbit/s at which the sender paces, however large the window.
    pub(crate) pacing: Option<f64>,
    /// Share of segments.
    pub(crate) loss: f64,
    /// Seconds in which every message is hit.
    pub(crate) outage: Range<f64>,
    /// The block in which all that follows the first message waits behind it.
    pub(crate) stalled: Option<u32>,
    /// Share of the replies' segments.
    pub(crate) reply_loss: f64,
    /// Share of the replies of one segment that come late, and hold back those behind them.
    pub(crate) replies_lost: f64,
    /// Share of segments that a full queue drops.
    pub(crate) congested_loss: f64,
    pub(crate) proxy_ms: f64,
    /// The share of acknowledgements that do not wait for the reply to travel with.
    pub(crate) quick_acks: f64,
    pub(crate) icmp_ms: f64,
    pub(crate) think_ms: f64,
    pub(crate) starved_ms: f64,
    /// The share of the messages that are delayed so.
    pub(crate) starved: f64,
    /// Round trips of handshakes above TCP, with a connection per message.
    pub(crate) dials: Option<f64>,
    /// The share of the messages that dial, where some do.
    pub(crate) dialled: f64,
    /// What TLS's arithmetic takes of a handshake.
    pub(crate) sums_ms: f64,
    /// The scheme of the target.
    pub(crate) scheme: &'static str,
    pub(crate) steps: bool,
    pub(crate) stalling: Option<Stalling>,
    pub(crate) probe: ProbeKind,
    pub(crate) intervals_ms: Vec<i64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) reply: u64,
    pub ports: Vec<u16>,
    pub(crate) blocks: u32,
    pub seconds: f64,
}

impl World {
    /// A message every 50 ms, and a queue on the way between 15 and 40 s.
    pub(crate) fn with_a_queue() -> Self {
        Self {
            intervals_ms: vec![50],
            seconds: 55.0,
            blocks: 3,
            queue: Some(Queue {
                from: 15.0,
                to: 40.0,
                peak_ms: 200.0,
            }),
            ..Self::default()
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            seed: 1,
            round_trip_ms: 20.0,
            jitter_ms: 0.05,
            rate_mbit: 1000.0,
            paths_ms: vec![0.0],
            later_ms: 0.0,
            later: 0.5..1.0,
            queue: None,
            echoes_wait: 1.0,
            detour: None,
            restarts: false,
            sysctl: "1",
            congestion: Some("cubic"),
            window: None,
            room: None,
            sched: Some(1.0),
            pacing: None,
            loss: 0.0,
            outage: 0.0..0.0,
            stalled: None,
            reply_loss: 0.0,
            replies_lost: 0.0,
            congested_loss: 0.0,
            proxy_ms: 0.0,
            quick_acks: 0.15,
            icmp_ms: 0.0,
            think_ms: 0.0,
            starved_ms: 0.0,
            starved: 1.0,
            dials: None,
            dialled: 1.0,
            sums_ms: 0.0,
            scheme: "ws",
            steps: false,
            stalling: None,
            probe: ProbeKind::Ws,
            intervals_ms: vec![100],
            sizes: vec![1024],
            reply: 64,
            ports: Vec::new(),
            blocks: 6,
            seconds: 12.0,
        }
    }
}

impl World {
    /// The stalls of one side, where it is that one that has some.
    pub(crate) fn stalls(&self, parties: &[Still]) -> Option<Stalling> {
        self.stalling
            .filter(|stalling| parties.contains(&stalling.who))
    }

    /// When the interface's queue has what was written and left at these times; none where the kernel
    /// does not tell.
    pub(crate) fn queued(&self, written: f64, departure: f64) -> Option<f64> {
        self.sched
            .map(|share| written + share * (departure - 0.01 - written))
    }

    /// What the port's path adds.
    pub(crate) fn path_of(&self, port: u16) -> f64 {
        let hash = u64::from(port).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let index = usize::try_from(hash).unwrap() % self.paths_ms.len();
        self.paths_ms[index]
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for interval in &self.intervals_ms {
            for size in &self.sizes {
                let index = u32::try_from(scenarios.len()).unwrap();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "small numbers of a test"
                )]
                let messages = (self.seconds * 1000.0 / *interval as f64) as u64;
                scenarios.push(Scenario {
                    id: ScenarioId(u64::from(index) + 1),
                    index,
                    endpoint: "metro".into(),
                    target: Targets::read(
                        &format!("{}://192.0.2.7:8080/", self.scheme),
                        self.probe,
                    ),
                    interval: Span::from_millis(*interval),
                    request_size: ByteSize(*size),
                    response_size: ByteSize(self.reply),
                    messages: messages.max(6),
                    parameters: Parameters::new(),
                    varied: Vec::new(),
                });
            }
        }
        scenarios
    }

    pub(crate) fn campaign(&self) -> CampaignData {
        let scenarios = self.scenarios();
        let mut random = Random::new(self.seed);
        let mut experiments = Vec::new();
        for block in 0..self.blocks {
            for (index, scenario) in scenarios.iter().enumerate() {
                let port = self.port(experiments.len(), &mut random);
                experiments.push(self.experiment(scenario, (index, block), port, &mut random));
            }
        }
        CampaignData {
            campaign: campaign(self.blocks),
            scenarios,
            experiments,
            left_out: Vec::new(),
            throughputs: Vec::new(),
            traceroutes: Vec::new(),
        }
    }

    /// The plan's ports in turn, or whichever the kernel chooses.
    fn port(&self, run: usize, random: &mut Random) -> u16 {
        if self.ports.is_empty() {
            return 32_768 + u16::try_from(random.below(28_000)).unwrap();
        }
        self.ports[run % self.ports.len()]
    }

    fn experiment(
        &self,
        scenario: &Scenario,
        (index, block): (usize, u32),
        port: u16,
        random: &mut Random,
    ) -> ExperimentData {
        let mut id = [0; 16];
        id[0] = u8::try_from(block).unwrap();
        id[1] = u8::try_from(index).unwrap();
        let mut line = Line::new(self, block, port);
        let mut messages: Vec<Message> = (0..scenario.messages)
            .map(|seq| line.message(scenario, seq, random))
            .collect();
        messages.extend(echoes(&line, scenario, random));
        let source = SocketAddr::new([192, 0, 2, 1].into(), port);
        let source = Some(source).filter(|_| self.dials.is_none());
        let minutes = i64::from(block) * 60 + i64::try_from(index).unwrap();
        let experiment = Experiment {
            id: ExperimentId::from_bytes(id),
            campaign: CampaignId::from_bytes([7; 16]),
            scenario: scenario.id,
            block,
            position: u32::try_from(index).unwrap(),
            attempt: 0,
            status: ExperimentStatus::Complete,
            reason: None,
            started: Wall::from_unix_nanos(START + minutes * 1_000_000_000),
            ended: None,
            flows: vec![
                flow(0, FlowRole::Main, self.probe, source),
                flow(1, FlowRole::Companion, ProbeKind::Icmp, None),
            ],
            fleet: None,
            quantities: None,
            tally: Tally::default(),
            response_p50: None,
            warnings: Vec::new(),
            anchors: anchors(self.steps && block == 1),
        };
        let mut data = ExperimentData::new(experiment, index, &messages);
        data.provenance = Some(self.provenance(data.experiment.id));
        data
    }

    fn provenance(&self, experiment: ExperimentId) -> Provenance {
        let sysctls = [("net.ipv4.tcp_slow_start_after_idle", self.sysctl)];
        let sysctls = sysctls.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Provenance {
            experiment,
            version: "0.1.0".into(),
            commit: String::new(),
            plan_hash: String::new(),
            site: None,
            host: HostFacts {
                sysctls: sysctls.into(),
                congestion_control: self.congestion.map(str::to_owned),
                ..HostFacts::default()
            },
            load: Load::default(),
            lateness_p50: None,
            lateness_p99: None,
        }
    }
}

fn anchors(steps: bool) -> Vec<(i64, i64)> {
    let wall = |second: i64| {
        let stepped = if steps && second > 2 {
            1_500_000_000
        } else {
            0
        };
        START + second * 1_000_010_000 + stepped
    };
    (0..6)
        .map(|second| (second * 1_000_000_000, wall(second)))
        .collect()
}

fn flow(index: u32, role: FlowRole, probe: ProbeKind, source: Option<SocketAddr>) -> Flow {
    Flow {
        index: FlowIndex(index),
        role,
        probe,
        name: "metro".into(),
        source,
        target: SocketAddr::new([192, 0, 2, 7].into(), 8080),
        reflector: role == FlowRole::Main,
        same_clock: true,
    }
}

fn campaign(blocks: u32) -> Campaign {
    Campaign {
        id: CampaignId::from_bytes([7; 16]),
        blocks,
        status: CampaignStatus::Complete,
        ..Campaign::begun("virtual", Wall::from_unix_nanos(START))
    }
}
