//! Benchmarks one and four concurrent writers.
//!
//! `cargo bench -p neph-store --bench writers` records and finishes short experiments (the catalog
//! dominates) and long ones (the columns dominate), with one writer and with four. Prints messages
//! and experiments per second of all writers together, and the longest `begin`.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]
#![expect(clippy::cast_precision_loss, reason = "rates for people")]
#![expect(clippy::unwrap_used, reason = "a benchmark may end at the first error")]

mod made_up;

use std::thread;
use std::time::{Duration, Instant as Clock};

use made_up::{Noise, campaign, experiment, provenance};
use neph_model::{CampaignId, ExperimentStatus, FlowIndex, Instant, Marks, Message, Outcome, Seq};
use neph_store::{Access, Store, open};

/// Messages per recorder call.
const BATCH: usize = 100;

/// The work of each writer.
#[derive(Clone, Copy)]
struct Work {
    name: &'static str,
    experiments: usize,
    messages: u64,
}

const WORK: [Work; 2] = [
    Work {
        name: "short",
        experiments: 60,
        messages: 300,
    },
    Work {
        name: "long",
        experiments: 2,
        messages: 300_000,
    },
];

fn main() {
    for work in WORK {
        for writers in [1, 4] {
            measure(work, writers);
        }
    }
}

fn measure(work: Work, writers: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(&folder.path().to_string_lossy(), Access::Write).unwrap();
    let campaign = campaign();
    store.add_campaign(&campaign, &[]).unwrap();
    let messages = messages(work.messages);
    let handles = handles(store, writers);
    let begun = Clock::now();
    let longest = thread::scope(|scope| {
        let start = |mut handle: Box<dyn Store>| {
            let messages = &messages;
            let measure_one = move |_| record(handle.as_mut(), campaign.id, messages);
            scope.spawn(move || (0..work.experiments).map(measure_one).max())
        };
        let threads: Vec<_> = handles.into_iter().map(start).collect();
        let durations = threads.into_iter().map(|thread| thread.join().unwrap());
        durations.max().flatten().unwrap()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let experiments = (work.experiments * writers) as f64;
    println!(
        "{:5} {writers} writers: {:>9.0} messages/s {:>7.1} experiments/s, longest begin {:.1} ms",
        work.name,
        experiments * work.messages as f64 / seconds,
        experiments / seconds,
        longest.as_secs_f64() * 1e3
    );
}

/// One handle per writer.
fn handles(store: Box<dyn Store>, writers: usize) -> Vec<Box<dyn Store>> {
    let mut handles: Vec<_> = (1..writers).map(|_| store.handle().unwrap()).collect();
    handles.push(store);
    handles
}

/// Returns the duration of `begin`.
fn record(store: &mut dyn Store, campaign: CampaignId, messages: &[Message]) -> Duration {
    let mut experiment = experiment(campaign);
    let requested = Clock::now();
    let mut recorder = store.begin(&experiment).unwrap();
    let took = requested.elapsed();
    for batch in messages.chunks(BATCH) {
        recorder.messages(batch).unwrap();
    }
    experiment.status = ExperimentStatus::Complete;
    let facts = provenance(experiment.id);
    store.finish(recorder, &experiment, &facts).unwrap();
    took
}

fn messages(count: u64) -> Vec<Message> {
    let mut noise = Noise(7);
    let message = |seq| {
        let intended = i64::try_from(seq).unwrap() * 1_000_000;
        let mut at = intended;
        let mut next = |minimum: i64, spread: i64| {
            at += minimum + noise.below(spread);
            Some(Instant::from_nanos(at))
        };
        let mut marks = Marks::intended_at(Instant::from_nanos(intended));
        marks.app_send = next(200, 3_000);
        marks.nic_tx = next(4_000, 3_000);
        marks.acked = next(4_000_000, 60_000);
        marks.nic_rx = next(1_000, 9_000);
        marks.app_recv = next(5_000, 20_000);
        let mut message = Message::new(FlowIndex(0), Seq(seq), marks);
        message.outcome = Outcome::Reply;
        message
    };
    (0..count).map(message).collect()
}
