//! Plans and commands about agents that are mistakes: refused with the place, and nothing is created.

use std::fs;

use crate::agent_sites::Program;
use crate::neph::TestFolder;

/// A plan of one message.
fn plan(sites: &str, from: &str) -> String {
    format!(
        "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = 1\n{sites}\
         [[endpoint]]\nname = \"e\"\nurl = \"ws://127.0.0.1:1\"\n{from}"
    )
}

/// A site with an agent.
const ONE_AGENT_PLAN: &str = "[[site]]\nname = \"s\"\nagent = \"a\"\n";

#[test]
fn a_plan_whose_sites_cannot_be_is_refused_with_the_place() {
    let folder = TestFolder::empty();
    let two_sites = format!("{ONE_AGENT_PLAN}[[site]]\nname = \"t\"\nagent = \"b\"\n");
    let lab = format!("{ONE_AGENT_PLAN}[lab]\ntopology = \"t.toml\"\nprober = \"p\"\n");
    for (text, part) in [
        (
            plan("[[site]]\nname = \"s\"\nagent = \"A_b\"\n", ""),
            "cannot be the name of an agent",
        ),
        (
            plan(&format!("{ONE_AGENT_PLAN}{ONE_AGENT_PLAN}"), ""),
            "there are two sites 's'",
        ),
        (plan(&two_sites, ""), "several sites, but no 'from'"),
        (plan(&two_sites, "from = \"u\"\n"), "there is no site 'u'"),
        (
            plan(&lab, ""),
            "a [lab] or a [[site]] with an agent, not both",
        ),
        (
            plan("every = \"5ms\"\n", ""),
            "p.toml:5:9: a block takes 10 ms (1 round of experiments), which does not",
        ),
    ] {
        fs::write(folder.path("p.toml"), text).expect("writable");
        let ran = folder.neph(["check", "p.toml"]);
        assert!(
            ran.status == 2 && ran.err.contains(part),
            "{part}: {}",
            ran.err
        );
    }
}

/// The folder of a controller that has run.
fn make_controller(folder: &TestFolder, name: &str) {
    let serve = [
        "control",
        "serve",
        "--control",
        name,
        "--listen",
        "127.0.0.1:0",
    ];
    drop(Program::start(folder, &serve, "listening at"));
}

#[test]
fn invalid_agent_commands_are_refused() {
    let folder = TestFolder::empty();
    fs::write(folder.path("p.toml"), plan(ONE_AGENT_PLAN, "")).expect("writable");
    make_controller(&folder, "c");
    fs::write(folder.path("q.toml"), plan("", "")).expect("writable");
    for (arguments, part) in [
        (vec!["run", "p.toml"], "add --control FOLDER"),
        (
            vec!["run", "q.toml", "--control", "c"],
            "--control has no effect",
        ),
        (
            vec!["run", "p.toml", "--control", "none"],
            "the folder of no controller",
        ),
        (
            vec!["run", "p.toml", "--control", "c"],
            "site 's': agent a is not enrolled or was revoked",
        ),
        (
            vec!["agents", "--control", "d"],
            "on another host give --controller",
        ),
        (
            vec!["control", "revoke", "a", "--control", "c"],
            "there is no agent a",
        ),
        (
            vec!["control", "invite", "A", "--control", "c"],
            "cannot be an agent's name",
        ),
        (
            vec!["agent", "--controller", "ws://h:1"],
            "write wss://HOST:PORT",
        ),
        (
            vec!["agent", "--controller", "wss://h:1"],
            "give the line that neph control invite",
        ),
        (
            vec!["agent", "--controller", "wss://h:1", "--invite", "x"],
            "this is no invitation",
        ),
    ] {
        let ran = folder.neph(arguments.iter().copied());
        assert!(
            ran.status == 2 && ran.err.contains(part),
            "{arguments:?}: {}",
            ran.err
        );
    }
    for refused in ["d", ".neph"] {
        assert!(!folder.path(refused).exists(), "{refused} was created");
    }
}
