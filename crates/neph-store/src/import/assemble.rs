//! Stores the parsed files as a campaign.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use neph_model::{
    CampaignId, CampaignStatus, Event, EventKind, Experiment, ExperimentStatus, Flow, FlowIndex,
    FlowRole, Message, Outcome, PingBetween, ProbeKind, Sample, ScenarioId, Seq, SeriesName, Span,
    Tally, Wall,
};

use super::LatencyTesterOutput;
use super::matrix::{block, campaign, scenario_of, scenarios};
use super::message::{ping_message, provenance, raw_message};
use super::ping::{Ping, PingFile};
use super::raw::RawFile;
use super::report::{ImportReport, ImportedExperiment};
use super::settings::{ImportedSettings, address};
use crate::{Store, StoreError};

/// A ping up to this long after the last reply belongs to the experiment: steps follow each other.
const MAX_PING_DELAY_NANOS: i64 = 1_000_000_000;
/// Messages per recorder call.
const BATCH_MESSAGES: usize = 4096;

/// Stores everything. The files of `output` are sorted by start.
pub(super) fn store_all(
    store: &mut dyn Store,
    output: LatencyTesterOutput,
) -> Result<ImportReport, StoreError> {
    let LatencyTesterOutput {
        folder,
        settings,
        files,
        pings,
        transfers,
        routes,
        imported_settings,
        mut report,
    } = output;
    let scenarios = scenarios(&files, &imported_settings);
    let campaign = campaign(&folder, settings, &files);
    report.campaign = Some(campaign.id);
    let ended = files.iter().map(RawFile::ended_unix_ns).max();
    store.add_campaign(&campaign, &scenarios)?;
    for transfer in transfers {
        let start_unix_ns = start_of_matching(&files, |file| block(file) == transfer.block());
        store.add_throughput(campaign.id, &transfer.into_throughput(start_unix_ns))?;
        report.throughputs += 1;
    }
    for route in routes {
        let start_unix_ns = start_of_matching(&files, |file| file.name == route.name);
        let endpoint = imported_settings.endpoint_of(&route.name);
        let endpoint = endpoint.map_or_else(
            || route.name.endpoint.clone(),
            |endpoint| endpoint.name.clone(),
        );
        store.add_traceroute(campaign.id, &route.into_traceroute(endpoint, start_unix_ns))?;
        report.traceroutes += 1;
    }
    let (mut pings, pings_between) = assign_pings(&files, &pings);
    report.pings_outside = pings_between.len() as u64;
    store.add_pings_between(campaign.id, &pings_between)?;
    let mut position_counter = PositionCounter::default();
    for (file, flows) in files.iter().zip(&mut pings) {
        let scenario = scenario_of(file, &imported_settings).id;
        let mut experiment = experiment(file, &imported_settings, campaign.id, scenario);
        position_counter.assign(&mut experiment);
        experiment.flows.extend(
            flows
                .iter()
                .enumerate()
                .map(|(index, flow)| ping_flow(index, flow)),
        );
        let stored = store_experiment(store, file, flows, &experiment, &campaign.plan_hash)?;
        report.experiments.push(stored);
    }
    let ended = ended.map(Wall::from_unix_nanos);
    store.set_campaign_status(campaign.id, CampaignStatus::Imported, ended)?;
    Ok(report)
}

/// Start of the first file that fits, or of the first of all, in Unix nanoseconds.
fn start_of_matching(files: &[RawFile], matches: impl Fn(&RawFile) -> bool) -> i64 {
    let file = files
        .iter()
        .find(|file| matches(file))
        .or_else(|| files.first());
    file.map_or(0, RawFile::started_unix_ns)
}

/// The pings of one destination during one experiment.
struct PingFlow<'a> {
    file: &'a PingFile,
    pings: Vec<Ping>,
}

/// The pings during each raw-data file, and the pings outside of all.
fn assign_pings<'a>(
    files: &[RawFile],
    pings: &'a [PingFile],
) -> (Vec<Vec<PingFlow<'a>>>, Vec<PingBetween>) {
    let ends_unix_ns: Vec<i64> = files.iter().map(RawFile::ended_unix_ns).collect();
    let mut flows: Vec<Vec<PingFlow<'a>>> = files.iter().map(|_| Vec::new()).collect();
    let mut pings_between = Vec::new();
    for file in pings {
        let mut pings_during: BTreeMap<usize, Vec<Ping>> = BTreeMap::new();
        for ping in &file.pings {
            let sent_unix_ns = ping.intended_unix_ns;
            let files_begun = files.partition_point(|raw| raw.started_unix_ns() <= sent_unix_ns);
            match files_begun.checked_sub(1) {
                Some(index)
                    if sent_unix_ns <= ends_unix_ns[index].saturating_add(MAX_PING_DELAY_NANOS) =>
                {
                    pings_during.entry(index).or_default().push(*ping);
                }
                _ => {
                    let next = files.get(files_begun).or_else(|| files.last());
                    pings_between.push(ping_between(file, ping, next.map_or(0, block)));
                }
            }
        }
        for (index, pings) in pings_during {
            flows[index].push(PingFlow { file, pings });
        }
    }
    (flows, pings_between)
}

/// A ping outside of all steps; `block` is that of the next step.
fn ping_between(file: &PingFile, ping: &Ping, block: u32) -> PingBetween {
    let received_unix_ns = ping.received_unix_ns;
    PingBetween {
        block,
        name: file.name.clone(),
        address: file.address,
        sent: Wall::from_unix_nanos(ping.intended_unix_ns),
        outcome: received_unix_ns.map_or(Outcome::Lost, |_| Outcome::Reply),
        round_trip: received_unix_ns
            .map(|unix_ns| Span::from_nanos(unix_ns - ping.intended_unix_ns)),
    }
}

/// Assigns positions within blocks and attempts of a scenario, in order of time.
#[derive(Default)]
struct PositionCounter {
    positions: BTreeMap<u32, u32>,
    attempts: BTreeMap<(u32, ScenarioId), u32>,
}

impl PositionCounter {
    fn assign(&mut self, experiment: &mut Experiment) {
        let position = self.positions.entry(experiment.block).or_default();
        experiment.position = *position;
        *position += 1;
        let key = (experiment.block, experiment.scenario);
        let attempt = self.attempts.entry(key).or_default();
        experiment.attempt = *attempt;
        *attempt += 1;
    }
}

fn experiment(
    file: &RawFile,
    imported_settings: &ImportedSettings,
    campaign: CampaignId,
    scenario: ScenarioId,
) -> Experiment {
    let count = file.messages.len() as u64;
    let reordered = file.messages.iter().filter(|message| message.reordered);
    let unspecified_address = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let endpoint = imported_settings.endpoint_of(&file.name);
    let started = Wall::from_unix_nanos(file.started_unix_ns());
    Experiment {
        block: block(file),
        status: ExperimentStatus::Complete,
        ended: Some(Wall::from_unix_nanos(file.ended_unix_ns())),
        flows: vec![Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Ws,
            name: endpoint.map_or_else(
                || file.name.endpoint.clone(),
                |endpoint| endpoint.name.clone(),
            ),
            source: imported_settings
                .source_port
                .map(|port| unspecified_address(port.get())),
            target: address(&file.name, endpoint).unwrap_or_else(|| unspecified_address(0)),
            reflector: false,
            same_clock: false,
        }],
        tally: Tally {
            messages: count,
            replies: count,
            reordered: reordered.count() as u64,
            ..Tally::default()
        },
        anchors: vec![(0, file.started_unix_ns())],
        ..Experiment::new(campaign, scenario, started)
    }
}

fn ping_index(index: usize) -> FlowIndex {
    FlowIndex(u32::try_from(index + 1).expect("fewer ping files than 4 billion"))
}

fn ping_flow(index: usize, flow: &PingFlow<'_>) -> Flow {
    Flow {
        index: ping_index(index),
        role: FlowRole::PingDestination,
        probe: ProbeKind::Icmp,
        name: flow.file.name.clone(),
        source: None,
        target: SocketAddr::new(flow.file.address, 0),
        reflector: false,
        same_clock: false,
    }
}

fn store_experiment(
    store: &mut dyn Store,
    file: &RawFile,
    flows: &[PingFlow<'_>],
    experiment: &Experiment,
    plan_hash: &str,
) -> Result<ImportedExperiment, StoreError> {
    let started_unix_ns = file.started_unix_ns();
    let main_messages = (0..)
        .zip(&file.messages)
        .map(|(seq, message)| raw_message(seq, message, started_unix_ns));
    let ping_messages = flows.iter().enumerate().flat_map(|(index, flow)| {
        let flow_index = ping_index(index);
        (0..)
            .zip(&flow.pings)
            .map(move |(seq, ping)| ping_message(flow_index, Seq(seq), ping, started_unix_ns))
    });
    let messages: Vec<Message> = main_messages.chain(ping_messages).collect();
    let mut recorder = store.begin(experiment)?;
    for batch in messages.chunks(BATCH_MESSAGES) {
        recorder.messages(batch)?;
    }
    for segment in &file.retransmissions {
        recorder.event(&Event {
            flow: FlowIndex(0),
            at: segment.at_unix_ns - started_unix_ns,
            kind: EventKind::Retransmitted,
            text: segment.text.clone(),
        })?;
    }
    for row in &file.tcp_rows {
        for (field, value) in &row.values {
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
            let value = *value as f64;
            recorder.sample(&Sample {
                series: SeriesName::Tcp(*field),
                at: row.at_unix_ns - started_unix_ns,
                value,
            })?;
        }
    }
    let provenance = provenance(experiment, file, plan_hash);
    store.finish(recorder, experiment, &provenance)?;
    let acknowledged = file
        .messages
        .iter()
        .filter(|message| message.acknowledgement.is_some())
        .count();
    Ok(ImportedExperiment {
        id: experiment.id,
        path: file.path.clone(),
        messages: file.messages.len() as u64,
        acknowledged: acknowledged as u64,
        retransmissions: file.retransmissions.len() as u64,
        pings: flows.iter().map(|flow| flow.pings.len() as u64).sum(),
        tcp_rows: file.tcp_rows.len() as u64,
    })
}
