//! Campaigns whose truth is known: seeded messages over links with a given round trip, rate, loss
//! and peer, so that every number in a report can be held against what was put in.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use neph_model::{
    BitRate, ByteSize, Campaign, CampaignId, CampaignStatus, Event, EventKind, Experiment,
    ExperimentId, ExperimentStatus, Flow, FlowIndex, FlowRole, Hop, HostFacts, Instant, Load,
    Marks, Message, Order, Outcome, Own, ProbeKind, Provenance, Scenario, ScenarioId, Seq, Span,
    TcpState, Throughput, ThroughputSecond, Traceroute, Wall, Warning,
};
use neph_report::{CampaignData, ExperimentData};
use neph_stats::Random;

/// A link to an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) round_trip_ms: f64,
    pub(crate) up_mbit: f64,
    pub(crate) loss: f64,
    pub(crate) reflector: bool,
}

pub(crate) const METRO: Link = Link {
    name: "metro",
    round_trip_ms: 4.0,
    up_mbit: 1000.0,
    loss: 0.0,
    reflector: true,
};
pub(crate) const CONTINENT: Link = Link {
    name: "continent",
    round_trip_ms: 40.0,
    up_mbit: 200.0,
    loss: 0.001,
    reflector: true,
};
pub(crate) const HOME: Link = Link {
    name: "home",
    round_trip_ms: 12.0,
    up_mbit: 3.0,
    loss: 0.002,
    reflector: true,
};
pub(crate) const PROXIED: Link = Link {
    name: "through-an-L7-proxy",
    round_trip_ms: 22.0,
    up_mbit: 100.0,
    loss: 0.0,
    reflector: false,
};
pub(crate) const FAR: Link = Link {
    name: "us-west-2.example.net",
    round_trip_ms: 152.0,
    up_mbit: 50.0,
    loss: 0.004,
    reflector: true,
};

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) links: Vec<Link>,
    pub(crate) intervals_ms: Vec<i64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) blocks: u32,
    pub(crate) messages: u64,
}

pub(crate) fn one() -> CampaignData {
    campaign(&Shape {
        links: vec![CONTINENT],
        intervals_ms: vec![25],
        sizes: vec![10_240],
        blocks: 1,
        messages: 1200,
    })
}

/// One scenario of so many messages.
pub(crate) fn long(messages: u64) -> CampaignData {
    campaign(&Shape {
        links: vec![CONTINENT],
        intervals_ms: vec![1],
        sizes: vec![64],
        blocks: 1,
        messages,
    })
}

pub(crate) fn twelve() -> CampaignData {
    campaign(&Shape {
        links: vec![METRO, CONTINENT, HOME],
        intervals_ms: vec![100, 400],
        sizes: vec![1024, 102_400],
        blocks: 6,
        messages: 320,
    })
}

pub(crate) fn sixty() -> CampaignData {
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
                .find(|l| l.name == scenario.endpoint)
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
            seed: 42,
            order: Order::Random,
            blocks: shape.blocks,
            status: CampaignStatus::Complete,
            started: Wall::from_unix_nanos(START),
            ended: Some(Wall::from_unix_nanos(START + 900_000_000_000)),
        },
        scenarios,
        experiments,
        left_out: 0,
        throughputs: throughputs(shape),
        traceroutes: routes(shape),
    }
}

const START: i64 = 1_795_000_000_000_000_000;

fn scenarios(shape: &Shape) -> Vec<Scenario> {
    let mut found = Vec::new();
    for link in &shape.links {
        for interval in &shape.intervals_ms {
            for size in &shape.sizes {
                let index = u32::try_from(found.len()).unwrap();
                found.push(Scenario {
                    id: ScenarioId(u64::from(index) + 1),
                    index,
                    endpoint: link.name.into(),
                    target: format!("ws://{}:8080/", link.name),
                    probe: ProbeKind::Ws,
                    interval: Span::from_millis(*interval),
                    request_size: ByteSize(*size),
                    response_size: ByteSize(1024),
                    messages: shape.messages,
                    parameters: BTreeMap::from([("congestion".into(), "cubic".into())]),
                    varied: Vec::new(),
                });
            }
        }
    }
    found
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

/// The main flow's messages, then the companion's.
pub(crate) fn messages(scenario: &Scenario, link: &Link, random: &mut Random) -> Vec<Message> {
    let mut messages = Vec::new();
    for seq in 0..scenario.messages {
        messages.push(message(scenario, seq, link, random));
    }
    let last = messages.last().unwrap().marks.intended.nanos();
    let mut at = 0;
    let mut seq = 0;
    while at <= last {
        messages.push(ping(seq, at, link, random));
        at += 200_000_000;
        seq += 1;
    }
    messages
}

/// Which experiments are flagged, and why.
fn troubles(
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
    let (warnings, events) = troubles(scenario, (index, block), last);
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
        tally: neph_model::Tally {
            messages: scenario.messages,
            replies: scenario.messages - u64::try_from(unanswered).unwrap(),
            lost: u64::try_from(unanswered).unwrap(),
            ..neph_model::Tally::default()
        },
        warnings,
        anchors: Vec::new(),
    };
    let mut data = ExperimentData::new(experiment, index, &messages);
    data.events = events;
    data.provenance = Some(provenance(data.experiment.id));
    data
}

fn jitter(random: &mut Random, scale: f64) -> f64 {
    -(1.0 - random.unit()).ln() * scale
}

#[expect(clippy::cast_possible_truncation, reason = "microseconds of a test")]
fn nanos(micros: f64) -> i64 {
    (micros * 1000.0) as i64
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a test"
)]
fn message(scenario: &Scenario, seq: u64, link: &Link, random: &mut Random) -> Message {
    let at = i64::try_from(seq).unwrap() * scenario.interval.nanos();
    let mut marks = Marks::intended_at(Instant::from_nanos(at));
    let bytes = scenario.request_size.bytes() as f64;
    // Idle slow start: what was idle for 200 ms begins with 10 segments again.
    let segments = bytes / 1448.0;
    let idle = scenario.interval >= Span::from_millis(200);
    let cwnd = if idle {
        10.0
    } else {
        (10.0 + seq as f64 * 2.0).min(140.0)
    };
    let rounds = (segments / cwnd).max(1.0).log2().ceil().max(0.0);
    let lost = random.unit() < link.loss;
    let mut clock = at + nanos(3.0 + jitter(random, 4.0));
    let mut step = |micros: f64, to: &mut Option<Instant<Own>>| {
        clock += nanos(micros);
        *to = Some(Instant::from_nanos(clock));
        clock
    };
    step(0.0, &mut marks.app_send);
    step(
        9.0 + jitter(random, 2.0) + rounds * link.round_trip_ms * 1000.0,
        &mut marks.queued,
    );
    step(6.0 + jitter(random, 1.0), &mut marks.nic_tx);
    let there = link.round_trip_ms * 500.0 + bytes * 8.0 / link.up_mbit + jitter(random, 60.0);
    let back = link.round_trip_ms * 500.0 + jitter(random, 40.0);
    let peer = |t: i64| Some(Instant::from_nanos(t + 5_000_000_000));
    let sent = clock;
    let arrived = sent + nanos(there);
    let peer_spans = [
        18.0 + jitter(random, 4.0),
        32.0 + jitter(random, 10.0),
        14.0 + jitter(random, 3.0),
    ]
    .map(nanos);
    let left = arrived + peer_spans.iter().sum::<i64>();
    let state = state(cwnd as u32, seq);
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.tcp_at_send = Some(state);
    if lost {
        message.outcome = Outcome::Lost;
        return message;
    }
    message.outcome = Outcome::Reply;
    message.tcp_at_ack = Some(state);
    let received = left + nanos(back);
    message.marks.acked = Some(Instant::from_nanos(received - peer_spans[1]));
    if link.reflector {
        message.marks.peer.rx = peer(arrived);
        message.marks.peer.app_rx = peer(arrived + peer_spans[0]);
        message.marks.peer.app_tx = peer(arrived + peer_spans[0] + peer_spans[1]);
        message.marks.peer.nic_tx = peer(left);
    }
    message.marks.nic_rx = Some(Instant::from_nanos(received));
    message.marks.app_recv = Some(Instant::from_nanos(
        received + nanos(12.0 + jitter(random, 6.0)),
    ));
    message
}

fn state(cwnd: u32, seq: u64) -> TcpState {
    TcpState {
        cwnd,
        ssthresh: 80,
        srtt_us: 40_000,
        min_rtt_us: 39_000,
        retransmissions: u32::try_from(seq / 97).unwrap(),
        delivery_rate: 1_000_000,
    }
}

fn ping(seq: u64, at: i64, link: &Link, random: &mut Random) -> Message {
    let mut marks = Marks::intended_at(Instant::from_nanos(at));
    let send = at + nanos(4.0);
    let back = send + nanos(link.round_trip_ms * 1000.0 + jitter(random, 80.0));
    marks.app_send = Some(Instant::from_nanos(send));
    marks.queued = Some(Instant::from_nanos(send + 1000));
    marks.nic_tx = Some(Instant::from_nanos(send + 2000));
    marks.nic_rx = Some(Instant::from_nanos(back));
    marks.app_recv = Some(Instant::from_nanos(back + nanos(9.0)));
    let mut message = Message::new(FlowIndex(1), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message
}

fn provenance(experiment: ExperimentId) -> Provenance {
    Provenance {
        experiment,
        version: "0.1.0".into(),
        commit: "aecbb04".into(),
        plan_hash: "9f".repeat(32),
        site: Some("client".into()),
        host: HostFacts {
            host: "bench".into(),
            kernel: "6.18.0".into(),
            cpu: "Example CPU".into(),
            cores: 2,
            clock_source: "tsc".into(),
            clock_sync: "synchronised, error 120 us".into(),
            offloads: BTreeMap::from([("veth0.tso".into(), "on".into())]),
            sysctls: BTreeMap::from([("net.ipv4.tcp_slow_start_after_idle".into(), "1".into())]),
            congestion_control: Some("cubic".into()),
        },
        load: Load {
            busy_percent: 31.0,
            steal_percent: 0.4,
            load_average: 0.7,
        },
        lateness_p50: Some(Span::from_micros(4)),
        lateness_p99: Some(Span::from_micros(21)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of a test"
)]
fn throughputs(shape: &Shape) -> Vec<Throughput> {
    let mut found = Vec::new();
    for block in 0..shape.blocks {
        for link in &shape.links {
            let rate = BitRate((link.up_mbit * 940_000.0) as u64);
            let second = ThroughputSecond {
                goodput: rate,
                retransmissions: 3,
                cwnd_segments: Some(88),
                srtt: Some(Span::from_millis(41)),
            };
            found.push(Throughput {
                block,
                endpoint: link.name.into(),
                tool: "neph".into(),
                started: Wall::from_unix_nanos(START),
                seconds: vec![second; 5],
                goodput: rate,
                failure: None,
            });
        }
    }
    found
}

fn routes(shape: &Shape) -> Vec<Traceroute> {
    shape
        .links
        .iter()
        .map(|link| Traceroute {
            block: 0,
            endpoint: link.name.into(),
            destination: "192.0.2.7".parse().unwrap(),
            started: Wall::from_unix_nanos(START),
            hops: vec![
                Hop {
                    ttl: 1,
                    addresses: vec!["10.0.0.1".parse().unwrap()],
                    round_trips: vec![Span::from_micros(300)],
                },
                Hop {
                    ttl: 2,
                    addresses: Vec::new(),
                    round_trips: Vec::new(),
                },
                Hop {
                    ttl: 3,
                    addresses: vec!["192.0.2.7".parse().unwrap()],
                    round_trips: vec![Span::from_micros(4100), Span::from_micros(4200)],
                },
            ],
            reached: true,
            failure: None,
        })
        .collect()
}
