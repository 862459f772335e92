//! Which circuits share a link: agents in a lab, of whose circuits two go over one link of 20 Mbit/s and one has a
//! link of its own. Needs root.

use std::fs;

use neph_agent::policy::POLICY_FILE;
use serde_json::Value;

use crate::agent_sites::{Program, policy_for_this_host};
use crate::labs::{LabGuard, privileged};
use crate::neph::TestFolder;

/// Each circuit: from, address, to, address.
const CIRCUITS: [[&str; 4]; 3] = [
    ["a1", "10.87.0.1", "b1", "10.87.0.11"],
    ["a2", "10.87.0.2", "b2", "10.87.0.12"],
    ["a3", "10.87.0.3", "b3", "10.87.0.13"],
];

const CONTROLLER: &str = "wss://10.87.0.21:7443";

/// The first two circuits go over the link of both routers, the third over one of its own.
fn topology() -> String {
    const LIMITED: &str = "delay = \"2ms\"\nqueue = \"100 packets\"\n\
        a_to_b = { rate = \"20Mbit/s\" }\nb_to_a = { rate = \"20Mbit/s\" }\n";
    let mut text = "version = 1\n".to_owned();
    for (name, address) in [("r1", "10.87.0.21"), ("r2", "10.87.0.22")] {
        text.push_str(&format!(
            "[[router]]\nname = \"{name}\"\naddress = \"{address}/24\"\n"
        ));
    }
    for [from, at, to, forward] in CIRCUITS {
        for (name, address, router) in [(from, at, "r1"), (to, forward, "r2")] {
            text.push_str(&format!(
                "[[site]]\nname = \"{name}\"\naddress = \"{address}/24\"\n[[link]]\na = \"{name}\"\nb = \"{router}\"\n"
            ));
        }
    }
    text.push_str(&format!("[[link]]\na = \"r1\"\nb = \"r2\"\n{LIMITED}"));
    text.push_str(&format!("[[link]]\na = \"a3\"\nb = \"b3\"\n{LIMITED}"));
    text
}

/// The second and the third circuit are declared to share something: nobody asks whether they do.
fn plan() -> String {
    let mut text = "version = 1\nname = \"three\"\ninterval = \"10ms\"\nmessages = 10\n\
        [[shared_link]]\nname = \"declared\"\nendpoints = [\"to b2\", \"to b3\"]\n"
        .to_owned();
    for [from, at, to, forward] in CIRCUITS {
        text.push_str(&format!(
            "[[site]]\nname = \"{from}\"\nagent = \"{from}\"\naddress = \"{at}\"\n\
             [[site]]\nname = \"{to}\"\nagent = \"{to}\"\naddress = \"{forward}\"\n\
             reflector = [\"--listen\", \"0.0.0.0:8600\", \"--throughput\"]\n\
             [[endpoint]]\nname = \"to {to}\"\nurl = \"udp://{to}:8600\"\nfrom = \"{from}\"\n"
        ));
    }
    text
}

/// Starts neph at a site, and waits for its word.
fn start(lab: &LabGuard, site: &str, arguments: &[&str], expected_line: &str) -> Program {
    let mut args = vec!["lab", "run", site, "--lab", &lab.name, "--"];
    args.push(env!("CARGO_BIN_EXE_neph"));
    args.extend(arguments);
    Program::start(&lab.folder, &args, expected_line).0
}

/// A controller at the first router, and an agent at each site.
fn start_all(lab: &LabGuard) -> Vec<Program> {
    let test_folder = &lab.folder;
    let mut serve = vec!["control", "serve", "--control", "control"];
    serve.extend(["--listen", "10.87.0.21:7443"]);
    let mut programs = vec![start(lab, "r1", &serve, "listening at")];
    for site in CIRCUITS.iter().flat_map(|[from, _, to, _]| [*from, *to]) {
        let folder = test_folder.path(site);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join(POLICY_FILE), policy_for_this_host()).expect("a file");
        let invite = ["control", "invite", site, "--control", "control"];
        let invited = test_folder.neph(invite).out;
        let mut args = vec!["agent", "--controller", CONTROLLER, "--folder", site];
        args.extend(["--invite", invited.trim()]);
        programs.push(start(lab, site, &args, "connected"));
    }
    programs
}

#[test]
fn circuits_over_one_link_are_found_and_others_are_not() {
    if !privileged("circuits_over_one_link_are_found_and_others_are_not") {
        return;
    }
    let lab = LabGuard::up(&topology(), 'i');
    let folder = &lab.folder;
    let _programs = start_all(&lab);
    fs::write(folder.path("p.toml"), plan()).expect("a file");
    let mut args = vec!["control", "interference", "p.toml", "--control", "control"];
    args.extend(["--duration", "1s", "--blocks", "8"]);
    // Circuits that interfere lose half. On a busy machine one that stands still for 100 ms loses 10 % of a second.
    args.extend(["--margin", "25%"]);
    let ran = folder.neph(args);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.contains("2 pairs of circuits"), "{}", ran.err);
    assert!(ran.err.contains("1 pair not measured"), "{}", ran.err);
    for part in [
        "Circuits 'a1 -> to b1' and 'a2 -> to b2' interfere.",
        "Circuits 'a1 -> to b1' and 'a3 -> to b3' do not interfere (margin 25 %).",
        "\n[[shared_link]]\nname = \"found by interference 1\"\ncircuits = [\"a1 -> to b1\", \"a2 -> to b2\"]\n",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    a_wider_margin_has_another_answer(folder);
    what_is_declared_is_not_measured(folder, &ran.out);
}

/// The same results once more, with a margin that half of the goodput is within.
fn a_wider_margin_has_another_answer(folder: &TestFolder) {
    let mut args = vec!["control", "interference", "--campaign", "last"];
    args.extend(["--margin", "60%", "--format", "json"]);
    let out = folder.neph(args).out;
    let second: Value = serde_json::from_str(&out).expect("JSON");
    let share = second["pairs"][0]["circuits"][0]["share_percent"].as_f64();
    assert!(
        share.is_some_and(|share| (40.0..60.0).contains(&share)),
        "{second}"
    );
    let answers = second["pairs"].as_array().expect("pairs").iter();
    let mut answers = answers.map(|answer| &answer["verdict"]);
    assert!(answers.all(|verdict| verdict == "independent"), "{second}");
}

/// The lines that were printed keep both circuits apart; with another pair declared, one pair is left.
fn what_is_declared_is_not_measured(folder: &TestFolder, printed: &str) {
    let lines = printed.split("Add to the plan:").nth(1).expect("lines");
    let declared = plan().replace("[\"to b2\", \"to b3\"]", "[\"to b1\", \"to b3\"]");
    fs::write(folder.path("p.toml"), declared + lines).expect("a file");
    let ran = folder.neph(["control", "interference", "p.toml", "--print-plan"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let circuits_on_one_link = "a2 -> to b2, with a3 -> to b3";
    assert!(ran.out.contains(circuits_on_one_link), "{}", ran.out);
    assert!(!ran.out.contains("a1 -> to b1"), "{}", ran.out);
}

#[test]
fn invalid_interference_tests_are_refused() {
    let folder = TestFolder::empty();
    fs::write(folder.path("p.toml"), plan()).expect("a file");
    let lab = "version = 1\nname = \"p\"\ninterval = \"1s\"\nmessages = 9\n\
               [[endpoint]]\nname = \"b\"\nurl = \"udp://10.80.0.2:8080\"\n";
    fs::write(folder.path("q.toml"), lab).expect("a file");
    for (arguments, part) in [
        (vec!["q.toml"], "no site with an agent"),
        (vec!["p.toml"], "add --control FOLDER"),
        (
            vec!["p.toml", "--bytes", "1MB"],
            "more than the 976.6 KiB that are allowed",
        ),
        (vec!["p.toml", "--margin", "100%"], "a share below 100%"),
        (vec!["--campaign", "last"], ""),
        (vec![], "PLAN"),
    ] {
        let args = ["control", "interference"]
            .into_iter()
            .chain(arguments.iter().copied());
        let ran = folder.neph(args);
        let is_usage = ran.status == 2 || part.is_empty();
        assert!(
            is_usage && ran.status != 0 && ran.err.contains(part),
            "{arguments:?}: {}",
            ran.err
        );
    }
    let printed = folder
        .neph(["control", "interference", "p.toml", "--print-plan"])
        .out;
    fs::write(folder.path("designed.toml"), printed).expect("a file");
    let ran = folder.neph(["check", "designed.toml"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
}
