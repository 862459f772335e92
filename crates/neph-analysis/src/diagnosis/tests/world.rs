//! A world: a virtual path and the messages on it, as a campaign.

use std::net::SocketAddr;
use std::ops::Range;

use neph_model::{
    ByteSize, Campaign, CampaignId, CampaignStatus, Experiment, ExperimentId, ExperimentStatus,
    Flow, FlowIndex, FlowRole, HostFacts, Message, Parameters, ProbeKind, Provenance, Scenario,
    ScenarioId, Span, Tally, Targets, Wall,
};
use neph_stats::Random;

use super::echoes::echoes;
use super::path::Connection;
use super::stalling::{StalledParty, Stalling};
use crate::{CampaignData, ExperimentData};

const START: i64 = 1_795_000_000_000_000_000;

/// A queue that other traffic fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub from: f64,
    pub(crate) to: f64,
    pub(crate) peak_ms: f64,
}

/// All properties of the path and its hosts. The default is an idle path of 20 ms.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) round_trip_ms: f64,
    /// Scale of the exponential jitter.
    pub(crate) jitter_ms: f64,
    pub(crate) rate_mbit: f64,
    /// Additional RTT of each path; the source port chooses the path.
    pub(crate) paths_ms: Vec<f64>,
    /// Additional RTT of later blocks: a path change.
    pub(crate) path_change_ms: f64,
    /// Blocks with the path change, as shares of all blocks.
    pub(crate) path_change_blocks: Range<f64>,
    pub(crate) queue: Option<Queue>,
    /// Share of the queue's delay that ICMP echoes have.
    pub(crate) echo_queue_share: f64,
    /// A path that is longer for some time: no queue.
    pub(crate) longer_path: Option<Queue>,
    pub(crate) has_idle_restart: bool,
    /// The value of `net.ipv4.tcp_slow_start_after_idle` that the host reports.
    pub(crate) sysctl: &'static str,
    /// Congestion control of the sender, if the host reports it.
    pub(crate) congestion: Option<&'static str>,
    /// Largest congestion window, in segments.
    pub(crate) max_window: Option<u32>,
    /// Receive window, in segments.
    pub(crate) receive_window: Option<u32>,
    /// Which share of a message's wait in our host comes before its bytes are with the interface's
    /// queue; none: the kernel does not tell.
    pub(crate) unqueued_wait_share: Option<f64>,
    /// Mbit/s at which the sender paces, however large the window.
    pub(crate) pacing: Option<f64>,
    /// Share of lost segments.
    pub(crate) loss: f64,
    /// Seconds in which every message is lost.
    pub(crate) outage: Range<f64>,
    /// The block in which all messages after the first one wait.
    pub(crate) stalled_block: Option<u32>,
    /// Share of lost segments of large replies.
    pub(crate) reply_segment_loss: f64,
    /// Share of the replies of one segment that come late, and hold back those behind them.
    pub(crate) reply_retransmission_share: f64,
    /// Share of segments that a full queue drops.
    pub(crate) queue_loss: f64,
    pub(crate) proxy_ms: f64,
    /// The share of acknowledgements that do not wait for the reply to travel with.
    pub(crate) quick_acks: f64,
    pub(crate) icmp_ms: f64,
    pub(crate) processing_ms: f64,
    pub(crate) client_delay_ms: f64,
    /// Share of the messages that the client delays.
    pub(crate) client_delay_share: f64,
    /// Round trips of handshakes above TCP, with a connection per message.
    pub(crate) handshake_round_trips: Option<f64>,
    /// Share of the messages that open a connection.
    pub(crate) handshake_share: f64,
    /// Computation time of a TLS handshake.
    pub(crate) crypto_ms: f64,
    /// The scheme of the target.
    pub(crate) scheme: &'static str,
    pub(crate) has_clock_step: bool,
    pub(crate) stalling: Option<Stalling>,
    pub(crate) probe: ProbeKind,
    pub(crate) intervals_ms: Vec<i64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) reply_bytes: u64,
    pub ports: Vec<u16>,
    pub(crate) blocks: u32,
    pub seconds: f64,
}

impl World {
    /// A message every 50 ms, and a queue on the way between 15 and 40 s.
    pub(crate) fn with_queue() -> Self {
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
            path_change_ms: 0.0,
            path_change_blocks: 0.5..1.0,
            queue: None,
            echo_queue_share: 1.0,
            longer_path: None,
            has_idle_restart: false,
            sysctl: "1",
            congestion: Some("cubic"),
            max_window: None,
            receive_window: None,
            unqueued_wait_share: Some(1.0),
            pacing: None,
            loss: 0.0,
            outage: 0.0..0.0,
            stalled_block: None,
            reply_segment_loss: 0.0,
            reply_retransmission_share: 0.0,
            queue_loss: 0.0,
            proxy_ms: 0.0,
            quick_acks: 0.15,
            icmp_ms: 0.0,
            processing_ms: 0.0,
            client_delay_ms: 0.0,
            client_delay_share: 1.0,
            handshake_round_trips: None,
            handshake_share: 1.0,
            crypto_ms: 0.0,
            scheme: "ws",
            has_clock_step: false,
            stalling: None,
            probe: ProbeKind::Ws,
            intervals_ms: vec![100],
            sizes: vec![1024],
            reply_bytes: 64,
            ports: Vec::new(),
            blocks: 6,
            seconds: 12.0,
        }
    }
}

impl World {
    /// The stalls, if one of these parties has them.
    pub(crate) fn stalls(&self, parties: &[StalledParty]) -> Option<Stalling> {
        self.stalling
            .filter(|stalling| parties.contains(&stalling.party))
    }

    /// When the interface's queue has what was written and left at these times; none where the kernel
    /// does not tell.
    pub(crate) fn queued_at(&self, written: f64, departure: f64) -> Option<f64> {
        self.unqueued_wait_share
            .map(|share| written + share * (departure - 0.01 - written))
    }

    /// Additional RTT of the port's path.
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
                    response_size: ByteSize(self.reply_bytes),
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
        let mut connection = Connection::new(self, block, port);
        let mut messages: Vec<Message> = (0..scenario.messages)
            .map(|seq| connection.message(scenario, seq, random))
            .collect();
        messages.extend(echoes(&connection, scenario, random));
        let source = SocketAddr::new([192, 0, 2, 1].into(), port);
        let source = Some(source).filter(|_| self.handshake_round_trips.is_none());
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
            anchors: anchors(self.has_clock_step && block == 1),
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
            load: None,
            lateness_p50: None,
            lateness_p99: None,
        }
    }
}

fn anchors(has_clock_step: bool) -> Vec<(i64, i64)> {
    let wall = |second: i64| {
        let stepped = if has_clock_step && second > 2 {
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
        ..Campaign::new("virtual", Wall::from_unix_nanos(START))
    }
}
