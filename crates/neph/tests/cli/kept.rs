//! What a workspace holds: listed, shown, exported and imported.

use std::fs;

use serde_json::Value;

use crate::neph::Place;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn campaigns_and_their_experiments_are_listed() {
    let place = Place::measured();
    let ran = place.neph(["list"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("imported"), "{}", ran.out);
    let campaigns = json(&place.neph(["list", "--format", "json"]).out);
    assert_eq!(campaigns.as_array().map(Vec::len), Some(1));
    let id = campaigns[0]["id"].as_str().expect("a text");
    let name = campaigns[0]["name"].as_str().expect("a text");
    for spelling in ["last", id, &id[..8], name] {
        let ran = place.neph(["list", spelling, "--format", "json"]);
        let experiments = json(&ran.out);
        assert_eq!(experiments[0]["messages"], 40, "{spelling}: {}", ran.err);
        // The round trips are 40.0, 40.1 ... 43.9 ms: the 20th of 40 is 41.9, the 21st 42.0.
        let p50 = experiments[0]["response_p50_ns"].as_i64().expect("there");
        assert!((41_900_000..=42_000_000).contains(&p50), "{p50}");
    }
}

#[test]
fn a_table_for_programs_has_raw_values() {
    let place = Place::measured();
    let csv = place.neph(["list", "last", "--format", "csv"]).out;
    let mut lines = csv.lines();
    let heading = "id,block,attempt,scenario,status,messages,lost,response_p50_ns,warnings";
    assert_eq!(lines.next(), Some(heading));
    assert_eq!(lines.count(), 2);
}

#[test]
fn a_campaign_and_an_experiment_are_shown() {
    let place = Place::measured();
    let text = place.neph(["show"]).out;
    for part in [
        "Campaign\n",
        "Scenarios\n",
        "Experiments\n",
        "metro · every 100 ms · 64 B",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown = json(&place.neph(["show", "last", "--format", "json"]).out);
    let id = shown["experiments"][1]["id"].as_str().expect("a text");
    let text = place.neph(["show", id]).out;
    for part in [
        "Experiment\n",
        "Messages\n",
        "Flows\n",
        "metro · every 100 ms · 10 KiB",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown = json(&place.neph(["show", id, "--format", "json"]).out);
    assert_eq!(shown["tally"]["replies"], 40);
}

#[test]
fn every_export_has_every_message() {
    let place = Place::measured();
    for (format, lines) in [("csv", 81), ("jsonl", 80), ("latency-tester", 81)] {
        let ran = place.neph(["export", "--format", format, "--output", format]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert_eq!(ran.out, "");
        let text = fs::read_to_string(place.path(format)).expect("written");
        assert_eq!(text.lines().count(), lines, "{format}");
        let ran = place.neph(["export", "--format", format, "--output", "-"]);
        assert!(ran.out == text, "{format}: standard output has the same");
    }
    let ran = place.neph(["export", "--format", "parquet", "--output", "x.parquet"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let bytes = fs::read(place.path("x.parquet")).expect("written");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn one_experiment_can_be_exported_alone_and_imported_again() {
    let place = Place::measured();
    let experiments = json(&place.neph(["list", "last", "--format", "json"]).out);
    let id = experiments[0]["id"].as_str().expect("a text");
    fs::create_dir(place.path("out")).expect("a folder");
    let file = "out/1-metro.i100.x64.csv";
    let mut export = vec!["export", "--format", "latency-tester", "--output", file];
    export.extend(["--experiment", id]);
    assert_eq!(place.neph(export).status, 0);
    let ran = place.neph(["import", "out"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let again = json(&place.neph(["list", "last", "--format", "json"]).out);
    assert_eq!(again.as_array().map(Vec::len), Some(1));
    assert_eq!(
        again[0]["response_p50_ns"],
        experiments[0]["response_p50_ns"]
    );
}

#[test]
fn what_failed_every_try_is_told_and_tried_again_by_resume() {
    let place = Place::empty();
    // Nobody listens on port 1.
    let plan = "version = 1\nname = \"x\"\ninterval = \"1ms\"\nmessages = 1\ntries = 1\n\n\
                [[endpoint]]\nname = \"a\"\nurl = \"ws://127.0.0.1:1/\"\n";
    fs::write(place.path("plan.toml"), plan).expect("a file");
    let run: &[&str] = &["run", "plan.toml", "--quiet", "--no-report"];
    let resume: &[&str] = &["resume", "--quiet", "--no-report"];
    for (tried, command) in [(1, run), (2, resume)] {
        let ran = place.neph(command.iter().copied());
        assert_eq!(ran.status, 1, "{}", ran.err);
        for part in [
            "failed every try in block 1: asking ws://127.0.0.1:1",
            "1 of 1 experiments are left to do; neph resume",
        ] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
        let listed = json(&place.neph(["list", "last", "--format", "json"]).out);
        assert_eq!(listed.as_array().map(Vec::len), Some(tried));
    }
}
