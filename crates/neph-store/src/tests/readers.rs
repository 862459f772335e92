//! Other programs can read the store as `docs/schema.md` describes it.

use std::path::Path;
use std::process::Command;

use super::embedded;
use crate::Access;
use crate::contract::prepared;
use crate::contract::values::{fleet_messages, message, provenance};
use neph_model::{ExperimentStatus, Message};

/// Exit code of `readers.py` if a library is missing.
const MISSING_LIBRARY_EXIT_CODE: i32 = 77;

/// The interpreter. `NEPH_PYTHON` selects one that has pandas, pyarrow and duckdb.
fn python() -> String {
    std::env::var("NEPH_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn skip(reason: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "skipped in CI: {reason}"
    );
    println!("SKIP duckdb_and_pandas_read_the_store_as_the_page_shows: {reason}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
fn duckdb_and_pandas_read_the_store_as_the_page_shows() {
    let location = embedded();
    let (mut store, mut experiment) = prepared(&location);
    let messages: Vec<Message> = (0..1_000).map(|seq| message(0, seq)).collect();
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&messages).expect("recorded");
    recorder.fleet(&fleet_messages(0..1_000)).expect("recorded");
    experiment.status = ExperimentStatus::Complete;
    store
        .finish(recorder, &experiment, &provenance(experiment.id))
        .expect("finished");
    drop(store);
    location.open(Access::Read);

    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let result = Command::new(python())
        .arg(crate_folder.join("tests/readers.py"))
        .arg(crate_folder.join("../../docs/schema.md"))
        .arg(location.url.trim_start_matches("file://"))
        .arg(experiment.id.to_string())
        .output();
    let output = match result {
        Ok(output) => output,
        Err(error) => return skip(&format!("no {}: {error}", python())),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(MISSING_LIBRARY_EXIT_CODE) {
        return skip(stdout.trim());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(
        stdout.contains("duckdb and pandas agree on 1000 messages"),
        "{stdout}"
    );
}
