//! `neph run` where an endpoint is not one machine: a balancer in front of two, and a name whose address
//! changes between blocks.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use neph_sys::process;
use serde_json::Value;

use crate::neph::{TIMEOUT, TestFolder, eventually};
use crate::pings::reflector;
use crate::servers::{Server, free_port, haproxy, reflector_with_other_clock, serve, skip};

pub(crate) fn json(folder: &TestFolder, arguments: &[&str]) -> Value {
    let json_arguments = arguments.iter().copied().chain(["--format", "json"]);
    let ran = folder.neph(json_arguments);
    assert_eq!(ran.status, 0, "{arguments:?}: {}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

/// The ids of the last campaign's experiments.
pub(crate) fn experiments(folder: &TestFolder) -> Vec<String> {
    let listed = json(folder, &["list", "last"]);
    let rows = listed["experiments"].as_array().or(listed.as_array());
    let rows = rows.map(Vec::as_slice).unwrap_or_default();
    let id = |row: &Value| row["id"].as_str().expect("an id").to_owned();
    rows.iter().map(id).collect()
}

#[test]
fn machines_behind_one_address_are_stored_and_shown_by_each_command() {
    let test = "machines_behind_one_address_are_stored_and_shown_by_each_command";
    let test_folder = TestFolder::empty();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let own_reflector = reflector();
    let Some(ahead) = reflector_with_other_clock(test) else {
        return;
    };
    let servers = [
        own_reflector.address(),
        SocketAddr::from(([127, 0, 0, 1], ahead.port)),
    ];
    let Some(balancer) = haproxy(test, &folder, "", &servers) else {
        return;
    };
    let plan = format!(
        "version = 1\nname = \"behind\"\ninterval = \"50ms\"\nmessages = 12\n[[endpoint]]\n\
         name = \"balanced\"\nurl = \"http://127.0.0.1:{}\"\n",
        balancer.port
    );
    fs::write(test_folder.path("p.toml"), plan).expect("a file");
    let ran = test_folder.neph(["run", "p.toml"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    // The end of `neph run` is the report of the terminal.
    let expected = "2 servers answer at the endpoint's address";
    assert!(ran.out.contains(expected), "{}", ran.out);
    let ids = experiments(&test_folder);
    let shown = json(&test_folder, &["show", &ids[0]]);
    let flags = shown["warnings"].to_string();
    assert!(flags.contains("several_backends"), "{flags}");
    for (arguments, part) in [
        (vec!["show", ids[0].as_str()], expected),
        (vec!["list", "last"], expected),
        (vec!["report", "last"], expected),
    ] {
        let ran = test_folder.neph(arguments.iter().copied());
        assert!(ran.out.contains(part), "{arguments:?}: {}", ran.out);
    }
    // Marks of two clocks must not pass for one that is ours.
    assert_eq!(shown["flows"][0]["same_clock"], Value::Bool(false));
}

fn reflector_at(test: &str, address: &str) -> Option<Server> {
    let port = free_port();
    let mut command = process::command(env!("CARGO_BIN_EXE_neph"));
    // `serve` waits until something listens at 127.0.0.1, which 0.0.0.0 includes.
    command.args(["reflect", "--listen", &format!("{address}:{port}")]);
    serve(test, port, &mut command)
}

#[test]
fn a_name_whose_address_changes_between_blocks_is_flagged_and_its_blocks_are_named() {
    let test = "a_name_whose_address_changes_between_blocks_is_flagged_and_its_blocks_are_named";
    let can_mount = process::command("unshare").args(["-m", "true"]).status();
    if !can_mount.is_ok_and(|status| status.success()) {
        return skip(test, "mount namespaces need root");
    }
    let Some(server) = reflector_at(test, "0.0.0.0") else {
        return;
    };
    let folder = TestFolder::empty();
    let hosts = folder.path("hosts");
    let name_at = |address: &str| {
        // In place: the mount shows this very file.
        fs::write(&hosts, format!("{address} moving.test\n")).expect("a file");
    };
    name_at("127.0.0.2");
    let plan = format!(
        "version = 1\nname = \"moving\"\nblocks = 2\nblock_interval = \"3s\"\ninterval = \"50ms\"\n\
         messages = 10\n[[endpoint]]\nname = \"moving\"\nurl = \"ws://moving.test:{}\"\n",
        server.port
    );
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let script = "mount --bind hosts /etc/hosts && exec \"$0\" run p.toml";
    let mut run = process::command("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_neph")])
        .env("NEPH_WORKSPACE", folder.workspace())
        .current_dir(folder.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("unshare runs");
    eventually("the first block is measured", TIMEOUT, || {
        let ran = folder.neph(["list", "last", "--format", "json"]);
        ran.out.contains("\"complete\"")
    });
    name_at("127.0.0.3");
    assert!(run.wait().expect("it ends").success());

    let ids = experiments(&folder);
    assert_eq!(ids.len(), 2);
    let documents: Vec<Value> = ids.iter().map(|id| json(&folder, &["show", id])).collect();
    let target = |document: &Value| document["flows"][0]["target"].to_string();
    assert!(target(&documents[0]).contains("127.0.0.2"));
    assert!(target(&documents[1]).contains("127.0.0.3"));
    let events = |document: &Value| document["events"].to_string();
    assert!(!events(&documents[0]).contains("address_changed"));
    assert!(
        events(&documents[1]).contains("address_changed"),
        "{}",
        documents[1]["events"]
    );
    let flags = documents[1]["warnings"].to_string();
    assert!(flags.contains("address_changed"), "{flags}");
    let report = folder.neph(["report", "last"]);
    for part in ["127.0.0.2", "127.0.0.3"] {
        assert!(report.out.contains(part), "{part}: {}", report.out);
    }
}
