//! Campaigns whose truth is known: seeded messages over links with a given round trip, rate, loss
//! and peer, so that every number in a report can be held against what was put in.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

pub(crate) mod fleet;
pub(crate) mod hops;
mod link;
mod message;
mod surroundings;

use std::net::SocketAddr;

use neph_analysis::{CampaignData, ExperimentData};
use neph_model::{
    BlockOrder, ByteSize, Campaign, CampaignId, CampaignStatus, Event, EventKind, Experiment,
    ExperimentId, ExperimentStatus, Flow, FlowIndex, FlowRole, Instant, Outcome, Parameter,
    Parameters, ProbeKind, Scenario, ScenarioId, Span, Tally, Targets, Wall, Warning,
};
use neph_stats::Random;

pub(crate) use link::{CONTINENT, FAR, FOREIGN, HOME, Link, METRO, PROXIED};
pub(crate) use message::messages;
use surroundings::{provenance, routes, throughputs};

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) links: Vec<Link>,
    pub(crate) intervals_ms: Vec<i64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) blocks: u32,
    pub(crate) messages: u64,
}

pub(crate) fn one_experiment() -> CampaignData {
    campaign(&Shape {
        links: vec![CONTINENT],
        intervals_ms: vec![25],
        sizes: vec![10_240],
        blocks: 1,
        messages: 1200,
    })
}

/// One scenario of so many messages.
pub(crate) fn long_campaign(messages: u64) -> CampaignData {
    campaign(&Shape {
        links: vec![CONTINENT],
        intervals_ms: vec![1],
        sizes: vec![64],
        blocks: 1,
        messages,
    })
}

/// One small scenario over each link, in so many blocks.
pub(crate) fn campaign_over(links: &[Link], blocks: u32) -> CampaignData {
    campaign(&Shape {
        links: links.to_vec(),
        intervals_ms: vec![100],
        sizes: vec![1024],
        blocks,
        messages: 300,
    })
}

pub(crate) fn twelve_scenarios() -> CampaignData {
    campaign(&Shape {
        links: vec![METRO, CONTINENT, HOME],
        intervals_ms: vec![100, 400],
        sizes: vec![1024, 102_400],
        blocks: 6,
        messages: 320,
    })
}

pub(crate) fn sixty_scenarios() -> CampaignData {
    campaign(&Shape {
        links: vec![METRO, CONTINENT, HOME, PROXIED, FAR],
        intervals_ms: vec![25, 100, 400, 1000],
        sizes: vec![1024, 10_240, 102_400],
        blocks: 2,
        messages: 300,
    })
}

pub(crate) fn campaign(shape: &Shape) -> CampaignData {
    let scenarios = scenarios(shape);
    let id = CampaignId::from_bytes([7; 16]);
    let mut random = Random::new(42);
    let mut experiments = Vec::new();
    for block in 0..shape.blocks {
        for (index, scenario) in scenarios.iter().enumerate() {
            let link = shape
                .links
                .iter()
                .find(|link| link.name == scenario.endpoint)
                .unwrap();
            experiments.push(experiment(id, scenario, (index, block), link, &mut random));
        }
    }
    CampaignData {
        campaign: Campaign {
            id,
            name: format!("synthetic-{}", scenarios.len()),
            plan_text: "version = 1\nname = \"synthetic\"\n".into(),
            plan_hash: "9f".repeat(32),
            plan_path: "plans/synthetic.toml".into(),
            topology_text: None,
            topology_hash: None,
            seed: 42,
            order: BlockOrder::Random,
            blocks: shape.blocks,
            status: CampaignStatus::Complete,
            started: Wall::from_unix_nanos(START),
            ended: Some(Wall::from_unix_nanos(START + 900_000_000_000)),
        },
        scenarios,
        experiments,
        left_out: Vec::new(),
        throughputs: throughputs(shape),
        traceroutes: routes(shape),
    }
}

const START: i64 = 1_795_000_000_000_000_000;

fn scenarios(shape: &Shape) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for link in &shape.links {
        for interval in &shape.intervals_ms {
            for size in &shape.sizes {
                let index = u32::try_from(scenarios.len()).unwrap();
                scenarios.push(Scenario {
                    id: ScenarioId(u64::from(index) + 1),
                    index,
                    endpoint: link.name.into(),
                    target: Targets::read(&format!("ws://{}:8080/", link.name), ProbeKind::Ws),
                    interval: Span::from_millis(*interval),
                    request_size: ByteSize(*size),
                    response_size: ByteSize(1024),
                    messages: shape.messages,
                    parameters: Parameters::from([Parameter::CongestionControl(
                        "cubic".to_owned(),
                    )]),
                    varied: Vec::new(),
                });
            }
        }
    }
    scenarios
}

fn flow(index: u32, role: FlowRole, probe: ProbeKind, name: &str, reflector: bool) -> Flow {
    let target: SocketAddr = "192.0.2.7:8080".parse().unwrap();
    Flow {
        index: FlowIndex(index),
        role,
        probe,
        name: name.into(),
        source: None,
        target,
        reflector,
        same_clock: true,
    }
}

/// Which experiments are flagged, and why.
fn warnings_of(
    scenario: &Scenario,
    (index, block): (usize, u32),
    last: i64,
) -> (Vec<Warning>, Vec<Event>) {
    let mut warnings = Vec::new();
    let mut events = Vec::new();
    if index == 1 || (index == 0 && scenario.messages > 1000) {
        warnings.push(Warning::SenderLate {
            p99: Span::from_micros(1_800),
            bound: Span::from_millis(1),
        });
    }
    if index == 2 && block == 1 {
        warnings.push(Warning::Reconnected { times: 1 });
        events.push(Event {
            flow: FlowIndex(0),
            at: last / 3,
            kind: EventKind::ConnectionLost,
            text: "reset by peer".into(),
        });
    }
    (warnings, events)
}

fn experiment(
    campaign: CampaignId,
    scenario: &Scenario,
    (index, block): (usize, u32),
    link: &Link,
    random: &mut Random,
) -> ExperimentData {
    let mut id = [0; 16];
    id[0] = u8::try_from(block).unwrap();
    id[1] = u8::try_from(index).unwrap();
    let mut messages = messages(scenario, link, random);
    let main = usize::try_from(scenario.messages).unwrap();
    let last = messages[main - 1].marks.intended.nanos();
    if index == 0 && block == 0 {
        // One hiccup: an outlier that must not crush the rest.
        let slow = &mut messages[20];
        for mark in [&mut slow.marks.nic_rx, &mut slow.marks.app_recv] {
            *mark = mark.map(|at| Instant::from_nanos(at.nanos() + 1_760_000_000));
        }
    }
    let unanswered = messages
        .iter()
        .filter(|m| m.flow.0 == 0 && m.outcome == Outcome::Lost)
        .count();
    let (warnings, events) = warnings_of(scenario, (index, block), last);
    let experiment = Experiment {
        id: ExperimentId::from_bytes(id),
        campaign,
        scenario: scenario.id,
        block,
        position: u32::try_from(index).unwrap(),
        attempt: 0,
        status: ExperimentStatus::Complete,
        reason: None,
        started: Wall::from_unix_nanos(START + i64::from(block) * 60_000_000_000),
        ended: None,
        flows: vec![
            flow(0, FlowRole::Main, ProbeKind::Ws, link.name, link.reflector),
            flow(1, FlowRole::Companion, ProbeKind::Icmp, link.name, false),
        ],
        fleet: None,
        quantities: None,
        tally: Tally {
            messages: scenario.messages,
            replies: scenario.messages - u64::try_from(unanswered).unwrap(),
            lost: u64::try_from(unanswered).unwrap(),
            ..Tally::default()
        },
        warnings,
        response_p50: None,
        anchors: Vec::new(),
    };
    let mut data = ExperimentData::new(experiment, index, &messages);
    data.events = events;
    data.provenance = Some(provenance(data.experiment.id));
    data
}
