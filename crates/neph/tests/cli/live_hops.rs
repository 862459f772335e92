//! `neph hops` with live points: two namespaces and a veth between them, one of them "elsewhere" by
//! a program called ssh that enters it.

#[path = "live_hops/kept_captures.rs"]
mod kept_captures;
#[path = "live_hops/outage.rs"]
mod outage;
#[path = "live_hops/unwritable_captures.rs"]
mod unwritable_captures;
#[path = "live_hops/wire.rs"]
mod wire;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

pub(crate) use wire::Wire;

use crate::neph::{
    RunOutput, TIMEOUT, TestFolder, eventually, run_ip, send_signal, start_and_read_line,
};

/// `neph hops` with these points and options, where ssh is this script.
fn hops_command(folder: &TestFolder, ssh: &str, arguments: &[&str]) -> Command {
    let bin = folder.path("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let program = bin.join("ssh");
    fs::write(&program, format!("#!/bin/sh\n{ssh}\n")).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = std::env::var("PATH").expect("a path");
    let mut command = folder.command(["hops"].iter().chain(arguments).copied());
    command
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("TMPDIR", folder.path(""));
    command
}

/// Bytes of a capture without packets.
const HEADER: u64 = 24;
/// What stands for ssh: its options aside, the host is a namespace.
const SSH_ENTERS_NAMESPACE: &str = "while [ \"$1\" != -- ]; do shift; done
exec nsenter --net=/run/netns/${2#*@} sh -c \"$3\"";

/// Has begun to record.
fn start_recording(mut command: Command) -> (Child, BufReader<ChildStderr>) {
    let (child, printed, line) = start_and_read_line(command.stdout(Stdio::piped()));
    assert!(line.starts_with("neph hops: recording "), "{line}");
    (child, printed)
}

/// Ends it as ctrl-C does; gives its status and what it said.
fn interrupt(child: Child, printed: BufReader<ChildStderr>) -> (i32, String) {
    interrupt_with(child, printed, "INT")
}

fn interrupt_with(child: Child, printed: BufReader<ChildStderr>, signal: &str) -> (i32, String) {
    let ran = stop_with_signal(child, printed, signal);
    (ran.status, ran.err)
}

/// What came of it, and all that it said since it began.
fn stop_with_signal(child: Child, mut printed: BufReader<ChildStderr>, signal: &str) -> RunOutput {
    send_signal(signal, child.id());
    let mut ran = RunOutput::from(child.wait_with_output().expect("it ends"));
    printed.read_to_string(&mut ran.err).expect("text");
    ran
}

/// How many datagrams each capture holds, as neph reads it.
fn datagrams(test_folder: &TestFolder, folder: &str, point: &str) -> u64 {
    let ran = test_folder.neph([
        "read",
        &format!("{folder}/{point}.pcap"),
        "--format",
        "ndjson",
    ]);
    assert_eq!(ran.err, "", "the capture is whole");
    let summary: Value =
        serde_json::from_str(ran.out.lines().last().expect("a summary")).expect("JSON");
    summary["files"][0]["packets"].as_u64().expect("a count")
}

#[test]
fn a_remote_point_is_recorded_with_a_local_one() {
    let Some(wire) = Wire::up("ssh") else {
        return;
    };
    let folder = TestFolder::empty();
    let [first, second] = wire.points();
    let arguments = [
        &first, &second, "--save", "kept", "--proto", "udp", "--port", "4002",
    ];
    let command = hops_command(
        &folder,
        SSH_ENTERS_NAMESPACE,
        &arguments.map(|text: &str| text),
    );
    symlink(env!("CARGO_BIN_EXE_neph"), folder.path("bin/neph")).expect("a link");
    let (child, printed) = start_recording(command);
    wire.exchange(20);
    let (status, text) = interrupt(child, printed);
    assert_eq!(status, 130, "{text}");
    for point in ["here", "there"] {
        let line = format!("neph hops: {point}: 40 packets in kept/{point}.pcap, 0 lost");
        assert!(text.contains(&line), "{text}");
        assert_eq!(datagrams(&folder, "kept", point), 40);
    }
    let of_files = "neph hops here@here=kept/here.pcap there@here=kept/there.pcap";
    assert!(text.contains(&format!(": {of_files}\n")), "{text}");
    let ran = folder.neph(of_files.split(' ').skip(1));
    assert!(
        ran.out.contains("here and there have the same clock."),
        "{}",
        ran.out
    );
    let site = &wire.names[0];
    let absent = format!("x=iface:zz@{site}");
    let ran = folder.neph(["hops", &first, &absent, "-w", "1s"]);
    let printed = format!("no interface zz in the network namespace {site}; ip -n {site} link");
    assert!(ran.status == 2 && ran.err.contains(&printed), "{}", ran.err);
    let ran = folder.neph(["hops", &first, &second, "--save", "kept"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err.contains("kept/here.pcap is there already"),
        "{}",
        ran.err
    );
}

#[test]
fn tcpdump_records_where_there_is_no_neph() {
    let Some(wire) = Wire::up("tcpdump") else {
        return;
    };
    let folder = TestFolder::empty();
    let [first, second] = wire.points();
    let arguments = [first.as_str(), &second, "--save", "kept", "--proto", "udp"];
    let (child, printed) = start_recording(hops_command(&folder, SSH_ENTERS_NAMESPACE, &arguments));
    wire.exchange(20);
    let (status, text) = interrupt(child, printed);
    assert_eq!(status, 130, "{text}");
    assert!(
        text.contains("there: 40 packets in kept/there.pcap, 0 lost"),
        "{text}"
    );
    assert_eq!(datagrams(&folder, "kept", "there"), 40);
}

#[test]
fn enough_packets_bytes_or_time_end_all_points() {
    let Some(wire) = Wire::up("enough") else {
        return;
    };
    let [a, b] = &wire.names;
    let points = [format!("here=iface:near@{a}"), format!("iface:far@{b}")];
    for (end, printed) in [
        (["-c", "6"], "here: 6 packets"),
        (["--limit", "300"], "has reached 300 B"),
        (["-w", "10ms"], "0 lost"),
    ] {
        let folder = TestFolder::empty();
        let arguments = [&points[0], &points[1], end[0], end[1], "--proto", "udp"];
        let command = hops_command(&folder, "exit 1", &arguments.map(|text: &str| text));
        let (child, mut err) = start_recording(command);
        wire.exchange(20);
        child.wait_with_output().expect("it ends");
        let mut text = String::new();
        err.read_to_string(&mut text).expect("text");
        assert!(text.contains(printed), "{text}");
        assert_eq!(
            folder.files(),
            ["bin"],
            "captures that nobody asked for are gone"
        );
    }
}

#[test]
fn a_failing_ssh_is_reported_with_its_message() {
    let Some(wire) = Wire::up("refused") else {
        return;
    };
    let folder = TestFolder::empty();
    let [first, second] = wire.points();
    for (ssh, printed) in [
        (
            "echo 'root@b: Permission denied (publickey).' >&2; exit 255",
            "Permission denied (publickey).",
        ),
        ("exit 127", "neither neph nor tcpdump"),
        ("echo Welcome", "no capture"),
    ] {
        let ran = RunOutput::from(
            hops_command(&folder, ssh, &[&first, &second])
                .output()
                .expect("it runs"),
        );
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
        assert!(ran.err.contains(printed), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert_eq!(folder.files(), ["bin"]);
    }
}

#[test]
fn a_failing_remote_point_is_reported_and_no_capture_is_left() {
    let Some(wire) = Wire::up("denied") else {
        return;
    };
    let folder = TestFolder::empty();
    let [a, b] = &wire.names;
    let ssh = format!(
        "case \"$*\" in *root@{b}*) echo 'Permission denied (publickey).' >&2; exit 255 ;; esac\n{SSH_ENTERS_NAMESPACE}"
    );
    let points = [
        format!("one=ssh:root@{a}/near"),
        format!("two=ssh:root@{b}/far"),
    ];
    let arguments = [points[0].as_str(), &points[1], "--save", "kept"];
    fs::create_dir(folder.path("bin")).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_neph"), folder.path("bin/neph")).expect("a link");
    // The second time no capture of the first is in the way.
    for _ in 0..2 {
        let ran = RunOutput::from(
            hops_command(&folder, &ssh, &arguments)
                .output()
                .expect("it runs"),
        );
        let is_reported = ran.err.contains("two: ") && ran.err.contains("Permission denied");
        assert!(ran.status == 1 && is_reported, "{}", ran.err);
    }
}

#[test]
fn a_point_that_ends_early_ends_the_others() {
    let Some(wire) = Wire::up("early") else {
        return;
    };
    let folder = TestFolder::empty();
    let [first, second] = wire.points();
    let arguments = [first.as_str(), &second, "--save", "kept", "--proto", "udp"];
    let command = hops_command(&folder, SSH_ENTERS_NAMESPACE, &arguments);
    symlink(env!("CARGO_BIN_EXE_neph"), folder.path("bin/neph")).expect("a link");
    let (child, printed) = start_recording(command);
    wire.exchange(5);
    run_ip(&format!("-n {} link set far down", wire.names[1]));
    let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
    let text: Vec<String> = printed.lines().map_while(Result::ok).collect();
    let text = text.join("\n");
    assert_eq!(ran.status, 1, "{text}");
    assert!(
        text.contains("there ended") && text.contains("far went down"),
        "{text}"
    );
    assert_eq!(datagrams(&folder, "kept", "here"), 10);
}

#[test]
fn a_second_ctrl_c_prints_the_command_for_the_captures_left() {
    let Some(wire) = Wire::up("twice") else {
        return;
    };
    let folder = TestFolder::empty();
    let [first, second] = wire.points();
    // The other end is not told that it is over, and holds the recording up for its ten seconds.
    let ssh = "while [ \"$1\" != -- ]; do shift; done
sleep 12 | nsenter --net=/run/netns/${2#*@} sh -c \"$3\"";
    let arguments = [first.as_str(), &second, "--proto", "udp"];
    let (child, printed) = start_recording(hops_command(&folder, ssh, &arguments));
    wire.exchange(20);
    send_signal("INT", child.id());
    let path = folder.path(&format!("neph-hops-{}-0", child.id()));
    let is_empty = |point| fs::metadata(path.join(point)).is_ok_and(|file| file.len() <= HEADER);
    eventually("both are written", TIMEOUT, || {
        !is_empty("here.pcap") && !is_empty("there.pcap")
    });
    let (status, text) = interrupt_with(child, printed, "TERM");
    assert_eq!(status, 130, "{text}");
    let lines = text.lines().last().expect("a line");
    let (_, command) = lines.split_once("the captures stay: ").expect(lines);
    let mut commands = command.split(' ').skip(1);
    assert_eq!(commands.next(), Some("hops"));
    let names = ["here=", "there="];
    for (name, word) in names.into_iter().zip(commands) {
        let file = word.strip_prefix(name).expect(word);
        let ran = folder.neph(["read", file]);
        assert_eq!((ran.status == 2, ran.err.as_str()), (false, ""), "{file}");
    }
}

#[test]
fn points_that_are_none_are_refused_in_one_sentence() {
    let folder = TestFolder::empty();
    for (points, printed) in [
        (["iface:", "iface:lo"], "write iface:eth0"),
        (["iface:lo", "iface:lo"], "write NAME= before one"),
        (["iface:lo", "a.pcap"], "record these first"),
        (["iface:lo", "ssh:host"], "write ssh:user@host/eth0"),
        (
            ["iface:lo", "x=iface:no-such-if0"],
            "no interface no-such-if0 here; ip link lists those that are; for another network namespace use iface:INTERFACE@SITE",
        ),
        (
            ["iface:lo", "x=iface:lo@no-such-site"],
            "network namespace does not exist",
        ),
    ] {
        let ran = folder.neph(["hops", points[0], points[1], "-w", "1s"]);
        if ran.err.contains("CAP_NET_RAW") {
            continue;
        }
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(printed), "{}", ran.err);
    }
}
