//! Agents at other sites: enrolled by invitation, ordered by a campaign, killed at any moment.

use std::collections::BTreeMap;
use std::fs;

use neph_agent::policy::{DEFAULT_POLICY, POLICY_FILE};
use serde_json::Value;

use crate::agent_sites::{BLOCKS, MESSAGES, Program, SITES, Sites, has_no_orders, is_empty};
use crate::neph::{TIMEOUT, eventually};
use crate::servers::free_port;

#[test]
fn experiments_are_stored_once_despite_killed_processes() {
    let mut sites = Sites::new(&["127.0.0.1"]);
    let run = sites.run(&["run", "p.toml"]);
    sites.wait_until_measuring("ams");
    sites.agents.remove("ams").expect("it runs").kill();
    sites.start_agent("ams", None);
    sites.wait_until_measuring("lju");
    sites.controller.take().expect("it runs").kill();
    sites.start_controller();
    sites.wait_until_measuring("ams");
    run.kill();
    let mut ended = 1;
    for _ in 0..3 {
        let mut resumed = sites.run(&["resume"]);
        ended = resumed.0.wait().expect("it ends").code().unwrap_or(1);
        if ended == 0 {
            break;
        }
    }
    let experiments = sites.experiments();
    assert_eq!(ended, 0, "{experiments:?}");
    let mut complete = BTreeMap::new();
    for run in &experiments {
        if run["status"] == "complete" {
            assert_eq!(run["messages"], MESSAGES, "{run}");
            let key = (run["block"].to_string(), run["scenario"].to_string());
            *complete.entry(key).or_insert(0) += 1;
        } else {
            assert_eq!(run["status"], "failed", "{run}");
        }
    }
    assert_eq!(complete.len(), BLOCKS * SITES.len(), "{complete:?}");
    assert!(complete.values().all(|times| *times == 1), "{complete:?}");
    assert!(
        experiments.len() <= BLOCKS * SITES.len() + 2,
        "{experiments:?}"
    );
    eventually("nothing is left of it", TIMEOUT, || {
        has_no_orders(&sites.folder)
            && SITES.iter().all(|site| {
                is_empty(&sites.folder.path(&format!("agent-{site}/orders")))
                    && is_empty(&sites.folder.path(&format!("agent-{site}/journals")))
            })
    });
}

#[test]
fn orders_refused_by_policy_are_tried_once_and_listed() {
    let mut sites = Sites::new(&["127.0.0.1"]);
    sites.agents.remove("ams");
    let path = sites.folder.path("agent-ams").join(POLICY_FILE);
    fs::write(&path, DEFAULT_POLICY).expect("writable");
    sites.start_agent("ams", None);
    let ran = sites
        .folder
        .neph(["run", "p.toml", "--control", "control", "-q", "--no-report"]);
    assert_ne!(ran.status, 0, "{}", ran.err);
    let experiments = sites.experiments();
    assert_eq!(experiments.len(), BLOCKS * SITES.len(), "{experiments:?}");
    for experiment in experiments {
        let site = experiment["scenario"].as_str().expect("a label");
        let expected = if site.contains("at ams") {
            "failed"
        } else {
            "complete"
        };
        assert_eq!(experiment["status"], expected, "{experiment}");
    }
    eventually("it is listed", TIMEOUT, || {
        let text = sites.neph(&["agents", "--control", "control", "--format", "json"]);
        let entries: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let ams = entries
            .iter()
            .find(|entry| entry["agent"] == "ams")
            .expect("enrolled");
        ams["refusals"]["target"].as_u64() >= Some(1)
    });
}

#[test]
fn a_policy_that_is_not_there_or_not_understood_allows_nothing() {
    let sites = Sites::new(&["127.0.0.1"]);
    let path = sites.folder.path("other");
    let second = [
        "agent",
        "--controller",
        "wss://127.0.0.1:1",
        "--folder",
        "agent-ams",
        "--policy",
        "other",
    ];
    for (text, part) in [
        ("version = 1\n", "'kinds' is missing"),
        ("version = 1\nkinds = [\"icpm\"]\n[targets]\n", "icmp"),
    ] {
        fs::write(&path, text).expect("writable");
        let ran = sites.folder.neph(second);
        assert!(
            ran.status == 2 && ran.err.contains(part),
            "{part}: {}",
            ran.err
        );
    }
    fs::remove_file(&path).expect("it was there");
    let ran = sites.folder.neph(second);
    assert!(
        ran.status == 2 && ran.err.contains("does nothing without one"),
        "{}",
        ran.err
    );
    let text = DEFAULT_POLICY.replace("# controllers = [", "controllers = [");
    fs::write(&path, text).expect("writable");
    let ran = sites.folder.neph(second);
    assert!(
        ran.status == 2 && ran.err.contains("does not allow controller"),
        "{}",
        ran.err
    );
}

/// Each site and each endpoint is used by one experiment at a time, as the stored times show; the two
/// circuits of a round overlap.
#[test]
fn circuits_in_conflict_never_overlap_and_those_of_a_round_do() {
    let sites = Sites::new(&["127.0.0.1", "localhost"]);
    let ended = sites.run(&["run", "p.toml"]).0.wait().expect("it ends");
    assert!(ended.success());
    let show = |entry: Value| {
        let id = entry["id"].as_str().expect("an id");
        let text = sites.neph(&["show", id, "--format", "json"]);
        let shown: Value = serde_json::from_str(&text).expect("JSON");
        shown["experiment"].clone()
    };
    let experiments: Vec<Value> = sites.experiments().into_iter().map(show).collect();
    assert_eq!(experiments.len(), BLOCKS * 4, "{experiments:?}");
    let end = |entry: &Value| entry["ended_unix_ns"].as_i64().expect("an end");
    let start = |entry: &Value| entry["started_unix_ns"].as_i64().expect("a start");
    let label = |entry: &Value| entry["scenario"].as_str().expect("its label").to_owned();
    let mut pairs = 0;
    for (index, experiment) in experiments.iter().enumerate() {
        for other in &experiments[index + 1..] {
            if start(experiment).max(start(other)) < end(experiment).min(end(other)) {
                pairs += 1;
                let shared = SITES.iter().copied().chain(["127.0.0.1", "localhost"]);
                let shared: Vec<&str> = shared
                    .filter(|name| label(experiment).contains(name) && label(other).contains(name))
                    .collect();
                assert_eq!(shared, [""; 0], "{experiment} {other}");
            }
        }
    }
    assert_eq!(pairs, BLOCKS * 2, "{experiments:?}");
}

/// A plan in which the sites measure each other at these ports of their reflectors.
pub(crate) fn mesh(ports: &[u16], messages: usize) -> String {
    let names = SITES.map(|site| format!("\"{site}\"")).join(", ");
    let mut plan = format!(
        "version = 1\nname = \"mesh\"\ninterval = \"10ms\"\nmessages = {messages}\nblocks = 3\n\
         from = [{names}]\n[companion]\nenabled = false\n"
    );
    for (site, port) in SITES.iter().zip(ports) {
        plan.push_str(&format!(
            "[[site]]\nname = \"{site}\"\nagent = \"{site}\"\naddress = \"127.0.0.1\"\n\
             reflector = [\"--listen\", \"127.0.0.1:{port}\"]\n\
             [[endpoint]]\nname = \"to {site}\"\nurl = \"udp://{site}:{port}\"\n"
        ));
    }
    plan
}

/// Agents that answer for each other: no reflector but theirs.
#[test]
fn sites_measure_each_other_by_reflectors_of_their_agents() {
    let sites = Sites::new(&["127.0.0.1"]);
    let ports: Vec<u16> = SITES.iter().map(|_| free_port()).collect();
    let plan = mesh(&ports, 40);
    fs::write(sites.folder.path("p.toml"), plan).expect("writable");
    let ended = sites.run(&["run", "p.toml"]).0.wait().expect("it ends");
    let experiments = sites.experiments();
    assert!(ended.success(), "{experiments:?}");
    assert_eq!(experiments.len(), 6);
    for experiment in &experiments {
        assert_eq!(
            (&experiment["status"], &experiment["messages"]),
            (&"complete".into(), &40.into()),
            "{experiment}"
        );
        assert_eq!(experiment["lost"].as_u64().unwrap_or(0), 0, "{experiment}");
    }
    eventually("the reflectors have ended", TIMEOUT, || {
        ports
            .iter()
            .all(|port| std::net::TcpStream::connect(("127.0.0.1", *port)).is_err())
            && has_no_orders(&sites.folder)
    });
    // One that its agent refuses will never answer: nothing is measured without it.
    let (mut sites, path) = (sites, "agent-lju/agent.toml");
    sites.agents.remove("lju");
    fs::write(sites.folder.path(path), DEFAULT_POLICY).expect("writable");
    sites.start_agent("lju", None);
    let ran = sites
        .folder
        .neph(["run", "p.toml", "--control", "control", "-q", "--no-report"]);
    let part = "agent lju refuses its reflector: this agent's policy does not allow 'reflector'";
    assert!(
        ran.status == 1 && ran.err.contains(part),
        "{}: {}",
        ran.status,
        ran.err
    );
    let answers = std::net::TcpStream::connect(("127.0.0.1", ports[0])).is_ok();
    assert!(!answers, "the reflector at ams has ended before the run");
}

/// What was measured while its reflector was killed is no loss of the network.
#[test]
fn an_experiment_whose_reflector_is_killed_fails_and_is_tried_anew() {
    let mut sites = Sites::new(&["127.0.0.1"]);
    let ports: Vec<u16> = SITES.iter().map(|_| free_port()).collect();
    fs::write(sites.folder.path("p.toml"), mesh(&ports, 600)).expect("writable");
    let mut run = sites.run(&["run", "p.toml"]);
    sites.wait_until_measuring("lju");
    sites.agents.remove("ams").expect("it runs").kill();
    sites.start_agent("ams", None);
    assert!(run.0.wait().expect("it ends").success());
    let experiments = sites.experiments();
    let complete = experiments.iter().filter(|run| run["status"] == "complete");
    assert_eq!(complete.clone().count(), 6, "{experiments:?}");
    for entry in complete {
        assert_eq!(entry["lost"].as_u64().unwrap_or(0), 0, "{entry}");
    }
    let show = |entry: &Value| sites.neph(&["show", entry["id"].as_str().expect("an id")]);
    let failed = experiments.iter().filter(|run| run["status"] == "failed");
    let reasons: Vec<String> = failed.map(show).collect();
    let part = "the reflector at agent ams did not run during all of the experiment";
    assert!(
        reasons.iter().any(|text| text.contains(part)),
        "{reasons:?}"
    );
}

#[test]
fn labels_of_an_agent_are_listed() {
    let mut sites = Sites::new(&["127.0.0.1"]);
    sites.agents.remove("ams");
    let controller = format!("wss://127.0.0.1:{}", sites.port);
    let mut args = vec!["agent", "--controller", &controller];
    args.extend(["--folder", "agent-ams"]);
    args.extend(["--label", "region=eu", "--label", "cloud=aws"]);
    let (program, _) = Program::start(&sites.folder, &args, "connected to");
    sites.agents.insert("ams", program);
    eventually("they are listed", TIMEOUT, || {
        let text = sites.neph(&["agents", "--control", "control", "--format", "json"]);
        let entries: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let of = |name: &str| {
            entries
                .iter()
                .find(|row| row["agent"] == name)
                .map(|row| &row["labels"])
        };
        let wanted = serde_json::json!({"cloud": "aws", "region": "eu"});
        of("ams") == Some(&wanted) && of("lju") == Some(&serde_json::json!({}))
    });
    let shown = sites.neph(&["agents", "show", "ams", "--control", "control"]);
    assert!(shown.contains("cloud=aws, region=eu"), "{shown}");
    let shown = ["agents", "show", "ams", "--control", "control", "--format"];
    let shown = sites.neph(&[&shown[..], &["json"]].concat());
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert!(shown["agent"]["last_seen_unix_ns"].is_i64(), "{shown}");
    sites.agents.remove("ams").expect("it runs").kill();
    eventually("an agent that is away keeps them", TIMEOUT, || {
        let text = sites.neph(&["agents", "--control", "control"]);
        let line = text.lines().find(|line| line.starts_with("ams"));
        line.is_some_and(|line| {
            let has_version = line.contains(env!("CARGO_PKG_VERSION"));
            line.contains("away") && line.contains("cloud=aws, region=eu") && has_version
        })
    });
    args.extend(["--label", "cloud=gcp"]);
    let ran = sites.folder.neph(args.iter().copied());
    assert!(
        ran.status == 2 && ran.err.contains("given twice"),
        "{}",
        ran.err
    );
    args.extend(["--label", "Cloud"]);
    let ran = sites.folder.neph(args);
    assert!(
        ran.status == 2 && ran.err.contains("write KEY=VALUE"),
        "{}",
        ran.err
    );
}
