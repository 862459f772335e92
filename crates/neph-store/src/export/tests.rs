use std::fs;
use std::path::Path;

use crate::records_for_tests::message;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use neph_model::{
    ByteSize, Campaign, Experiment, ExperimentStatus, Fleet, FleetEndpoint, FleetMessage,
    Parameter, ParameterName, Parameters, ProbeKind, Scenario, ScenarioId, Span, Targets, Wall,
};

use super::*;
use crate::columns::ColumnsReader;
use crate::samples_for_tests::{self as samples, provenance};
use crate::{Access, Store, open};
use neph_text::{Existing, WholeFile};

/// Scenario of both experiments; CSV must quote the endpoint's name.
fn scenario() -> Scenario {
    Scenario {
        id: ScenarioId(7),
        index: 0,
        endpoint: "metro, \"east\"".to_owned(),
        target: Targets::read("ws://10.0.0.1:8080/", ProbeKind::Ws),
        interval: Span::from_micros(2_500),
        request_size: ByteSize(64),
        response_size: ByteSize(64),
        messages: 3,
        parameters: Parameters::from([Parameter::Season("1.3 / strict".to_owned())]),
        varied: vec![ParameterName::Season],
    }
}

/// Two experiments: the second has a lost message and a row without one timestamp.
fn two_experiments() -> (tempfile::TempDir, Box<dyn Store>, Vec<Experiment>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut store = open(&folder.path().to_string_lossy(), Access::Write).expect("free");
    let campaign = Campaign::new("test", Wall::from_unix_nanos(1));
    store.add_campaign(&campaign, &[scenario()]).expect("added");
    let mut lost = message(0, 1);
    lost.outcome = neph_model::Outcome::Lost;
    lost.marks.app_recv = None;
    let mut merged = message(0, 2);
    merged.marks.queued = None;
    let contents = [vec![message(0, 0)], vec![message(0, 0), lost, merged]];
    for (position, messages) in (0..).zip(contents) {
        let mut experiment = samples::experiment();
        experiment.campaign = campaign.id;
        experiment.position = position;
        let mut recorder = store.begin(&experiment).expect("begun");
        recorder.messages(&messages).expect("recorded");
        experiment.status = ExperimentStatus::Complete;
        store
            .finish(recorder, &experiment, &provenance(experiment.id))
            .expect("finished");
    }
    let experiments = store.experiments(campaign.id).expect("readable");
    (folder, store, experiments)
}

/// Those two with a fleet of these messages each, and a third without.
pub(super) fn two_fleets(
    messages: &[FleetMessage],
) -> (tempfile::TempDir, Box<dyn Store>, Vec<Experiment>) {
    let (folder, mut store, mut experiments) = two_experiments();
    let campaign = experiments[0].campaign;
    let mut fleet_experiments = Vec::new();
    for position in 0..2 {
        let mut experiment = samples::experiment();
        (experiment.campaign, experiment.position) = (campaign, position);
        experiment.fleet = Some(Fleet {
            probe: ProbeKind::Udp,
            slots: 4,
            endpoints: vec![FleetEndpoint {
                name: scenario().endpoint,
                address: ([192, 0, 2, 1], 862).into(),
            }],
            interval: Span::from_secs(1),
            lifetime: None,
            criteria: None,
        });
        let mut recorder = store.begin(&experiment).expect("begun");
        recorder.fleet(messages).expect("recorded");
        experiment.status = ExperimentStatus::Complete;
        store
            .finish(recorder, &experiment, &provenance(experiment.id))
            .expect("finished");
        fleet_experiments.push(experiment);
    }
    fleet_experiments.push(experiments.swap_remove(0));
    (folder, store, fleet_experiments)
}

#[test]
fn csv_stages_add_up_in_each_row_and_merged_stages_have_a_column() {
    let (_folder, store, experiments) = two_experiments();
    let mut out = Vec::new();
    let rows = export_csv(store.as_ref(), &experiments, &mut out).expect("written");
    assert_eq!(rows, 4);
    let csv_text = String::from_utf8(out).expect("text");
    let mut lines = csv_text
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    assert!(
        header.contains(&"stage_send_window+send_queue_ns"),
        "{header:?}"
    );
    assert!(header.contains(&"stage_network+peer_send_ns"), "{header:?}");
    let column_index = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .expect(name)
    };
    let mut replies = 0;
    for line in lines {
        // One comma is inside a quoted field.
        assert_eq!(line.len(), header.len() + 1);
        let fields = &line[1..];
        if fields[column_index("outcome")] != "reply" {
            assert_eq!(fields[column_index("response_ns")], "");
            continue;
        }
        replies += 1;
        let stages = header
            .iter()
            .zip(fields)
            .filter(|(name, value)| name.starts_with("stage_") && !value.is_empty());
        let sum: i64 = stages
            .map(|(_, value)| value.parse::<i64>().expect("ns"))
            .sum();
        assert_eq!(sum.to_string(), fields[column_index("response_ns")]);
    }
    assert_eq!(replies, 3);
}

#[test]
fn json_lines_contain_stages_and_omit_absent_values() {
    let (_folder, store, experiments) = two_experiments();
    let mut out = Vec::new();
    export_jsonl(store.as_ref(), &experiments, &mut out).expect("written");
    let lines: Vec<serde_json::Value> = String::from_utf8(out)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3]["stages_ns"]["send_window+send_queue"], 2_200);
    assert_eq!(lines[3]["response_ns"], 47_000);
    assert!(lines[3].get("queued_ns").is_none());
    assert_eq!(lines[2]["outcome"], "lost");
    assert!(lines[2].get("stages_ns").is_none());
}

#[test]
fn a_latency_tester_export_has_its_header_and_columns() {
    let (_folder, store, experiments) = two_experiments();
    let mut out = Vec::new();
    export_latency_tester_csv(store.as_ref(), &experiments[0], &mut out).expect("written");
    let expected = "#client-send-timestamp,server-timestamp,e2e-rtt\n\
                    1700000000000000300,1700000007000002000,0.046700\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

/// Writes the messages to the file at `path`; returns the number of rows.
fn write_parquet(store: &dyn Store, experiments: &[Experiment], path: &Path) -> u64 {
    let out = WholeFile::at(path, Existing::Replace).expect("a place");
    let rows = export_parquet(store, experiments, &out).expect("written");
    out.finish().expect("whole");
    rows
}

#[test]
fn a_parquet_export_contains_one_or_several_experiments() {
    let (folder, store, experiments) = two_experiments();
    let path = folder.path().join("out.parquet");
    let read_rows = |path: &Path| {
        let reader: ColumnsReader = ColumnsReader::open(path).expect("readable").expect("there");
        let groups = 0..reader.row_groups();
        groups
            .flat_map(|group| reader.row_group(group).expect("readable"))
            .collect::<Vec<_>>()
    };
    assert_eq!(write_parquet(store.as_ref(), &experiments, &path), 4);
    let messages: Vec<_> = experiments
        .iter()
        .flat_map(|experiment| store.messages(experiment.id).expect("readable"))
        .collect();
    assert_eq!(read_rows(&path), messages);
    let second_experiment = &experiments[1..];
    assert_eq!(write_parquet(store.as_ref(), second_experiment, &path), 3);
    assert_eq!(
        read_rows(&path),
        store.messages(second_experiment[0].id).expect("readable")
    );
}

/// The same experiments as an aborted first attempt and a complete second one.
fn aborted_and_repeated_experiments() -> (tempfile::TempDir, Box<dyn Store>, Vec<Experiment>) {
    let (folder, store, mut experiments) = two_experiments();
    experiments[0].status = ExperimentStatus::Interrupted;
    experiments[1].attempt = 1;
    (folder, store, experiments)
}

#[test]
fn every_row_names_its_experiment_scenario_and_attempt() {
    let (folder, store, experiments) = aborted_and_repeated_experiments();
    let id = |index: usize| experiments[index].id.to_string();
    let scenario = "metro, \"east\" · every 2.5 ms · 64 B · season 1.3 / strict";

    let mut out = Vec::new();
    export_csv(store.as_ref(), &experiments, &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    assert!(
        text.starts_with("experiment_id,scenario_id,scenario,block,attempt,status,flow,seq,"),
        "{text}"
    );
    let quoted = "\"metro, \"\"east\"\" · every 2.5 ms · 64 B · season 1.3 / strict\"";
    for (line, (index, expected_fields)) in text.lines().skip(1).zip([
        (0, "0,0,interrupted,0,0,reply"),
        (1, "0,1,complete,0,0,reply"),
        (1, "0,1,complete,0,1,lost"),
    ]) {
        let expected_start = format!(
            "{},{},{quoted},{expected_fields},",
            id(index),
            ScenarioId(7)
        );
        assert!(
            line.starts_with(&expected_start),
            "{line}: {expected_start}"
        );
    }

    let mut out = Vec::new();
    export_jsonl(store.as_ref(), &experiments, &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    let first_object: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first_object["scenario"], scenario);
    assert_eq!(
        (&first_object["block"], &first_object["attempt"]),
        (&0.into(), &0.into())
    );
    assert_eq!(first_object["status"], "interrupted");

    // The file of a single experiment has the same columns, so that one reader handles both.
    for selection in [&experiments[..], &experiments[1..]] {
        let path = folder.path().join("out.parquet");
        write_parquet(store.as_ref(), selection, &path);
        let file = fs::File::open(&path).expect("there");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let row = reader.get_row_iter(None).expect("rows").last();
        let row = row.expect("a row").expect("readable").to_string();
        let expected_start = format!(
            "{{experiment_id: \"{}\", scenario_id: \"{}\", scenario: \"{scenario}\", \
             block: 0, attempt: 1, status: \"complete\", flow: 0, seq: 2,",
            id(1),
            ScenarioId(7)
        );
        assert!(row.starts_with(&expected_start), "{row}: {expected_start}");
    }
}

#[test]
fn a_latency_tester_export_separates_attempts_and_statuses() {
    let (folder, store, mut experiments) = aborted_and_repeated_experiments();
    experiments.push(experiments[1].clone());
    let campaign = &store.campaigns().expect("readable")[0];
    let out = folder.path().join("out");
    let rows = export_latency_tester_folder(store.as_ref(), campaign, &experiments, &out);
    assert_eq!(rows.expect("written"), 1 + 2 + 2);
    let name = "1-metro, \"east\"_season-1.3_strict.i2.5.x64.csv";
    for (path, lines) in [
        (format!("raw-data/interrupted/{name}"), 2),
        (format!("raw-data/{name}"), 3),
        (format!("raw-data/again-2/{name}"), 3),
    ] {
        let text = fs::read_to_string(out.join(&path)).expect(&path);
        assert_eq!(text.lines().count(), lines, "{path}");
    }
    assert!(!out.join("settings.yaml").exists(), "the plan was none");
}
