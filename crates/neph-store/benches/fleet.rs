//! Benchmarks fleet storage: recording time, bytes on disk and peak memory.
//!
//! `cargo bench -p neph-store --bench fleet [-- MESSAGES]` records two fleets. The first has 512
//! flows on four paths with 5 messages a second each, in 20 calls a second. The second has 50,000
//! flows with one message a second each. Prints messages per second (begin, closing of segments and
//! finish included), the longest call, bytes per message and peak memory.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
#![expect(clippy::cast_precision_loss, reason = "rates for people")]
#![expect(clippy::unwrap_used, reason = "a benchmark may end at the first error")]

mod made_up;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant as Clock};

use made_up::{Noise, campaign, provenance};
use neph_model::{
    CampaignId, Experiment, ExperimentStatus, Fleet, FleetEndpoint, FleetMessage, FleetOutcome,
    FleetReply, Instant, PeerReport, ProbeKind, ReadBy, Slot, Span,
};
use neph_store::{Access, open};

/// Recorder calls per second: a call has the messages of 50 ms.
const CALLS_A_SECOND: i64 = 20;

fn main() {
    // Cargo passes `--bench`; a number is the message count.
    let count = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(3_000_000);
    for (slots, interval) in [(512, 200), (50_000, 1_000)] {
        measure(count, slots, Span::from_millis(interval));
    }
}

fn measure(count: u64, slots: u32, interval: Span) {
    let folder = tempfile::tempdir().unwrap();
    let start = Clock::now();
    let (generation_time, longest) = record(folder.path(), count, (slots, interval));
    let took = start.elapsed().saturating_sub(generation_time);
    let bytes = disk_usage(&folder.path().join("messages"));
    println!(
        "{slots:>6} flows every {interval}: {:>9.0} messages/s, longest call {:.1} ms, \
         {:.1} bytes/message, {} in memory at the most",
        count as f64 / took.as_secs_f64(),
        longest.as_secs_f64() * 1e3,
        bytes as f64 / count as f64,
        peak_memory()
    );
}

/// The `number`th message. Slots alternate; their paths are 0, 2, 4.5 and 8 ms longer than the
/// first. Jitter is 150 us in each direction, loss 0.1 %.
fn message(number: u64, (slots, gap): (u64, i64), noise: &mut Noise) -> FleetMessage {
    let slot = number % slots;
    let path = [0, 2_000_000, 4_500_000, 8_000_000][(slot * 7 % 4) as usize];
    let lateness = 200 + noise.below(20_000);
    let sent = i64::try_from(number).unwrap() * gap + lateness + noise.below(6_000);
    let residence = 15_000 + noise.below(30_000);
    let forward_ns = 35_000_000 + path + noise.below(150_000);
    let seq = u32::try_from(number / slots).unwrap();
    let reply = FleetReply {
        round_trip: Span::from_nanos(forward_ns + residence + 35_000_000 + noise.below(150_000)),
        read_by: ReadBy::Kernel,
        peer_report: Some(PeerReport {
            rx: Instant::from_nanos(sent + forward_ns + 77_000_000_000),
            residence: Span::from_nanos(residence),
            count: Some(seq),
            ttl: Some(64),
        }),
        ttl: Some(64),
        copies: 0,
        answer: None,
    };
    FleetMessage {
        slot: Slot(u32::try_from(slot).unwrap()),
        source_port: u16::try_from(10_000 + slot).unwrap(),
        seq,
        sent: Instant::from_nanos(sent),
        late: Span::from_nanos(lateness),
        outcome: match noise.below(1000) {
            0 => FleetOutcome::Lost,
            _ => FleetOutcome::Reply(reply),
        },
    }
}

/// Returns the time to generate the messages, and the longest recorder call.
fn record(folder: &Path, count: u64, (slots, interval): (u32, Span)) -> (Duration, Duration) {
    let mut store = open(&folder.to_string_lossy(), Access::Write).unwrap();
    let campaign = campaign();
    store.add_campaign(&campaign, &[]).unwrap();
    let mut experiment = experiment(campaign.id, (slots, interval));
    let mut recorder = store.begin(&experiment).unwrap();
    let gap = interval.nanos() / i64::from(slots);
    let batch = u64::try_from(1_000_000_000 / gap / CALLS_A_SECOND).unwrap();
    let (mut noise, mut generation_time, mut longest) = (Noise(7), Duration::ZERO, Duration::ZERO);
    let mut number = 0;
    while number < count {
        let before = Clock::now();
        let until = (number + batch).min(count);
        let fleet_size = (u64::from(slots), gap);
        let messages: Vec<FleetMessage> = (number..until)
            .map(|number| message(number, fleet_size, &mut noise))
            .collect();
        number = until;
        generation_time += before.elapsed();
        let before = Clock::now();
        recorder.fleet(&messages).unwrap();
        longest = longest.max(before.elapsed());
    }
    experiment.status = ExperimentStatus::Complete;
    let facts = provenance(experiment.id);
    store.finish(recorder, &experiment, &facts).unwrap();
    (generation_time, longest)
}

fn disk_usage(path: &Path) -> u64 {
    let metadata = fs::metadata(path).unwrap();
    if metadata.is_file() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).unwrap();
    entries
        .map(|entry| disk_usage(&entry.unwrap().path()))
        .sum()
}

/// Peak resident set of this process, as the kernel reports it.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak_line = status.lines().find(|line| line.starts_with("VmHWM:"));
    peak_line.map_or_else(String::new, |line| line[6..].trim().to_owned())
}

fn experiment(campaign: CampaignId, (slots, interval): (u32, Span)) -> Experiment {
    Experiment {
        fleet: Some(Fleet {
            probe: ProbeKind::Udp,
            slots,
            endpoints: vec![FleetEndpoint {
                name: "far".to_owned(),
                address: ([192, 0, 2, 1], 862).into(),
            }],
            interval,
            lifetime: None,
            criteria: None,
        }),
        ..made_up::experiment(campaign)
    }
}
