//! Builds the campaign and its scenarios from the names of the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use neph_model::{
    ByteSize, Campaign, Known, Parameter, Parameters, ProbeKind, Scenario, ScenarioId, Span,
    Targets, Unknown, Wall,
};
use sha2::{Digest, Sha256};

use super::raw::RawFile;
use super::settings::{ImportedEndpoint, ImportedSettings};

/// The campaign of the folder; its plan is the settings file's text.
pub(super) fn campaign(
    folder: &Path,
    settings: Option<(PathBuf, String)>,
    files: &[RawFile],
) -> Campaign {
    let (path, text) = settings.unwrap_or_else(|| (folder.to_owned(), String::new()));
    let blocks = files.iter().map(block).max().unwrap_or(0) + 1;
    let started_unix_ns = files
        .iter()
        .map(RawFile::started_unix_ns)
        .min()
        .unwrap_or(0);
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    Campaign {
        plan_hash: plan_hash(&text),
        plan_text: text,
        plan_path: path.display().to_string(),
        blocks,
        ..Campaign::new(
            &name.to_string_lossy(),
            Wall::from_unix_nanos(started_unix_ns),
        )
    }
}

/// Empty without settings: the hash of an empty text would look like that of a plan.
fn plan_hash(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        hex.push_str(&format!("{byte:02x}"));
        hex
    })
}

/// Runs count from 1; a file without a run belongs to the first.
pub(super) fn block(file: &RawFile) -> u32 {
    file.name.run.unwrap_or(1).saturating_sub(1)
}

/// The matrix: each scenario once, by endpoint, interval and size.
pub(super) fn scenarios(files: &[RawFile], settings: &ImportedSettings) -> Vec<Scenario> {
    let mut by_key: BTreeMap<_, Scenario> = BTreeMap::new();
    for file in files {
        let scenario = scenario_of(file, settings);
        let key = (
            scenario.endpoint.clone(),
            scenario.interval,
            scenario.request_size,
        );
        let count = file.messages.len() as u64;
        let stored_scenario = by_key.entry(key).or_insert(scenario);
        stored_scenario.messages = stored_scenario.messages.max(count);
    }
    let mut scenarios: Vec<_> = by_key.into_values().collect();
    for (index, scenario) in (0..).zip(&mut scenarios) {
        scenario.index = index;
    }
    scenarios
}

/// The scenario of a file. A value in neither its name nor the settings is `unknown`.
pub(super) fn scenario_of(file: &RawFile, settings: &ImportedSettings) -> Scenario {
    let known_endpoint = settings.endpoint_of(&file.name);
    let request_size = file.name.request_bytes.map(ByteSize);
    let request_size = request_size.or(settings.request_size);
    let interval = Span::from_nanos(file.interval_ns());
    let endpoint = known_endpoint.map_or_else(
        || file.name.endpoint.clone(),
        |endpoint| endpoint.name.clone(),
    );
    Scenario {
        id: scenario_id(file, &endpoint, request_size),
        index: 0,
        target: Targets::read(
            &known_endpoint.map_or_else(|| endpoint.clone(), ImportedEndpoint::target),
            ProbeKind::Ws,
        ),
        endpoint,
        interval,
        request_size: request_size.unwrap_or(ByteSize(0)),
        response_size: settings.response_size.unwrap_or(ByteSize(0)),
        messages: 0,
        parameters: parameters(request_size, settings, known_endpoint.is_some()),
        varied: Vec::new(),
    }
}

fn parameters(
    request_size: Option<ByteSize>,
    settings: &ImportedSettings,
    is_tls_known: bool,
) -> Parameters {
    let mut parameters = Parameters::from([Parameter::Imported("latency-tester".to_owned())]);
    if request_size.is_none() {
        parameters.insert(Parameter::RequestSize(Unknown));
    }
    if settings.response_size.is_none() {
        parameters.insert(Parameter::ResponseSize(Unknown.to_string()));
    }
    if !is_tls_known {
        parameters.insert(Parameter::Tls(Known::Unknown));
    }
    parameters.extend(settings.source_port.map(Parameter::SourcePort));
    parameters
}

fn scenario_id(file: &RawFile, endpoint: &str, request_size: Option<ByteSize>) -> ScenarioId {
    // A file name without an interval is a scenario by its name alone.
    let interval = file.name.interval.map(Span::nanos);
    let bytes = request_size.map_or(0, ByteSize::bytes);
    let canonical = format!("latency-tester\n{endpoint}\n{interval:?}\n{bytes}");
    let digest: [u8; 32] = Sha256::digest(canonical.as_bytes()).into();
    let (id_bytes, _) = digest
        .split_first_chunk()
        .expect("a digest is longer than 8 bytes");
    ScenarioId(u64::from_be_bytes(*id_bytes))
}
