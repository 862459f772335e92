//! A process that records is killed with SIGKILL; what it was told to be safe must be there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use neph_model::{ExperimentId, ExperimentStatus, FleetMessage, Message, Wall};
use neph_store::{Access, SentWithin};

use crate::values::{campaign, experiment, fleet_message, message, provenance, scenario};
use crate::{Place, each};

/// How many times a child is killed, each time somewhere else.
const KILLS: usize = 24;
/// Messages of an experiment; it is finished behind them and the next one begins.
const MESSAGES: u64 = 40;
/// Messages given at once.
const BATCH: u64 = 4;
const STORE: &str = "NEPH_STORE_TEST_CHILD";

/// Messages of the fleet that come with a batch: together an hour, so that segments close.
fn fleet_of(batch: u64) -> Vec<FleetMessage> {
    let first = u32::try_from(batch).expect("small") * 16_000;
    (first..first + 16_000)
        .step_by(400)
        .map(fleet_message)
        .collect()
}

/// Not a test: what the killed process runs.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn child_that_records_until_it_is_killed() {
    let Ok(url) = std::env::var(STORE) else {
        return;
    };
    let mut store = neph_store::open(&url, Access::Write).expect("a free store");
    let campaign = campaign();
    store
        .add_campaign(&campaign, &[scenario(0)])
        .expect("added");
    let mut out = std::io::stdout();
    loop {
        let mut experiment = experiment(campaign.id);
        let mut recorder = store.begin(&experiment).expect("begun");
        for batch in 0..MESSAGES / BATCH {
            let messages: Vec<Message> = (batch * BATCH..(batch + 1) * BATCH)
                .map(|seq| message(0, seq))
                .collect();
            recorder.messages(&messages).expect("recorded");
            recorder.fleet(&fleet_of(batch)).expect("recorded");
            let safe = (batch + 1) * BATCH;
            writeln!(out, "\nsafe {} {safe}", experiment.id).expect("a parent that listens");
        }
        experiment.status = ExperimentStatus::Complete;
        experiment.ended = Some(Wall::from_unix_nanos(1));
        store
            .finish(recorder, &experiment, &provenance(experiment.id))
            .expect("finished");
        writeln!(out, "\nfinished {} {MESSAGES}", experiment.id).expect("a parent that listens");
    }
}

/// What the child said: messages that are safe, and whether the experiment was finished.
type Said = BTreeMap<ExperimentId, (u64, bool)>;

fn record_and_kill(place: &Place, after_lines: usize) -> Said {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "kill::child_that_records_until_it_is_killed"])
        .args(["--ignored", "--nocapture"])
        .env(STORE, &place.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut said = Said::new();
    let mut heard = 0;
    for line in lines {
        let line = line.expect("text");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [what @ ("safe" | "finished"), id, count] = words[..] else {
            continue;
        };
        // The last line may be torn in the middle of a number: then it was not said.
        let (Ok(id), Ok(count)) = (id.parse(), count.parse()) else {
            continue;
        };
        said.insert(id, (count, what == "finished"));
        heard += 1;
        if heard == after_lines {
            child.kill().expect("alive until now");
        }
    }
    child.wait().expect("ended");
    assert!(
        heard >= after_lines,
        "the child ended by itself after {heard} lines"
    );
    said
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    each(|place| {
        for kill in 0..KILLS {
            // From the first record to the end of the third experiment.
            let said = record_and_kill(place, 1 + kill * 33 / KILLS);
            let mut store = place.open(Access::Write);
            store.recover().expect("recovered");
            for (id, (safe, finished)) in said {
                let found = store.messages(id).expect("there");
                let count = found.len() as u64;
                assert!(
                    (safe..=safe + BATCH).contains(&count),
                    "{count} found, {safe} acknowledged"
                );
                let expected: Vec<Message> = (0..count).map(|seq| message(0, seq)).collect();
                assert_eq!(found, expected);
                let mut fleet = Vec::new();
                let mut take = |batch: &[FleetMessage]| {
                    fleet.extend_from_slice(batch);
                    Ok(())
                };
                store
                    .visit_fleet(id, SentWithin::ALL, &mut take)
                    .expect("there");
                let written: Vec<FleetMessage> = (0..MESSAGES / BATCH).flat_map(fleet_of).collect();
                assert_eq!(fleet, written[..fleet.len()]);
                let least = usize::try_from(safe / BATCH).expect("few") * 40;
                assert!(
                    fleet.len() >= least,
                    "{} found, {least} acknowledged",
                    fleet.len()
                );
                if finished {
                    assert!(store.provenance(id).expect("readable").is_some());
                }
            }
            for campaign in store.campaigns().expect("readable") {
                for found in store.experiments(campaign.id).expect("readable") {
                    assert_ne!(found.status, ExperimentStatus::Running);
                }
            }
        }
    });
}
