//! Test values that use every field.

use std::collections::BTreeMap;

use neph_model::{
    BitRate, BlockOrder, ByteSize, Campaign, CampaignId, CampaignStatus, ClassTransfer, Event,
    EventKind, Experiment, ExperimentId, ExperimentStatus, Fleet, FleetEndpoint, FleetMessage,
    FleetOutcome, FleetReply, Flow, FlowHop, FlowIndex, FlowRole, FlowRoute, FlowTrace, Hop,
    HostFacts, Instant, Load, Marks, Message, MplsLabel, Outcome, Parameter, ParameterName,
    Parameters, PathHash, PeerReport, ProbeKind, Provenance, Quantities, Quantity, ReadBy,
    Scenario, ScenarioId, Seq, Slot, SourcePortOutcome, SourcePortTransfer, Span, Tally, Targets,
    TcpState, Throughput, ThroughputSecond, TraceEnd, TraceKind, TracedChange, TracedRoute,
    Traceroute, Wall,
};

pub(crate) fn campaign() -> Campaign {
    Campaign {
        id: CampaignId::new(),
        name: "two ‘paths’, one \"plan\"".to_owned(),
        plan_text: "version = 1\n# Größe\n".to_owned(),
        plan_hash: "ab".repeat(32),
        plan_path: "plans/demo.toml".to_owned(),
        topology_text: Some("version = 1\n".to_owned()),
        topology_hash: Some("ef".repeat(32)),
        seed: u64::MAX,
        order: BlockOrder::Sequential,
        blocks: 2,
        status: CampaignStatus::Running,
        started: Wall::from_unix_nanos(1_700_000_000_000_000_001),
        ended: None,
    }
}

pub(crate) fn scenario(index: u32) -> Scenario {
    Scenario {
        id: ScenarioId(u64::MAX - u64::from(index)),
        index,
        endpoint: "metro".to_owned(),
        target: Targets::read("wss://metro.example:443/echo", ProbeKind::Ws),
        interval: Span::from_micros(2_500),
        request_size: ByteSize(10_240),
        response_size: ByteSize(64),
        messages: 299,
        parameters: Parameters::from([Parameter::Season(format!("1.{index}"))]),
        varied: vec![ParameterName::Season],
    }
}

/// A running experiment with two flows.
pub(crate) fn experiment(campaign: CampaignId) -> Experiment {
    let flow = |index, role, probe, target: &str| Flow {
        index: FlowIndex(index),
        role,
        probe,
        name: format!("flow {index}"),
        source: None,
        target: target.parse().expect("an address"),
        reflector: index == 0,
        same_clock: index == 0,
    };
    Experiment {
        id: ExperimentId::new(),
        campaign,
        scenario: scenario(0).id,
        block: 1,
        position: 2,
        attempt: 0,
        status: ExperimentStatus::Running,
        reason: None,
        started: Wall::from_unix_nanos(1_700_000_001_000_000_000),
        ended: None,
        flows: vec![
            flow(0, FlowRole::Main, ProbeKind::Ws, "[2001:db8::1]:443"),
            flow(1, FlowRole::Companion, ProbeKind::Icmp, "10.0.0.1:0"),
        ],
        fleet: None,
        quantities: Some(Quantities {
            peer: ([192, 0, 2, 7], 7420).into(),
            values: [(Quantity::UpGoodput, 93.4e6), (Quantity::UpSrtt, 1.5e6)].into(),
            limits: vec!["The path is the limit.".to_owned()],
        }),
        tally: Tally::default(),
        response_p50: None,
        warnings: Vec::new(),
        anchors: Vec::new(),
    }
}

/// A message whose fields all follow from its numbers, so that a reader can verify them.
pub(crate) fn message(flow: u32, seq: u64) -> Message {
    let start = i64::try_from(seq).expect("small") * 1_000_000;
    let at = |offset: i64| Some(Instant::from_nanos(start + offset));
    let mut marks = Marks::intended_at(Instant::from_nanos(start));
    marks.app_send = at(300);
    marks.nic_tx = at(2_500);
    marks.acked = at(40_000);
    marks.peer.rx = Some(Instant::from_nanos(start - 7_000_000_000));
    marks.app_recv = at(47_000 + start / 1_000_000);
    let mut message = Message::new(FlowIndex(flow), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message.connection = 3;
    message.duplicates = u16::MAX;
    message.reordered = seq % 2 == 1;
    message.tcp_at_send = Some(TcpState {
        cwnd: 10,
        ssthresh: u32::MAX,
        srtt_us: 41,
        min_rtt_us: 33,
        retransmissions: 1,
        dsack_duplicates: 2,
        delivery_rate: u64::MAX,
    });
    message
}

/// A message of a fleet whose fields all follow from its number.
pub(crate) fn fleet_message(number: u32) -> FleetMessage {
    let mut reply = FleetReply {
        round_trip: Span::from_nanos(800_000 + i64::from(number)),
        read_by: ReadBy::Kernel,
        peer_report: None,
        ttl: None,
        copies: 0,
        answer: None,
    };
    if number % 2 == 1 {
        reply.peer_report = Some(PeerReport {
            rx: Instant::from_nanos(i64::MIN + i64::from(number)),
            residence: Span::from_nanos(i64::from(number)),
            count: Some(u32::MAX),
            ttl: Some(255),
        });
        reply.ttl = Some(61);
        reply.copies = u8::MAX;
        reply.read_by = ReadBy::Program;
    }
    FleetMessage {
        slot: Slot(number % 8),
        source_port: 65_535,
        seq: number / 8,
        sent: Instant::from_nanos(i64::from(number) * 25_000_000),
        late: Span::from_nanos(i64::from(number % 3)),
        outcome: match number % 10 {
            8 => FleetOutcome::Lost,
            9 => FleetOutcome::Failed,
            _ => FleetOutcome::Reply(reply),
        },
    }
}

pub(crate) fn fleet_messages(numbers: std::ops::Range<u32>) -> Vec<FleetMessage> {
    numbers.map(fleet_message).collect()
}

pub(crate) fn fleet() -> Fleet {
    Fleet {
        probe: ProbeKind::Udp,
        slots: 8,
        endpoints: vec![FleetEndpoint {
            name: "metro".to_owned(),
            address: "[2001:db8::1]:862".parse().expect("an address"),
        }],
        interval: Span::from_millis(200),
        lifetime: Some(Span::from_secs(30)),
        criteria: None,
    }
}

pub(crate) fn event(at: i64, kind: EventKind) -> Event {
    Event {
        flow: FlowIndex(0),
        at,
        kind,
        text: "connection reset by peer · Größe".to_owned(),
    }
}

pub(crate) fn provenance(experiment: ExperimentId) -> Provenance {
    let entry = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    Provenance {
        experiment,
        version: "0.1.0".to_owned(),
        commit: "abcdef".to_owned(),
        plan_hash: "ab".repeat(32),
        site: Some("client".to_owned()),
        host: HostFacts {
            host: "probe-1".to_owned(),
            kernel: "6.18".to_owned(),
            cpu: "a CPU".to_owned(),
            cores: 2,
            clock_source: "tsc".to_owned(),
            clock_sync: "synchronised, 5 us".to_owned(),
            offloads: entry("eth0.tso", "on"),
            sysctls: entry("net.ipv4.tcp_slow_start_after_idle", "1"),
            congestion_control: Some("cubic".to_owned()),
        },
        load: Some(Load {
            busy_percent: 12.5,
            steal_percent: 0.25,
            load_average: 1.5,
        }),
        lateness_p50: Some(Span::from_nanos(800)),
        lateness_p99: Some(Span::from_micros(40)),
    }
}

pub(crate) fn throughput(at: i64) -> Throughput {
    Throughput {
        block: 0,
        endpoint: "metro".to_owned(),
        site: Some("client".to_owned()),
        tool: "neph".to_owned(),
        started: Wall::from_unix_nanos(at),
        seconds: vec![ThroughputSecond {
            goodput: BitRate(3_000_000),
            retransmissions: 2,
            spurious_retransmissions: 1,
            cwnd_segments: Some(33),
            srtt: None,
        }],
        goodput: BitRate(2_900_000),
        failure: Some("ended early".to_owned()),
    }
}

pub(crate) fn route(at: i64) -> Traceroute {
    Traceroute {
        block: 0,
        endpoint: "metro".to_owned(),
        site: Some("client".to_owned()),
        destination: "2001:db8::1".parse().expect("an address"),
        started: Wall::from_unix_nanos(at),
        hops: vec![Hop {
            ttl: 1,
            addresses: vec!["10.0.0.254".parse().expect("an address")],
            round_trips: vec![Span::from_micros(420)],
        }],
        reached: true,
        failure: None,
    }
}

/// The `n`th by time. Every third has a change from an unknown path, every third a change from a
/// known one.
pub(crate) fn traced_route(n: u16) -> TracedRoute {
    let at = i64::from(n) * 1_000_000;
    let trace = flow_trace(0, TraceKind::Udp, None);
    let change = |before, others| TracedChange {
        at: Instant::from_nanos(at - 5),
        before,
        other_routers: others,
    };
    TracedRoute {
        slot: Slot(u32::from(n % 7)),
        at: Instant::from_nanos(at),
        route: trace.routes[usize::from(n % 2)].clone(),
        change: match n % 3 {
            0 => None,
            1 => Some(change(None, None)),
            _ => Some(change(Some(PathHash(u64::MAX)), Some(n.is_multiple_of(2)))),
        },
    }
}

/// The `n`th by time; every other one failed.
pub(crate) fn class_transfer(n: u16) -> ClassTransfer {
    ClassTransfer {
        endpoint: usize::from(n % 2),
        class: usize::from(n % 3),
        size: ByteSize(1024),
        transfer: SourcePortTransfer {
            source_port: 40_000 + n,
            pass: u32::from(n),
            begun: Instant::from_nanos(i64::from(n)),
            outcome: match n % 2 {
                0 => SourcePortOutcome::Done {
                    connect: Span::from_micros(20_000),
                    total: Span::from_nanos(40_000_001),
                },
                _ => SourcePortOutcome::Failed("no reply in time".to_owned()),
            },
        },
    }
}

/// Two routes: one reached its destination, the other ended at a router.
pub(crate) fn flow_trace(at: i64, kind: TraceKind, enough: Option<bool>) -> FlowTrace {
    let router = "fe80::1".parse().expect("an address");
    let hop = |ttl, address| FlowHop {
        ttl,
        address,
        other_addresses: vec![router],
        probes: 3,
        round_trips: vec![Span::from_micros(420), Span::from_nanos(1)],
        other_addresses_round_trips: Vec::new(),
        read_by: ReadBy::Kernel,
        labels: vec![MplsLabel {
            label: 1 << 19,
            traffic_class: 7,
            ttl: 255,
        }],
    };
    let route = |source_port, end| FlowRoute {
        source_port,
        hops: vec![hop(1, None), hop(2, Some(router))],
        hash: PathHash::of(&[None, Some(router)]),
        end,
    };
    let unreachable = TraceEnd::Unreachable {
        from: router,
        code: 3,
    };
    FlowTrace {
        destination: "[2001:db8::1]:862".parse().expect("an address"),
        kind,
        started: Wall::from_unix_nanos(at),
        routes: vec![route(40_000, TraceEnd::Reached), route(65_535, unreachable)],
        enough,
    }
}
