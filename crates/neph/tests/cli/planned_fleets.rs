//! A plan with a fleet, over loopback: carried out, shown, exported, reported.

use std::fs;

use neph_model::{ReflectorCaps, ReflectorSpec};
use neph_probe::Reflector;
use serde_json::Value;

use crate::neph::TestFolder;

fn plan(address: std::net::SocketAddr) -> String {
    format!(
        "version = 1\nname = \"flows\"\ninterval = \"50ms\"\nmessages = 10\nflows = 16\n\
         renewal = \"200ms\"\nblocks = 2\nseed = 1\n\
         [companion]\nenabled = false\n\
         [trace]\nflows = 4\nmax_hops = 3\nqueries = 1\n\
         [[endpoint]]\nname = \"here\"\nurl = \"udp://{address}\"\n\
         [[season]]\nname = \"any\"\n"
    )
}

#[test]
fn a_fleet_of_a_plan_is_carried_out_shown_exported_and_reported() {
    let here = ([127, 0, 0, 1], 0).into();
    let reflector = Reflector::start(&ReflectorSpec::at(here)).expect("a reflector");
    let folder = TestFolder::empty();
    fs::write(folder.path("p.toml"), plan(reflector.address())).expect("written");

    let ran = folder.neph(["plan", "p.toml"]);
    for part in [
        "here · 16 flows · every 50 ms · 104 B",
        "320 messages",
        "for the fleets' messages",
        "season any: at any time",
    ] {
        assert!(ran.out.contains(part), "{part}: {}{}", ran.out, ran.err);
    }
    let ran = folder.neph(["run", "p.toml"]);
    assert_eq!(ran.status, 0, "{}", ran.err);

    check_exports(&folder);
    let listed: Value =
        serde_json::from_str(&folder.neph(["list", "last", "--format", "json"]).out).expect("JSON");
    assert_eq!(listed[0]["messages"], 160);
    let id = listed[0]["id"].as_str().expect("a text");
    let shown = folder.neph(["show", id]).out;
    assert!(
        shown.contains("Fleet\n") && shown.contains("200 ms"),
        "{shown}"
    );
    let document = folder.neph(["show", id, "--format", "json"]).out;
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["paths"][0]["hops"], 1, "{document}");
    let ran = folder.neph(["report", "--output", "report"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(folder.path("report/index.html").exists());
    // Two blocks, a trace each: over loopback all flows go straight to where they want to go.
    for page in ["flow-paths-1.svg", "flow-paths-2.svg"] {
        let drawn = fs::read_to_string(folder.path("report/figures").join(page)).expect(page);
        let expected = "4 traced flows to 127.0.0.1 over 1 path";
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn the_median_of_ended_fleets_is_shown_without_their_messages() {
    let here = ([127, 0, 0, 1], 0).into();
    let reflector = Reflector::start(&ReflectorSpec::at(here)).expect("a reflector");
    let folder = TestFolder::empty();
    fs::write(folder.path("p.toml"), plan(reflector.address())).expect("written");
    let ran = folder.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let show = || {
        let shown = folder.neph(["show", "last", "--format", "json"]);
        serde_json::from_str::<Value>(&shown.out).expect("JSON")["experiments"].take()
    };
    let shown = show();
    assert_eq!(shown.as_array().map(Vec::len), Some(2));
    for entry in shown.as_array().into_iter().flatten() {
        let of_messages = median_round_trip(&folder, entry["block"].as_u64());
        let median = entry["response_p50_ns"].as_f64().expect("a median");
        // Three digits are kept, none below a microsecond.
        let bound = of_messages / 1000.0 + 1000.0;
        assert!(
            (median - of_messages).abs() <= bound,
            "{median} {of_messages}"
        );
    }
    let messages = folder.workspace().join("messages");
    fs::remove_dir_all(&messages).expect("removed");
    fs::create_dir(&messages).expect("made");
    assert_eq!(show(), shown);
}

/// Of a block's network round trips, lost messages slower than all others.
fn median_round_trip(folder: &TestFolder, block: Option<u64>) -> f64 {
    let out = ["export", "--flows", "--format", "jsonl", "--output", "-"];
    let rows = folder.neph(out).out;
    let rows = rows.lines().map(serde_json::from_str);
    let mut times: Vec<f64> = rows
        .map(|row: Result<Value, _>| row.expect("JSON"))
        .filter(|row| row["block"].as_u64() == block)
        .map(|row| row["network_ns"].as_f64().unwrap_or(f64::INFINITY))
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len().div_ceil(2) - 1]
}

#[test]
fn a_plan_with_too_few_blocks_for_its_comparison_is_reported() {
    let folder = TestFolder::empty();
    let seasons = plan(([127, 0, 0, 1], 862).into()) + "[[season]]\nname = \"other\"\n";
    let text = |blocks: u32| seasons.replace("blocks = 2", &format!("blocks = {blocks}"));
    let expected = "blocks cannot decide the ";
    for (blocks, is_reported) in [(2, true), (6, true), (7, false)] {
        fs::write(folder.path("p.toml"), text(blocks)).expect("written");
        for command in ["plan", "check"] {
            let ran = folder.neph([command, "p.toml"]);
            assert_eq!(ran.status, 0, "{}", ran.err);
            assert_eq!(
                ran.err.contains(expected),
                is_reported,
                "{blocks}: {}",
                ran.err
            );
        }
    }
}

fn check_exports(folder: &TestFolder) {
    let out = ["export", "--flows", "--format", "jsonl", "--output", "-"];
    let ran = folder.neph(out);
    let rows: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 320, "{}", ran.err);
    assert!(rows.iter().all(|row| row["endpoint"] == "here"));
    let replied = rows.iter().filter(|row| row["outcome"] == "reply");
    assert!(replied.clone().count() > 160, "{}", ran.out);
    assert!(
        replied
            .clone()
            .all(|row| row["network_ns"].as_i64() > Some(0))
    );
    let slots: std::collections::BTreeSet<i64> =
        rows.iter().filter_map(|row| row["slot"].as_i64()).collect();
    assert_eq!(slots.len(), 16);
    let parquet = [
        "export",
        "--flows",
        "--format",
        "parquet",
        "--output",
        "x.parquet",
    ];
    assert_eq!(folder.neph(parquet).status, 0);
    let ran = folder.neph(["export", "--format", "csv", "--output", "-"]);
    assert!(
        ran.err.contains("--flows writes their messages"),
        "{}",
        ran.err
    );
    let wrong = [
        "export",
        "--flows",
        "--format",
        "latency-tester",
        "--output",
        "x",
    ];
    assert_eq!(folder.neph(wrong).status, 2);
    // A Latency Tester knows no fleets: there is nothing to write.
    let none = ["export", "--format", "latency-tester", "--output", "x"];
    let ran = folder.neph(none);
    assert_eq!(ran.status, 1, "{}", ran.err);
    let nothing = ran.err.contains("nothing is written to x");
    assert!(nothing && !folder.path("x").exists(), "{}", ran.err);
    assert!(!folder.path("x.partial").exists());
}

#[test]
fn run_show_and_report_contain_refusals_of_a_reflector() {
    let caps = ReflectorCaps {
        messages_per_second: 100,
        ..ReflectorCaps::default()
    };
    let spec = ReflectorSpec::at(([127, 0, 0, 1], 0).into());
    let reflector = Reflector::start(&ReflectorSpec { caps, ..spec }).expect("a reflector");
    let folder = TestFolder::empty();
    let plan = plan(reflector.address()).replace("[trace]", "[trace]\nenabled = false");
    fs::write(folder.path("p.toml"), plan).expect("written");

    let ran = folder.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let expected = "from this address (limit 100 per second)";
    let flags = ran.err.lines().filter(|line| line.contains(expected));
    assert_eq!(flags.count(), 2, "one in each block: {}", ran.err);

    let shown = folder.neph(["show", "last", "--format", "json"]).out;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let id = shown["experiments"][0]["id"].as_str().expect("a text");
    let shown = folder.neph(["show", id]).out;
    assert!(
        shown.contains(expected) && shown.contains("--max-rate"),
        "{shown}"
    );
    let ran = folder.neph(["report", "--output", "report"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let page = fs::read_to_string(folder.path("report/index.html")).expect("a page");
    assert!(
        page.contains(expected) && page.contains("--max-rate"),
        "{page}"
    );
}
