//! Campaigns from a host that is not the controller's: enrolled by invitation, cut off when revoked.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use neph_agent::policy::POLICY_FILE;
use serde_json::Value;

use crate::agent_sites::{
    BLOCKS, MESSAGES, Program, SITES, Sites, has_no_orders, policy_for_this_host,
};
use crate::neph::{RunOutput, TIMEOUT, TestFolder, eventually};

/// A controller with agents, and an operator in another folder.
struct OperatorSetup {
    sites: Sites,
    folder: TestFolder,
    url: String,
}

impl OperatorSetup {
    fn new() -> Self {
        let sites = Sites::new(&["127.0.0.1"]);
        let url = format!("wss://127.0.0.1:{}", sites.port);
        let folder = TestFolder::empty();
        fs::copy(sites.folder.path("p.toml"), folder.path("p.toml")).expect("writable");
        let world = Self { sites, folder, url };
        world.invite();
        world
    }

    /// Writes an invitation of operator anna to her folder, in the place of the last one.
    fn invite(&self) {
        let path = self.folder.path("anna.invitation");
        let _ = fs::remove_file(&path);
        let file = path.to_str().expect("UTF-8");
        let mut args = vec!["control", "invite", "--operator", "anna"];
        args.extend(["--control", "control", "-o", file]);
        assert_eq!(self.sites.neph(&args), "", "the line is in the file alone");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // One that is there is kept, and no invitation is made.
        let ran = self.sites.folder.neph(args.iter().copied());
        let part = "anna.invitation exists: an invitation is written to a new file";
        assert!(ran.status == 2 && ran.err.contains(part), "{}", ran.err);
        // Nothing is left where no invitation could be made.
        let args = [
            "control",
            "invite",
            "ams",
            "--control",
            "control",
            "-o",
            "x",
        ];
        let ran = self.sites.folder.neph(args);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(!self.sites.folder.path("x").exists());
    }

    fn revoke(&self) {
        let args = [
            "control",
            "revoke",
            "--operator",
            "anna",
            "--control",
            "control",
        ];
        let ran = self.sites.folder.neph(args);
        assert_eq!(ran.status, 0, "{}", ran.err);
    }

    fn command_args<'a>(&'a self, first: &[&'a str]) -> Vec<&'a str> {
        let mut args = first.to_vec();
        args.extend(["--controller", &self.url]);
        args.extend(["--invite-file", "anna.invitation"]);
        args
    }

    fn neph(&self, first: &[&str]) -> RunOutput {
        self.folder.neph(self.command_args(first))
    }

    fn start(&self, first: &[&str]) -> Program {
        let mut command = self.folder.command(self.command_args(first));
        command.args(["-q", "--no-report"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Program(command.spawn().expect("neph runs"))
    }

    fn experiments(&self) -> Vec<Value> {
        let text = self.folder.neph(["list", "last", "--format", "json"]).out;
        serde_json::from_str(&text).expect("JSON")
    }

    /// Whether each experiment of the plan is stored once, here and nowhere else.
    fn is_whole(&self) {
        let mut complete = BTreeMap::new();
        let experiments = self.experiments();
        for experiment in experiments
            .iter()
            .filter(|experiment| experiment["status"] == "complete")
        {
            assert_eq!(experiment["messages"], MESSAGES, "{experiment}");
            let key = (
                experiment["block"].to_string(),
                experiment["scenario"].to_string(),
            );
            *complete.entry(key).or_insert(0) += 1;
        }
        assert_eq!(complete.len(), BLOCKS * SITES.len(), "{experiments:?}");
        assert!(complete.values().all(|times| *times == 1), "{complete:?}");
        eventually("agents know that it is stored", TIMEOUT, || {
            has_no_orders(&self.folder)
        });
        assert!(!self.sites.folder.workspace().exists());
    }
}

/// Whether the last sentence says why.
fn is_refused(ran: &RunOutput, part: &str) {
    let last = ran.err.trim().lines().last();
    assert!(
        ran.status == 2 && last.is_some_and(|line| line.contains(part)),
        "{part}: {} {}",
        ran.status,
        ran.err
    );
}

#[test]
fn an_operator_runs_a_plan_from_another_host_and_has_its_results() {
    let world = OperatorSetup::new();
    let ran = world.neph(&["run", "p.toml", "-q", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.contains("as operator anna"), "{}", ran.err);
    world.is_whole();

    let listed = world.neph(&["agents", "--format", "json"]);
    let agents: Vec<Value> = serde_json::from_str(&listed.out).expect("JSON");
    let names: Vec<&str> = agents
        .iter()
        .filter_map(|agent| agent["agent"].as_str())
        .collect();
    assert_eq!(names, SITES, "{}", listed.out);
    let shown = world.neph(&["agents", "show", "ams"]);
    assert!(
        shown.out.contains("experiments"),
        "{}{}",
        shown.out,
        shown.err
    );
    let args = ["control", "operators", "--control", "control"];
    let operators = world.sites.neph(&args);
    assert!(operators.contains("anna"), "{operators}");

    // The invitation is used; the key of the first enrolment is in another folder.
    let mut args = world.command_args(&["run", "p.toml"]);
    args.extend(["--operator", "other"]);
    is_refused(&world.folder.neph(args), "the invitation is void");
    world.revoke();
    for command in [["run", "p.toml"], ["agents", "show"]] {
        let mut args = world.command_args(&command);
        args.extend((command[0] == "agents").then_some("ams"));
        is_refused(
            &world.folder.neph(args),
            "knows no operator with this certificate",
        );
    }
}

#[test]
fn an_agent_is_no_operator_and_an_operator_no_agent() {
    let world = OperatorSetup::new();
    assert_eq!(world.neph(&["agents"]).status, 0);
    let agent = world.sites.folder.text("agent-ams");
    let run = ["run", "p.toml", "--controller", &world.url];
    let mut args = run.to_vec();
    args.extend(["--operator", &agent]);
    is_refused(
        &world.folder.neph(args),
        "it is an agent's, not an operator's",
    );
    is_refused(
        &world
            .folder
            .neph(run.into_iter().chain(["--operator", "none"])),
        "none has no operator's certificate",
    );
    is_refused(
        &world
            .folder
            .neph(["run", "p.toml", "--controller", "wss://127.0.0.1:1"]),
        "cannot reach the controller at wss://127.0.0.1:1",
    );
    let hops = ["hops", "--controller", "wss://h:1", "a", "b"];
    let part = "uses agents from their controller's host only";
    is_refused(&world.folder.neph(hops), part);
    let mut runs = run.to_vec();
    runs.extend(["--control", "x"]);
    is_refused(&world.folder.neph(runs), "give one of them");

    let folder = world.folder.path(".neph-operator").join(POLICY_FILE);
    fs::write(folder, policy_for_this_host()).expect("writable");
    let args = [
        "agent",
        "--controller",
        &world.url,
        "--folder",
        ".neph-operator",
    ];
    is_refused(&world.folder.neph(args), "it names no agent");
    world.revoke();
    world.invite();
    let mut args = ["agent", "--controller", &world.url, "--folder", "new"].to_vec();
    args.extend(["--invite-file", "anna.invitation"]);
    is_refused(
        &world.folder.neph(args),
        "the invitation is for operator anna",
    );
    let line = world
        .sites
        .neph(&["control", "invite", "mil", "--control", "control"]);
    fs::write(world.folder.path("anna.invitation"), line).expect("writable");
    let mut args = world.command_args(&["run", "p.toml"]);
    args.extend(["--operator", "new"]);
    is_refused(
        &world.folder.neph(args),
        "invites an agent, not an operator",
    );
}

#[test]
fn a_campaign_of_an_operator_survives_a_kill_of_the_controller_and_a_revocation_ends_it() {
    let mut world = OperatorSetup::new();
    let mut run = world.start(&["run", "p.toml"]);
    world.sites.wait_until_measuring("ams");
    world.sites.controller.take().expect("it runs").kill();
    world.sites.start_controller();
    assert!(run.0.wait().expect("it ends").success());
    world.is_whole();

    let mut run = world.start(&["run", "p.toml"]);
    world.sites.wait_until_measuring("lju");
    world.revoke();
    let ended = run.0.wait().expect("it ends").code();
    assert_eq!(ended, Some(1), "it is cut off");
    is_refused(
        &world.neph(&["resume"]),
        "knows no operator with this certificate",
    );
    world.invite();
    fs::remove_dir_all(world.folder.path(".neph-operator")).expect("it was there");
    let resumed = world.neph(&["resume", "-q", "--no-report"]);
    assert_eq!(resumed.status, 0, "{}", resumed.err);
    world.is_whole();
}
