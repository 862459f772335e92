//! A Latency Tester's output folder. Whatever the files hold, it is imported or has no message; what
//! is recorded is what the report counts, each message once. The input's lines up to the first zero
//! byte name the raw-data file; further zero bytes part the files.
#![no_main]

use std::collections::BTreeSet;
use std::fs;

use libfuzzer_sys::fuzz_target;
use neph_model::FlowIndex;
use neph_store::{StoreError, import_latency_tester};

#[path = "../checks/folder.rs"]
mod folder;
#[path = "../checks/recording_store.rs"]
mod recording_store;

const NAMES: [&str; 7] = [
    "2-Metro.i25.x64.csv",
    "1-report.csv",
    "ping_Here.txt",
    "settings.yaml",
    "2-iperf_Here.txt",
    "traceroute_2-Metro.i25.x64",
    "tcp-stats_2-Metro.i25.x64.csv",
];

fuzz_target!(|bytes: &[u8]| {
    let folder = folder::path();
    let mut inputs = bytes.splitn(2 + NAMES.len(), |byte| *byte == 0);
    let name = inputs.next().map(file_name).unwrap_or_default();
    let mut written = Vec::new();
    for (input, name) in inputs.zip([name.as_str()].into_iter().chain(NAMES)) {
        let path = folder.join(name);
        fs::write(&path, input).expect("the target's own folder");
        written.push(path);
    }
    import(&folder);
    for path in written {
        // One name twice: the later file took the earlier one's place.
        let _ = fs::remove_file(path);
    }
});

/// A name of a file in one folder, whatever the bytes.
fn file_name(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
    format!("{}.csv", text.replace('/', "_"))
}

fn import(folder: &std::path::Path) {
    let mut store = recording_store::RecordingStore::default();
    let report = match import_latency_tester(&mut store, folder) {
        Ok(report) => report,
        Err(StoreError::NothingToImport { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    assert!(report.problem_count >= report.problems.len() as u64);
    assert_eq!(report.experiments.len(), store.finished.len());
    for (imported, (experiment, messages)) in report.experiments.iter().zip(&store.finished) {
        assert_eq!(imported.id, experiment.id);
        let main_messages = messages
            .iter()
            .filter(|message| message.flow == FlowIndex(0));
        assert_eq!(main_messages.clone().count() as u64, imported.messages);
        assert_eq!(messages.len() as u64, imported.messages + imported.pings);
        assert_eq!(experiment.tally.messages, imported.messages);
        let acknowledged = main_messages
            .filter(|message| message.marks.acked.is_some())
            .count();
        assert_eq!(acknowledged as u64, imported.acknowledged);
        let keys: BTreeSet<_> = messages
            .iter()
            .map(|message| (message.flow, message.seq))
            .collect();
        assert_eq!(keys.len(), messages.len(), "a message twice");
        let flows: BTreeSet<_> = experiment.flows.iter().map(|flow| flow.index).collect();
        assert!(messages.iter().all(|message| flows.contains(&message.flow)));
        for ledger in messages.iter().filter_map(|message| message.ledger()) {
            assert!(ledger.service_time().nanos() >= 0, "{ledger:?}");
        }
    }
}
