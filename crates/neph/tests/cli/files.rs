//! How many files a process may open, held against what the fleets need that run at the same time.

use std::fs;

use neph_model::ReflectorSpec;
use neph_probe::Reflector;
use neph_sys::process;

use crate::labs::is_root;
use crate::neph::{RunOutput, TestFolder};

/// neph where it may open 150 files: enough for 60 flows, but not for twice as many.
fn limited(folder: &TestFolder, args: &str) -> RunOutput {
    let output = process::command("bash")
        .args(["-c", &format!("ulimit -n 150; exec \"$NEPH\" {args}")])
        .current_dir(folder.path(""))
        .env("NEPH", env!("CARGO_BIN_EXE_neph"))
        .env("NEPH_WORKSPACE", folder.workspace())
        .output();
    RunOutput::from(output.expect("bash"))
}

/// Two fleets of 60 flows that run at the same time.
fn plan(folder: &TestFolder, url: &str) {
    let text = format!(
        "version = 1\nname = \"two\"\ninterval = \"100ms\"\nmessages = 3\nflows = 60\nblocks = 1\n\
         [companion]\nenabled = false\n\
         [[endpoint]]\nname = \"a\"\nurl = \"{url}\"\n\
         [[endpoint]]\nname = \"b\"\nurl = \"{url}\"\n"
    );
    fs::write(folder.path("p.toml"), text).expect("written");
}

fn reflector() -> Reflector {
    let here = ([127, 0, 0, 1], 0).into();
    Reflector::start(&ReflectorSpec::at(here)).expect("a reflector")
}

fn refused(folder: &TestFolder, ran: &RunOutput, expected: &str) {
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(ran.err.contains("('ulimit -n')"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(!folder.workspace().exists(), "nothing is written");
}

#[test]
fn too_many_flows_for_their_files_are_refused_before_anything_is_sent_or_written() {
    let own_reflector = reflector();
    let target = format!("tcp://{}", own_reflector.address());
    let folder = TestFolder::empty();
    let ran = limited(&folder, &format!("flows {target} -n 500 -c 1 --save night"));
    refused(&folder, &ran, "500 flows need 564 files");
    plan(&folder, &target);
    let ran = limited(&folder, "run p.toml --no-report");
    let together = "120 flows that run at the same time need 192 files";
    refused(&folder, &ran, together);
}

#[test]
fn fleets_that_can_do_without_files_share_where_there_are_too_few() {
    let own_reflector = reflector();
    let folder = TestFolder::empty();
    plan(&folder, &format!("udp://{}", own_reflector.address()));
    let ran = limited(&folder, "run p.toml --no-report");
    if is_root() {
        assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    } else {
        refused(&folder, &ran, "or run as root");
    }
}
