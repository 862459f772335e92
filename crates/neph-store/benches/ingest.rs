//! Benchmarks message storage against SQLite rows and a CSV file.
//!
//! `cargo bench -p neph-store --bench ingest [-- MESSAGES]` prints messages per second (begin,
//! batches of 1000 and finish included) and bytes per message on disk. The peers have their usual
//! durability. SQLite has one transaction per batch (WAL, synchronous NORMAL), the CSV file one
//! write per batch and one sync at the end.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
#![expect(clippy::cast_precision_loss, reason = "rates for people")]
#![expect(clippy::unwrap_used, reason = "a benchmark may end at the first error")]

mod made_up;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant as Clock};

use made_up::{Noise, campaign, provenance};
use neph_model::{
    CampaignId, Experiment, ExperimentStatus, Flow, FlowIndex, FlowRole, Instant, Marks, Message,
    Outcome, ProbeKind, Recorder, Seq, TcpState,
};
use neph_store::{Access, open};

const BATCH: usize = 1000;

fn main() {
    // Cargo passes `--bench`; a number is the message count.
    let count = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(2_000_000);
    let folder = tempfile::tempdir().unwrap();
    let messages = messages(count);
    let store = measure("neph store", &messages, || {
        into_store(folder.path(), &messages)
    });
    let rows = measure("sqlite rows", &messages, || {
        into_sqlite(folder.path(), &messages)
    });
    let csv = measure("csv file", &messages, || into_csv(folder.path(), &messages));
    println!(
        "neph store / sqlite rows: {:.2} x the speed, {:.2} x the bytes",
        store.0 / rows.0,
        store.1 / rows.1
    );
    println!(
        "neph store / csv file:    {:.2} x the speed, {:.2} x the bytes",
        store.0 / csv.0,
        store.1 / csv.1
    );
}

/// Messages per second and bytes per message of one storage method.
fn measure(
    name: &str,
    messages: &[Message],
    store_messages: impl FnOnce() -> (Duration, u64),
) -> (f64, f64) {
    let (took, bytes) = store_messages();
    let rate = messages.len() as f64 / took.as_secs_f64();
    let size = bytes as f64 / messages.len() as f64;
    println!("{name:12} {rate:>10.0} messages/s  {size:>6.1} bytes/message");
    (rate, size)
}

/// A WebSocket flow: 10,000 messages a second, RTT 4 ms, every timestamp and both TCP states.
fn messages(count: u64) -> Vec<Message> {
    let mut noise = Noise(7);
    (0..count)
        .map(|seq| {
            let intended = i64::try_from(seq).unwrap() * 100_000;
            let mut at = intended;
            let mut next = |minimum: i64, spread: i64, noise: &mut Noise| {
                at += minimum + noise.below(spread);
                Some(Instant::from_nanos(at))
            };
            let mut marks = Marks::intended_at(Instant::from_nanos(intended));
            marks.app_send = next(200, 3_000, &mut noise);
            marks.queued = next(4_000, 3_000, &mut noise);
            marks.nic_tx = next(300, 400, &mut noise);
            marks.acked = next(4_000_000, 60_000, &mut noise);
            marks.nic_rx = next(1_000, 9_000, &mut noise);
            marks.app_recv = next(5_000, 20_000, &mut noise);
            let mut peer = intended + 77_000_000_000;
            let mut forward_time = |minimum: i64, spread: i64, noise: &mut Noise| {
                peer += minimum + noise.below(spread);
                Some(Instant::from_nanos(peer))
            };
            marks.peer.rx = forward_time(2_000_000, 30_000, &mut noise);
            marks.peer.app_rx = forward_time(5_000, 10_000, &mut noise);
            marks.peer.app_tx = forward_time(1_000, 4_000, &mut noise);
            marks.peer.nic_tx = forward_time(3_000, 4_000, &mut noise);
            let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
            message.outcome = Outcome::Reply;
            message.peer_wall_offset = Some(1_700_000_000_000_000_000);
            message.tcp_at_send = Some(tcp(&mut noise));
            message.tcp_at_ack = Some(tcp(&mut noise));
            message
        })
        .collect()
}

fn tcp(noise: &mut Noise) -> TcpState {
    let mut value =
        |minimum: u32, spread: i64| minimum + u32::try_from(noise.below(spread)).unwrap();
    TcpState {
        cwnd: value(10, 4),
        ssthresh: u32::MAX,
        srtt_us: value(4_000, 60),
        min_rtt_us: 4_000,
        retransmissions: 0,
        dsack_duplicates: 0,
        delivery_rate: u64::from(value(1_000_000, 100_000)),
    }
}

fn into_store(folder: &Path, messages: &[Message]) -> (Duration, u64) {
    let root = folder.join("ws");
    let mut store = open(&root.to_string_lossy(), Access::Write).unwrap();
    let campaign = campaign();
    let mut experiment = experiment(campaign.id);
    store.add_campaign(&campaign, &[]).unwrap();
    let start = Clock::now();
    let mut recorder: Box<dyn Recorder> = store.begin(&experiment).unwrap();
    for batch in messages.chunks(BATCH) {
        recorder.messages(batch).unwrap();
    }
    let recording = start.elapsed();
    experiment.status = ExperimentStatus::Complete;
    store
        .finish(recorder, &experiment, &provenance(experiment.id))
        .unwrap();
    let took = start.elapsed();
    println!(
        "(recording {:.2} s, finishing {:.2} s)",
        recording.as_secs_f64(),
        took.saturating_sub(recording).as_secs_f64()
    );
    let file = root.join(format!("messages/{}.parquet", experiment.id));
    (took, fs::metadata(file).unwrap().len())
}

fn experiment(campaign: CampaignId) -> Experiment {
    Experiment {
        flows: vec![Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Ws,
            name: "metro".to_owned(),
            source: None,
            target: "10.0.0.1:8080".parse().unwrap(),
            reflector: true,
            same_clock: false,
        }],
        ..made_up::experiment(campaign)
    }
}

/// A message as a row of both peers.
fn row(message: &Message) -> [Option<i64>; 28] {
    let marks = &message.marks;
    let instant = |at: Option<Instant<neph_model::Local>>| at.map(Instant::nanos);
    let peer = |at: Option<Instant<neph_model::Peer>>| at.map(Instant::nanos);
    let [send, ack] = [message.tcp_at_send, message.tcp_at_ack].map(|state| {
        let state = state.unwrap();
        [
            Some(i64::from(state.cwnd)),
            Some(i64::from(state.ssthresh)),
            Some(i64::from(state.srtt_us)),
            Some(i64::from(state.min_rtt_us)),
            Some(i64::from(state.retransmissions)),
            Some(i64::try_from(state.delivery_rate).unwrap()),
        ]
    });
    let mut cells = [None; 28];
    cells[..16].copy_from_slice(&[
        Some(i64::from(message.flow.0)),
        Some(i64::try_from(message.seq.0).unwrap()),
        Some(message.outcome as i64),
        Some(marks.intended.nanos()),
        instant(marks.app_send),
        instant(marks.queued),
        instant(marks.nic_tx),
        instant(marks.acked),
        peer(marks.peer.rx),
        peer(marks.peer.app_rx),
        peer(marks.peer.app_tx),
        peer(marks.peer.nic_tx),
        instant(marks.nic_rx),
        instant(marks.app_recv),
        message.peer_wall_offset,
        Some(i64::from(message.connection)),
    ]);
    cells[16..22].copy_from_slice(&send);
    cells[22..].copy_from_slice(&ack);
    cells
}

fn into_sqlite(folder: &Path, messages: &[Message]) -> (Duration, u64) {
    let path = folder.join("rows.sqlite");
    let columns: Vec<_> = (0..28).map(|at| format!("c{at} INTEGER")).collect();
    let places: Vec<_> = (1..=28).map(|at| format!("?{at}")).collect();
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE messages ({});",
            columns.join(", ")
        ))
        .unwrap();
    let insert = format!("INSERT INTO messages VALUES ({})", places.join(", "));
    let start = Clock::now();
    for batch in messages.chunks(BATCH) {
        let transaction = connection.transaction().unwrap();
        let mut statement = transaction.prepare_cached(&insert).unwrap();
        for message in batch {
            statement.execute(row(message)).unwrap();
        }
        drop(statement);
        transaction.commit().unwrap();
    }
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    (start.elapsed(), fs::metadata(path).unwrap().len())
}

fn into_csv(folder: &Path, messages: &[Message]) -> (Duration, u64) {
    let path = folder.join("messages.csv");
    let start = Clock::now();
    let mut file = File::create(&path).unwrap();
    let mut text = Vec::new();
    for batch in messages.chunks(BATCH) {
        text.clear();
        for message in batch {
            for cell in row(message) {
                if let Some(value) = cell {
                    write!(text, "{value}").unwrap();
                }
                text.push(b',');
            }
            text.push(b'\n');
        }
        file.write_all(&text).unwrap();
    }
    file.sync_all().unwrap();
    (start.elapsed(), fs::metadata(path).unwrap().len())
}
