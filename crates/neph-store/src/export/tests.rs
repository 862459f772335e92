use neph_model::{Campaign, CampaignId, CampaignStatus, Experiment, ExperimentStatus, Order, Wall};

use super::*;
use crate::columns::ColumnsReader;
use crate::samples_for_tests::{self as samples, message, provenance};
use crate::{Access, Store, open};

/// Two experiments: the second has a lost message and lacks a mark in one row.
fn filled() -> (tempfile::TempDir, Box<dyn Store>, Vec<Experiment>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut store = open(&folder.path().to_string_lossy(), Access::Write).expect("free");
    let campaign = Campaign {
        id: CampaignId::new(),
        name: "test".to_owned(),
        plan_text: String::new(),
        plan_hash: String::new(),
        plan_path: String::new(),
        topology_text: None,
        topology_hash: None,
        seed: 1,
        order: Order::Random,
        blocks: 1,
        status: CampaignStatus::Running,
        started: Wall::from_unix_nanos(1),
        ended: None,
    };
    store.add_campaign(&campaign, &[]).expect("added");
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

#[test]
fn in_each_csv_row_the_stages_add_up_and_merged_ones_have_a_column_of_their_own() {
    let (_folder, store, experiments) = filled();
    let mut out = Vec::new();
    let rows = export_csv(store.as_ref(), &experiments, &mut out).expect("written");
    assert_eq!(rows, 4);
    let text = String::from_utf8(out).expect("text");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    assert!(
        header.contains(&"stage_send_window+send_queue_ns"),
        "{header:?}"
    );
    assert!(header.contains(&"stage_network+peer_send_ns"), "{header:?}");
    let place = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .expect(name)
    };
    let mut replies = 0;
    for line in lines {
        assert_eq!(line.len(), header.len());
        if line[place("outcome")] != "reply" {
            assert_eq!(line[place("response_ns")], "");
            continue;
        }
        replies += 1;
        let stages = header
            .iter()
            .zip(&line)
            .filter(|(name, value)| name.starts_with("stage_") && !value.is_empty());
        let sum: i64 = stages
            .map(|(_, value)| value.parse::<i64>().expect("ns"))
            .sum();
        assert_eq!(sum.to_string(), line[place("response_ns")]);
    }
    assert_eq!(replies, 3);
}

#[test]
fn json_lines_say_the_same_and_leave_out_what_is_absent() {
    let (_folder, store, experiments) = filled();
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
fn the_latency_testers_columns_are_its_own() {
    let (_folder, store, experiments) = filled();
    let mut out = Vec::new();
    export_latency_tester_csv(store.as_ref(), &experiments[..1], &mut out).expect("written");
    let expected = "#client-send-timestamp,server-timestamp,e2e-rtt\n\
                    1700000000000000300,1700000007000002000,0.046700\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn several_experiments_merge_into_one_parquet_file_and_one_stays_as_it_is() {
    let (folder, store, experiments) = filled();
    let path = folder.path().join("out.parquet");
    let rows = |path: &std::path::Path| {
        let reader = ColumnsReader::open(path).expect("readable").expect("there");
        let groups = 0..reader.row_groups();
        groups
            .flat_map(|group| reader.row_group(group).expect("readable"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        export_parquet(store.as_ref(), &experiments, &path).expect("written"),
        4
    );
    let merged: Vec<_> = experiments
        .iter()
        .flat_map(|one| store.messages(one.id).expect("readable"))
        .collect();
    assert_eq!(rows(&path), merged);
    let last = &experiments[1..];
    assert_eq!(
        export_parquet(store.as_ref(), last, &path).expect("written"),
        3
    );
    assert_eq!(rows(&path), store.messages(last[0].id).expect("readable"));
}
