//! From what the files told to a campaign in the store.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use neph_model::{
    ByteSize, Campaign, CampaignId, CampaignStatus, Experiment, ExperimentId, ExperimentStatus,
    Flow, FlowIndex, FlowRole, HostFacts, Instant, Load, Marks, Message, Order, Outcome, ProbeKind,
    Provenance, Scenario, ScenarioId, Seq, Span, Tally, Wall,
};
use sha2::{Digest, Sha256};

use super::ping::{Ping, PingFile};
use super::raw::{RawFile, RawMessage};
use super::report::{ImportReport, ImportedExperiment};
use crate::{Store, StoreError};

/// A ping this long after the last reply still belongs to the experiment: steps follow each other.
const GRACE: i64 = 1_000_000_000;
/// Messages given to the recorder at once.
const BATCH: usize = 4096;

/// Stores everything. `files` are sorted by start.
pub(super) fn store_all(
    store: &mut dyn Store,
    (folder, settings): (&Path, Option<(PathBuf, String)>),
    (files, pings): (Vec<RawFile>, Vec<PingFile>),
    report: &mut ImportReport,
) -> Result<(), StoreError> {
    let scenarios = scenarios(&files);
    let campaign = campaign((folder, settings), &files);
    report.campaign = Some(campaign.id);
    let ended = files.iter().map(RawFile::ended).max();
    store.add_campaign(&campaign, &scenarios)?;
    let mut pings = attribute(&files, &pings, report);
    let mut places = Places::default();
    for (file, flows) in files.iter().zip(&mut pings) {
        let scenario = scenario_of(file).id;
        let mut experiment = experiment(file, campaign.id, scenario);
        places.place(&mut experiment);
        experiment
            .flows
            .extend(flows.iter().enumerate().map(ping_flow));
        let stored = store_one(store, (file, flows), (experiment, &campaign.plan_hash))?;
        report.experiments.push(stored);
    }
    let ended = ended.map(Wall::from_unix_nanos);
    store.set_campaign_status(campaign.id, CampaignStatus::Imported, ended)
}

/// The pings of one destination that fall into one experiment.
struct PingFlow<'a> {
    file: &'a PingFile,
    pings: Vec<Ping>,
}

/// For each raw-data file, the pings while it ran.
fn attribute<'a>(
    files: &[RawFile],
    pings: &'a [PingFile],
    report: &mut ImportReport,
) -> Vec<Vec<PingFlow<'a>>> {
    let ends: Vec<i64> = files.iter().map(RawFile::ended).collect();
    let mut flows: Vec<Vec<PingFlow<'a>>> = files.iter().map(|_| Vec::new()).collect();
    for file in pings {
        let mut inside: BTreeMap<usize, Vec<Ping>> = BTreeMap::new();
        for ping in &file.pings {
            let began = files.partition_point(|raw| raw.started() <= ping.intended);
            match began.checked_sub(1) {
                Some(place) if ping.intended <= ends[place].saturating_add(GRACE) => {
                    inside.entry(place).or_default().push(*ping);
                }
                _ => report.pings_outside += 1,
            }
        }
        for (place, pings) in inside {
            flows[place].push(PingFlow { file, pings });
        }
    }
    flows
}

fn campaign((folder, settings): (&Path, Option<(PathBuf, String)>), files: &[RawFile]) -> Campaign {
    let (path, text) = settings.unwrap_or_else(|| (folder.to_owned(), String::new()));
    let blocks = files.iter().map(block).max().unwrap_or(0) + 1;
    let started = files.iter().map(RawFile::started).min().unwrap_or(0);
    Campaign {
        id: CampaignId::new(),
        name: folder
            .file_name()
            .unwrap_or(folder.as_os_str())
            .to_string_lossy()
            .into_owned(),
        plan_hash: hex(&Sha256::digest(text.as_bytes())),
        plan_text: text,
        plan_path: path.display().to_string(),
        seed: 0,
        order: Order::Sequential,
        blocks,
        status: CampaignStatus::Running,
        started: Wall::from_unix_nanos(started),
        ended: None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

/// Runs count from 1; a file that tells none is of the first.
fn block(file: &RawFile) -> u32 {
    file.name.run.unwrap_or(1).saturating_sub(1)
}

/// The matrix: each scenario once, by endpoint, interval and size.
fn scenarios(files: &[RawFile]) -> Vec<Scenario> {
    let mut known: BTreeMap<_, Scenario> = BTreeMap::new();
    for file in files {
        let scenario = scenario_of(file);
        let key = (
            scenario.endpoint.clone(),
            scenario.interval,
            scenario.request_size,
        );
        let count = file.messages.len() as u64;
        let entry = known.entry(key).or_insert(scenario);
        entry.messages = entry.messages.max(count);
    }
    let mut scenarios: Vec<_> = known.into_values().collect();
    for (index, scenario) in (0..).zip(&mut scenarios) {
        scenario.index = index;
    }
    scenarios
}

fn scenario_of(file: &RawFile) -> Scenario {
    let unknown = |name: &str| (name.to_owned(), "unknown".to_owned());
    let mut parameters = BTreeMap::from([
        ("imported".to_owned(), "latency-tester".to_owned()),
        unknown("response_size"),
        unknown("tls"),
    ]);
    if file.name.request_bytes.is_none() {
        parameters.extend([unknown("request_size")]);
    }
    let interval = Span::from_nanos(file.interval());
    let request_size = ByteSize(file.name.request_bytes.unwrap_or(0));
    let endpoint = file.name.endpoint.clone();
    // A file whose name tells no interval is a scenario by its name alone.
    let told = file.name.interval_ms.map(|_| interval.nanos());
    let canonical = format!("latency-tester\n{endpoint}\n{told:?}\n{}", request_size.0);
    let digest: [u8; 32] = Sha256::digest(canonical.as_bytes()).into();
    let (head, _) = digest
        .split_first_chunk()
        .expect("a digest is longer than 8 bytes");
    Scenario {
        id: ScenarioId(u64::from_be_bytes(*head)),
        index: 0,
        target: endpoint.clone(),
        endpoint,
        probe: ProbeKind::Ws,
        interval,
        request_size,
        response_size: ByteSize(0),
        messages: 0,
        parameters,
        varied: Vec::new(),
    }
}

/// Hands out positions within blocks and attempts of a scenario, in order of time.
#[derive(Default)]
struct Places {
    positions: BTreeMap<u32, u32>,
    attempts: BTreeMap<(u32, ScenarioId), u32>,
}

impl Places {
    fn place(&mut self, experiment: &mut Experiment) {
        let position = self.positions.entry(experiment.block).or_default();
        experiment.position = *position;
        *position += 1;
        let key = (experiment.block, experiment.scenario);
        let attempt = self.attempts.entry(key).or_default();
        experiment.attempt = *attempt;
        *attempt += 1;
    }
}

fn experiment(file: &RawFile, campaign: CampaignId, scenario: ScenarioId) -> Experiment {
    let count = file.messages.len() as u64;
    let reordered = file.messages.iter().filter(|message| message.reordered);
    let unknown = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    Experiment {
        id: ExperimentId::new(),
        campaign,
        scenario,
        block: block(file),
        position: 0,
        attempt: 0,
        status: ExperimentStatus::Complete,
        reason: None,
        started: Wall::from_unix_nanos(file.started()),
        ended: Some(Wall::from_unix_nanos(file.ended())),
        flows: vec![Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Ws,
            name: file.name.endpoint.clone(),
            source: None,
            target: file.name.endpoint.parse().unwrap_or(unknown),
            reflector: false,
            same_clock: false,
        }],
        tally: Tally {
            messages: count,
            replies: count,
            reordered: reordered.count() as u64,
            ..Tally::default()
        },
        warnings: Vec::new(),
        anchors: vec![(0, file.started())],
    }
}

fn ping_index(place: usize) -> FlowIndex {
    FlowIndex(u32::try_from(place + 1).expect("fewer ping files than 4 billion"))
}

fn ping_flow((place, flow): (usize, &PingFlow<'_>)) -> Flow {
    Flow {
        index: ping_index(place),
        role: FlowRole::PingDestination,
        probe: ProbeKind::Icmp,
        name: flow.file.name.clone(),
        source: None,
        target: SocketAddr::new(flow.file.address, 0),
        reflector: false,
        same_clock: false,
    }
}

fn store_one(
    store: &mut dyn Store,
    (file, flows): (&RawFile, &[PingFlow<'_>]),
    (experiment, plan_hash): (Experiment, &str),
) -> Result<ImportedExperiment, StoreError> {
    let started = file.started();
    let main = (0..)
        .zip(&file.messages)
        .map(|(seq, message)| raw_message(seq, message, started));
    let pings = flows.iter().enumerate().flat_map(|(place, flow)| {
        (0..)
            .zip(&flow.pings)
            .map(move |(seq, ping)| ping_message((ping_index(place), Seq(seq)), ping, started))
    });
    let messages: Vec<Message> = main.chain(pings).collect();
    let mut recorder = store.begin(&experiment)?;
    for batch in messages.chunks(BATCH) {
        recorder.messages(batch)?;
    }
    let provenance = provenance(&experiment, (file, plan_hash));
    store.finish(recorder, &experiment, &provenance)?;
    let acknowledged = file.messages.iter().filter(|m| m.acked.is_some()).count();
    Ok(ImportedExperiment {
        id: experiment.id,
        path: file.path.clone(),
        messages: file.messages.len() as u64,
        acknowledged: acknowledged as u64,
        retransmissions: file.retransmissions,
        pings: flows.iter().map(|flow| flow.pings.len() as u64).sum(),
    })
}

/// Schedules were not kept: the message counts as intended when it was sent. The server's stamp is
/// wall-clock time; counted from the experiment's start, with that start as the offset, it reads
/// back exactly.
fn raw_message(seq: u64, raw: &RawMessage, started: i64) -> Message {
    let sent = Instant::from_nanos(raw.sent - started);
    let mut marks = Marks::intended_at(sent);
    marks.app_send = Some(sent);
    marks.acked = raw.acked.map(|at| Instant::from_nanos(at - started));
    marks.peer.app_rx = raw.server.map(|at| Instant::from_nanos(at - started));
    marks.app_recv = Some(Instant::from_nanos(raw.received - started));
    let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
    message.outcome = Outcome::Reply;
    message.peer_wall_offset = raw.server.map(|_| started);
    message.reordered = raw.reordered;
    message
}

fn ping_message((flow, seq): (FlowIndex, Seq), ping: &Ping, started: i64) -> Message {
    let intended = Instant::from_nanos(ping.intended - started);
    let mut marks = Marks::intended_at(intended);
    let received = ping.received.map(|at| Instant::from_nanos(at - started));
    marks.app_send = received.map(|_| intended);
    marks.app_recv = received;
    let mut message = Message::new(flow, seq, marks);
    message.outcome = received.map_or(Outcome::Lost, |_| Outcome::Reply);
    message.duplicates = ping.duplicates;
    message
}

fn provenance(experiment: &Experiment, (file, plan_hash): (&RawFile, &str)) -> Provenance {
    Provenance {
        experiment: experiment.id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: String::new(),
        plan_hash: plan_hash.to_owned(),
        site: None,
        host: HostFacts {
            host: format!("unknown (imported from {})", file.path.display()),
            ..HostFacts::default()
        },
        // Nobody measured how busy that host was: not a number, and not 0.
        load: Load {
            busy_percent: f64::NAN,
            steal_percent: f64::NAN,
            load_average: f64::NAN,
        },
        lateness_p50: None,
        lateness_p99: None,
    }
}
