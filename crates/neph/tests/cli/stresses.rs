//! `neph stress` at the command line.

use std::fs;

use serde_json::Value;

use crate::labs::{TWO, place, privileged};
use crate::neph::neph;

#[test]
fn a_load_tells_what_each_thread_worked_by_its_own_clock() {
    let ran = neph([
        "stress", "cpu", "--target", "25%", "--cores", "1", "-w", "600ms", "--format", "json",
    ]);
    let told: Value = serde_json::from_str(&ran.out).expect("JSON");
    let [one] = told.as_array().expect("a list").as_slice() else {
        panic!("{told}")
    };
    assert_eq!(one["target_percent"], 25.0);
    assert!(one["lasted_ns"].as_i64() >= Some(600_000_000), "{one}");
    let worked = one["worked_percent"].as_f64().expect("a number");
    // It never works more than is asked, but for the last piece of each of 60 periods; less on a
    // machine that others use too.
    assert!(worked > 0.0 && worked < 40.0, "{worked}");
    assert!(one["hashes_per_second"].as_f64() > Some(0.0));
    // What it says and how it ends are one.
    let held = (worked - 25.0).abs() <= 3.0;
    assert_eq!(ran.status, i32::from(!held), "{}", ran.err);
    assert_eq!(ran.err.contains("was asked"), !held, "{}", ran.err);
}

#[test]
fn what_cannot_be_is_a_usage_error() {
    for (target, cpus) in [("0%", "0"), ("120%", "0"), ("50%", "1000"), ("half", "0")] {
        let ran = neph([
            "stress", "cpu", "--target", target, "--cpus", cpus, "-w", "1s",
        ]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
    }
}

/// A plan for the lab of two sites whose experiments ask for this load.
fn plan(stress: &str) -> String {
    format!(
        "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = 20\nstress = {stress}\n\
         [[endpoint]]\nname = \"b\"\nurl = \"udp://10.80.0.2:8080\"\n\
         [lab]\ntopology = \"two.toml\"\nprober = \"a\"\n[[lab.reflector]]\nsite = \"b\"\n"
    )
}

#[test]
fn a_plan_that_loads_a_site_which_is_not_there_is_told_where() {
    let place = place(TWO);
    for (stress, part) in [
        ("\"c 50%\"", "the topology has no site 'c' to load"),
        ("[\"none\", \"b\"]", "\"b\" is no load"),
    ] {
        fs::write(place.path("p.toml"), plan(stress)).expect("a file");
        let ran = place.neph(["check", "p.toml"]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(
            ran.err.contains(part) && ran.err.contains("p.toml:5:"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_site_is_loaded_while_it_is_measured_and_not_afterwards() {
    let test = "a_site_is_loaded_while_it_is_measured_and_not_afterwards";
    if !privileged(test) {
        return;
    }
    let place = place(TWO);
    fs::write(place.path("p.toml"), plan("[\"none\", \"b 7%\"]")).expect("a file");
    let ran = place.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let shown: Value =
        serde_json::from_str(&place.neph(["show", "--format", "json"]).out).expect("JSON");
    let words = shown.to_string();
    let both = ["\"b 7%\"", "\"none\""];
    assert!(both.iter().all(|load| words.contains(load)), "{words}");
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    let left = processes.filter(|process| {
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        words.contains("stress\0cpu\0--target\x007%")
    });
    assert_eq!(left.count(), 0);
}
