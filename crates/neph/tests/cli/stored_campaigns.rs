//! What a workspace holds: listed, shown, exported and imported.

use std::fs;

use neph_model::{
    Campaign, CampaignId, CampaignStatus, Experiment, ExperimentId, ExperimentStatus, Provenance,
    Tally,
};
use neph_store::{Access, open};
use serde_json::Value;

use crate::neph::{TestFolder, latency_tester_csv};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn campaigns_and_their_experiments_are_listed() {
    let folder = TestFolder::with_campaign();
    let ran = folder.neph(["list"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("imported"), "{}", ran.out);
    let campaigns = json(&folder.neph(["list", "--format", "json"]).out);
    assert_eq!(campaigns.as_array().map(Vec::len), Some(1));
    let id = campaigns[0]["id"].as_str().expect("a text");
    let name = campaigns[0]["name"].as_str().expect("a text");
    for spelling in ["last", id, &id[..8], name] {
        let ran = folder.neph(["list", spelling, "--format", "json"]);
        let experiments = json(&ran.out);
        assert_eq!(experiments[0]["messages"], 40, "{spelling}: {}", ran.err);
        // The round trips are 40.0, 40.1 ... 43.9 ms: the 20th of 40 is 41.9, the 21st 42.0.
        let p50 = experiments[0]["response_p50_ns"].as_i64().expect("there");
        assert!((41_900_000..=42_000_000).contains(&p50), "{p50}");
    }
}

#[test]
fn a_table_for_programs_has_raw_values() {
    let folder = TestFolder::with_campaign();
    let csv = folder.neph(["list", "last", "--format", "csv"]).out;
    let mut lines = csv.lines();
    let heading = "id,started_unix_ns,block,attempt,scenario,status,messages,lost,response_p50_ns,\
                   warnings,quantities,errors";
    assert_eq!(lines.next(), Some(heading));
    assert_eq!(lines.count(), 2);
}

#[test]
fn a_campaign_and_an_experiment_are_shown() {
    let folder = TestFolder::with_campaign();
    let text = folder.neph(["show"]).out;
    for part in [
        "Campaign\n",
        "Scenarios\n",
        "Experiments\n",
        // Without what both scenarios share.
        "  64 B  ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown = json(&folder.neph(["show", "last", "--format", "json"]).out);
    let id = shown["experiments"][1]["id"].as_str().expect("a text");
    let text = folder.neph(["show", id]).out;
    for part in [
        "Experiment\n",
        "Messages\n",
        "Flows\n",
        "metro · every 100 ms · 10 KiB",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains("NaN"),
        "what was not measured is '-': {text}"
    );
    let shown = json(&folder.neph(["show", id, "--format", "json"]).out);
    assert_eq!(shown["tally"]["replies"], 40);
}

#[test]
fn each_listed_id_opens_its_campaign_or_experiment() {
    let folder = TestFolder::with_campaign();
    let campaign = json(&folder.neph(["list", "--format", "json"]).out)[0]["id"].clone();
    let listed = json(&folder.neph(["list", "last", "--format", "json"]).out);
    for text in [["list", "last"], ["show", "last"]] {
        let stdout = folder.neph(text).out;
        let (_, rows) = stdout.split_once("FLAGS").expect("a heading");
        for (row, known) in rows.lines().skip(1).zip(listed.as_array().expect("a list")) {
            let short = row.split_whitespace().next().expect("an id");
            let complete_text = known["id"].as_str().expect("a text");
            assert!(complete_text.starts_with(short), "{stdout}");
            let ran = folder.neph(["show", short, "--format", "json"]);
            let shown = json(&ran.out);
            assert_eq!(
                shown["experiment"]["id"], complete_text,
                "{short}: {}",
                ran.err
            );
        }
    }
    let short = folder.neph(["list"]).out;
    let short = short.lines().nth(1).and_then(|row| row.split(' ').next());
    let shown = folder.neph(["show", short.expect("an id"), "--format", "json"]);
    assert_eq!(json(&shown.out)["campaign"]["id"], campaign);
}

#[test]
fn every_export_has_every_message() {
    let folder = TestFolder::with_campaign();
    for (format, lines) in [("csv", 81), ("jsonl", 80)] {
        let ran = folder.neph(["export", "--format", format, "--output", format]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert_eq!(ran.out, "");
        let text = fs::read_to_string(folder.path(format)).expect("written");
        assert_eq!(text.lines().count(), lines, "{format}");
        let ran = folder.neph(["export", "--format", format, "--output", "-"]);
        assert!(ran.out == text, "{format}: standard output has the same");
    }
    let ran = folder.neph(["export", "--format", "parquet", "--output", "x.parquet"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let bytes = fs::read(folder.path("x.parquet")).expect("written");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

/// Adds a second try of the second experiment that was cut off.
fn add_interrupted_experiment(folder: &TestFolder) {
    let workspace = folder.workspace().display().to_string();
    let mut store = open(&workspace, Access::Write).expect("free");
    let campaign = store.campaigns().expect("readable")[0].id;
    let first = store.experiments(campaign).expect("readable").remove(1);
    let messages = store.messages(first.id).expect("readable");
    let known = store.provenance(first.id).expect("readable");
    let mut experiment = Experiment {
        id: ExperimentId::new(),
        attempt: 1,
        status: ExperimentStatus::Running,
        ..first
    };
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&messages).expect("recorded");
    experiment.status = ExperimentStatus::Interrupted;
    let provenance = Provenance {
        experiment: experiment.id,
        ..known.expect("every finished one has it")
    };
    store
        .finish(recorder, &experiment, &provenance)
        .expect("finished");
}

/// What a kill -9 leaves of a campaign: it and its second try of an experiment are said to be
/// running.
fn add_killed_campaign(folder: &TestFolder) -> Campaign {
    let workspace = folder.workspace().display().to_string();
    let mut store = open(&workspace, Access::Write).expect("free");
    let earlier = store.campaigns().expect("readable").remove(0);
    let matrix = store.scenarios(earlier.id).expect("readable");
    let first = store.experiments(earlier.id).expect("readable").remove(0);
    let messages = store.messages(first.id).expect("readable");
    let campaign = Campaign {
        id: CampaignId::new(),
        name: "killed".to_owned(),
        status: CampaignStatus::Running,
        plan_text: "version = 1".to_owned(),
        ..earlier
    };
    store.add_campaign(&campaign, &matrix).expect("added");
    let running = Experiment {
        id: ExperimentId::new(),
        campaign: campaign.id,
        status: ExperimentStatus::Running,
        tally: Tally::default(),
        ended: None,
        ..first
    };
    let mut recorder = store.begin(&running).expect("begun");
    recorder.messages(&messages).expect("recorded");
    campaign
}

#[test]
fn a_killed_campaign_is_listed_as_interrupted_with_its_results_and_next_command() {
    let folder = TestFolder::with_campaign();
    let killed = add_killed_campaign(&folder);
    let list = folder.neph(["list"]).out;
    let expected = format!("interrupted (neph resume {})", killed.id);
    assert!(
        list.contains(&expected) && !list.contains("running"),
        "{list}"
    );
    let shown = json(&folder.neph(["show", "killed", "--format", "json"]).out);
    assert_eq!(shown["campaign"]["status"], "interrupted");
    let experiments = json(&folder.neph(["list", "killed", "--format", "json"]).out);
    assert_eq!(experiments[0]["status"], "interrupted");
    assert_eq!(experiments[0]["messages"], 40);

    let workspace = folder.workspace().display().to_string();
    let mut writer = open(&workspace, Access::Write).expect("free");
    assert!(
        folder.neph(["list"]).out.contains("running"),
        "somebody is there"
    );
    writer.recover().expect("recovered");
    let status = |name: &str| {
        let campaigns = writer.campaigns().expect("readable");
        campaigns
            .iter()
            .find(|campaign| campaign.name == name)
            .map(|campaign| campaign.status)
    };
    assert_eq!(status("killed"), Some(CampaignStatus::Interrupted));
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = TestFolder::with_campaign();
    let ran = folder.neph(["export", "--format", "jsonl", "--output", "/dev/full"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err.contains("write /dev/full: No space left"),
        "{}",
        ran.err
    );
    assert!(folder.files().is_empty(), "nothing is left");
}

#[test]
fn an_export_contains_incomplete_experiments_only_on_request() {
    let folder = TestFolder::with_campaign();
    add_interrupted_experiment(&folder);
    let export = ["export", "--format", "csv", "--output", "-"];
    let ran = folder.neph(export);
    assert_eq!(
        (ran.status, ran.out.lines().count()),
        (0, 81),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("interrupted"));
    let written_and_left_out =
        "80 messages of 2 experiments of 'raw-data' written to -; 1 that is not complete";
    assert!(ran.err.contains(written_and_left_out), "{}", ran.err);
    let ran = folder.neph(export.into_iter().chain(["--everything"]));
    assert_eq!(ran.out.lines().count(), 121, "{}", ran.err);
    let cut_off = ran
        .out
        .lines()
        .filter(|line| line.contains(",metro · every 100 ms · 10 KiB,0,1,interrupted,"));
    assert_eq!(cut_off.count(), 40);
}

#[test]
fn an_export_of_nothing_destroys_no_file() {
    let folder = TestFolder::with_campaign();
    std::fs::write(folder.path("earlier.csv"), "kept").expect("written");
    for message in ["--flows", "--transfers"] {
        let export = [
            "export",
            "--format",
            "csv",
            "--output",
            "earlier.csv",
            message,
        ];
        let ran = folder.neph(export.into_iter().chain(["--force"]));
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert!(
            ran.err.contains("nothing is written to earlier.csv"),
            "{}",
            ran.err
        );
    }
    let content = std::fs::read_to_string(folder.path("earlier.csv")).expect("still there");
    assert_eq!(content, "kept");
}

#[test]
fn a_latency_testers_folder_is_exported_and_imported_again() {
    let test_folder = TestFolder::with_campaign();
    let export = ["export", "--format", "latency-tester", "--output"];
    let ran = test_folder.neph(export.into_iter().chain(["out"]));
    assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{}", ran.err);
    for name in ["1-metro.i100.x64.csv", "1-metro.i100.x10240.csv"] {
        let [old, new] = ["raw-data", "out/raw-data"].map(|folder| {
            fs::read_to_string(test_folder.path(folder).join(name))
                .expect("one file per experiment")
        });
        assert!(old == new, "{name}: {new}");
    }
    assert_eq!(test_folder.neph(["import", "out"]).status, 0);
    assert_eq!(test_folder.files(), ["out"]);
    for (output, part) in [("out", "is there already"), ("-", "--output FOLDER")] {
        let ran = test_folder.neph(export.into_iter().chain([output]));
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

#[test]
fn an_import_names_the_campaign_that_it_became_however_old_it_is() {
    let folder = TestFolder::with_campaign();
    fs::create_dir(folder.path("older")).expect("a folder");
    let text = latency_tester_csv(1_500_000_000_000_000_000);
    fs::write(folder.path("older/1-metro.i100.x64.csv"), text).expect("a file");
    let report = "#frame-timestamp,tcp-ack-rtt,tcp-stream-id,retransmission,ip-dst\n\
                  \"1500000000.050\",\"0.050\",\"0\",\"1\",\"10.0.0.1\"\n";
    fs::write(folder.path("older/1-tcpdump_report.csv"), report).expect("a file");
    let ran = folder.neph(["import", "older"]);
    let campaigns = json(&folder.neph(["list", "--format", "json"]).out);
    assert_eq!(campaigns[0]["name"], "older", "the oldest comes first");
    let id = campaigns[0]["id"].as_str().expect("a text");
    let expected = format!(
        "neph import: 1 experiment, 40 messages, 1 TCP acknowledgement, 1 retransmission; \
         `neph report {id}` shows them\n"
    );
    assert_eq!(ran.err, expected);
    let experiments = json(&folder.neph(["list", id, "--format", "json"]).out);
    let id = experiments[0]["id"].as_str().expect("a text");
    let shown = json(&folder.neph(["show", id, "--format", "json"]).out);
    assert_eq!(shown["events"][0]["kind"], "retransmitted");
    // What its files do not tell is not made up: no plan, hence no hash of one, and no address.
    assert!(shown["provenance"]["plan_hash"].is_null(), "{shown}");
    assert!(shown["flows"][0]["target"].is_null(), "{shown}");
}

#[test]
fn one_experiment_can_be_exported_alone_and_imported_again() {
    let folder = TestFolder::with_campaign();
    let experiments = json(&folder.neph(["list", "last", "--format", "json"]).out);
    let id = experiments[0]["id"].as_str().expect("a text");
    fs::create_dir(folder.path("out")).expect("a folder");
    let file = "out/1-metro.i100.x64.csv";
    let mut export = vec!["export", "--format", "latency-tester", "--output", file];
    export.extend(["--experiment", id]);
    assert_eq!(folder.neph(export.clone()).status, 0);
    let ran = folder.neph(["import", "out"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let second = json(&folder.neph(["list", "last", "--format", "json"]).out);
    assert_eq!(second.as_array().map(Vec::len), Some(1));
    assert_eq!(
        second[0]["response_p50_ns"],
        experiments[0]["response_p50_ns"]
    );
    // It belongs to an earlier campaign now, and its id still suffices.
    export.extend(["--force"]);
    let ran = folder.neph(export.clone());
    assert_eq!(ran.status, 0, "{}", ran.err);
    export.insert(1, "last");
    let ran = folder.neph(export);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("there is no experiment"), "{}", ran.err);
}

#[test]
fn a_failed_experiment_is_reported_and_retried_by_resume() {
    let folder = TestFolder::empty();
    // Nobody listens on port 1.
    let plan = "version = 1\nname = \"x\"\ninterval = \"1ms\"\nmessages = 1\ntries = 1\n\n\
                [[endpoint]]\nname = \"a\"\nurl = \"ws://127.0.0.1:1/\"\n";
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    let run: &[&str] = &["run", "plan.toml", "--quiet", "--no-report"];
    let resume: &[&str] = &["resume", "--quiet", "--no-report"];
    for (tried, command) in [(1, run), (2, resume)] {
        let ran = folder.neph(command.iter().copied());
        assert_eq!(ran.status, 1, "{}", ran.err);
        for part in [
            "has no complete experiment in block 1: identify the server at ws://127.0.0.1:1",
            "1 of 1 experiments are left to do; neph resume",
        ] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
        let listed = json(&folder.neph(["list", "last", "--format", "json"]).out);
        assert_eq!(listed.as_array().map(Vec::len), Some(tried));
    }
}
