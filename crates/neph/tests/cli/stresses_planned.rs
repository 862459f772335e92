//! The load that a plan makes beside what it measures.

use std::fs;

use serde_json::Value;

use crate::labs::{TWO_SITES, privileged, topology_folder};
use crate::neph::{RunOutput, TIMEOUT, eventually, start_and_read_line};

/// A plan for the lab of two sites whose experiments ask for this load.
fn plan(stress: &str) -> String {
    format!(
        "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = 20\nstress = {stress}\n\
         [[endpoint]]\nname = \"b\"\nurl = \"udp://10.80.0.2:8080\"\n\
         [lab]\ntopology = \"two.toml\"\nprober = \"a\"\n[[lab.reflector]]\nsite = \"b\"\n"
    )
}

#[test]
fn a_plan_with_a_load_at_an_unknown_site_is_refused() {
    let folder = topology_folder(TWO_SITES);
    for (stress, part) in [
        ("\"c 50%\"", "the topology has no site 'c' to load"),
        ("[\"none\", \"b\"]", "\"b\" is no load"),
    ] {
        fs::write(folder.path("p.toml"), plan(stress)).expect("a file");
        let ran = folder.neph(["check", "p.toml"]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(
            ran.err.contains(part) && ran.err.contains("p.toml:5:"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn planned_traffic_goes_from_its_site_to_its_destination() {
    let test = "planned_traffic_goes_from_its_site_to_its_destination";
    if !privileged(test) {
        return;
    }
    let folder = topology_folder(TWO_SITES);
    let loads = "\"a flow 10.80.0.2:8080 2Mbit/s, a stream 10.80.0.2:8080 300kbit/s\"";
    fs::write(folder.path("p.toml"), plan(loads).replace("20\n", "200\n")).expect("a file");
    let ran = folder.neph(["run", "p.toml", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    // On a busy machine it may be less than asked, and is said to be; nothing it is never.
    let wrong = ["carried 0.00", "did not say"].map(|part| ran.err.contains(part));
    assert_eq!(wrong, [false, false], "{}", ran.err);
}

#[test]
fn a_load_that_was_not_held_flags_its_experiment() {
    let test = "a_load_that_was_not_held_flags_its_experiment";
    if !privileged(test) {
        return;
    }
    let folder = topology_folder(TWO_SITES);
    // A site without a reflector may be silent on purpose, so the plan is not refused.
    let load = "b stream 10.80.0.1:9999 300kbit/s";
    fs::write(folder.path("p.toml"), plan(&format!("\"{load}\""))).expect("a file");
    let ran = folder.neph(["run", "p.toml", "--no-report"]);
    let expected = format!("background load {load} missed its target (it carried 0.00 Mbit/s)");
    assert_eq!(ran.err.matches(&expected).count(), 1, "{}", ran.err);
    assert!(ran.err.contains("1 with warnings"), "{}", ran.err);
    let output_of = |args: &[&str]| folder.neph(args.iter().copied()).out;
    assert!(output_of(&["list", "last"]).contains(&expected));
    let flags = output_of(&["show"]);
    assert!(
        flags.contains(&expected) && !flags.contains("the plan generates"),
        "{flags}"
    );
    let page = folder.path("page");
    output_of(&["report", "-o", page.to_str().expect("text")]);
    let page = fs::read_to_string(page.join("index.html")).expect("a page");
    let closed = "without a key? Remedy: give the site";
    assert!(page.contains(&expected) && page.contains(closed), "{page}");
}

#[test]
fn a_site_is_loaded_while_it_is_measured_and_not_afterwards() {
    let test = "a_site_is_loaded_while_it_is_measured_and_not_afterwards";
    if !privileged(test) {
        return;
    }
    let folder = topology_folder(TWO_SITES);
    let load = "b 5%";
    let requested = plan(&format!("[\"none\", \"{load}\"]"));
    fs::write(folder.path("p.toml"), requested).expect("a file");
    let mut run = folder.command(["run", "p.toml", "--no-report"]);
    let ran = RunOutput::from(run.env(MARK, test).output().expect("neph runs"));
    assert_eq!(ran.status, 0, "{}", ran.err);
    let output_of: Value =
        serde_json::from_str(&folder.neph(["show", "--format", "json"]).out).expect("JSON");
    let load_text = output_of.to_string();
    let pair = [format!("\"{load}\""), "\"none\"".to_owned()];
    assert!(
        pair.iter().all(|load| load_text.contains(load)),
        "{load_text}"
    );
    assert!(!is_loaded(test));
}

#[test]
fn a_load_ends_with_a_plan_that_is_killed() {
    let test = "a_load_ends_with_a_plan_that_is_killed";
    if !privileged(test) {
        return;
    }
    let folder = topology_folder(TWO_SITES);
    let requested = plan("\"b 5%\"").replace("20\n", "60000\n");
    fs::write(folder.path("p.toml"), requested).expect("a file");
    let mut run = folder.command(["run", "p.toml", "--no-report"]);
    let (mut running, _, _) = start_and_read_line(run.env(MARK, test));
    eventually("a load", TIMEOUT, || is_loaded(test));
    running.kill().expect("it runs");
    running.wait().expect("it ended");
    eventually("no load", TIMEOUT, || !is_loaded(test));
    let lab = format!("run{}", running.id());
    // Another test's neph may have taken down what was left by now.
    folder.neph(["lab", "down", &lab]);
}

/// What the processes of one test have in their environment.
const MARK: &str = "NEPH_TEST_OF_LOADS";

/// Whether a process of this test carries out an order.
fn is_loaded(test: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    let mut folders = processes.map(|entry| entry.path());
    folders.any(|folder| {
        let read = |file| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let is_own = read("environ").contains(&format!("{MARK}={test}\0"));
        is_own && read("cmdline").contains("execute\0-")
    })
}
