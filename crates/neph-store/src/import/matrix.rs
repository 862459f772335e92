//! The campaign and its scenarios, from the names of the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use neph_model::{ByteSize, Campaign, ProbeKind, Scenario, ScenarioId, Span, Wall};
use sha2::{Digest, Sha256};

use super::raw::RawFile;

/// The campaign that the folder is; its plan is the settings file's text.
pub(super) fn campaign(
    (folder, settings): (&Path, Option<(PathBuf, String)>),
    files: &[RawFile],
) -> Campaign {
    let (path, text) = settings.unwrap_or_else(|| (folder.to_owned(), String::new()));
    let blocks = files.iter().map(block).max().unwrap_or(0) + 1;
    let started = files.iter().map(RawFile::started).min().unwrap_or(0);
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    Campaign {
        plan_hash: plan_hash(&text),
        plan_text: text,
        plan_path: path.display().to_string(),
        blocks,
        ..Campaign::begun(&name.to_string_lossy(), Wall::from_unix_nanos(started))
    }
}

/// Empty where there are no settings: the hash of nothing would pass for that of a plan.
fn plan_hash(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

/// Runs count from 1; a file that tells none is of the first.
pub(super) fn block(file: &RawFile) -> u32 {
    file.name.run.unwrap_or(1).saturating_sub(1)
}

/// The matrix: each scenario once, by endpoint, interval and size.
pub(super) fn scenarios(files: &[RawFile]) -> Vec<Scenario> {
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

pub(super) fn scenario_of(file: &RawFile) -> Scenario {
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
    let told = file.name.interval.map(|_| interval.nanos());
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
