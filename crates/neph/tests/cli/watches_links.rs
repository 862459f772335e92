//! `neph watch`: interfaces that go down or away while they are watched, and come up again.

use std::io::{BufRead, Read};
use std::process::Stdio;

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder, run_ip, send_signal, start_and_read_line};
use crate::watches::{exchange, lines, lines_of_kind, with_loopback};

/// The next line that is said: its time as in `2026-11-23 16:58:54 UTC  `, and what follows.
fn next(printed: &mut impl BufRead) -> (String, String) {
    let mut line = String::new();
    printed.read_line(&mut line).expect("it says so");
    let (at, rest) = line.split_once("  ").expect("a time first");
    (at.to_owned(), rest.trim_end().to_owned())
}

fn is_time(text: &str) -> bool {
    text.len() == "2026-11-23 16:58:54 UTC".len() && text.ends_with(" UTC")
}

/// Kinds and names of lines about interfaces, in their order.
fn turns(lines: &[Value]) -> Vec<(&str, &str)> {
    let link_events = lines.iter().map(|line| {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        (text("kind"), text("interface"))
    });
    link_events
        .filter(|(kind, _)| kind.starts_with("interface_"))
        .collect()
}

#[test]
fn capturing_continues_when_an_interface_is_up_again() {
    with_loopback("down", || {
        for direction in [&["--listen", "ring"][..], &[]] {
            let folder = TestFolder::empty();
            let arguments = [&["watch", "lo", "--format", "ndjson"], direction].concat();
            let mut command = folder.command(arguments);
            let (child, mut printed, _) = start_and_read_line(command.stdout(Stdio::piped()));
            exchange("127.0.0.1", 5);
            run_ip("link set lo down");
            let (at, line) = next(&mut printed);
            assert!(is_time(&at), "{at}");
            assert_eq!(line, "lo went down or was removed");
            run_ip("link set lo up");
            let (at, line) = next(&mut printed);
            assert!(is_time(&at), "{at}");
            assert_eq!(line, "lo is up; it is watched");
            exchange("127.0.0.1", 5);
            send_signal("INT", child.id());
            let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
            assert_eq!(ran.status, 130);
            let lines = lines(&ran.out);
            let turns = turns(&lines);
            assert_eq!(turns, [("interface_down", "lo"), ("interface_up", "lo")]);
            assert_eq!(lines_of_kind(&lines, "flow").len(), 2, "{}", ran.out);
        }
    });
}

#[test]
fn an_interface_that_disappears_or_is_down_ends_the_capture_with_its_results() {
    with_loopback("away", || {
        run_ip("link add one type veth peer name one-peer");
        let folder = TestFolder::empty();
        let ran = folder.neph(["watch", "one"]);
        assert_eq!(ran.status, 1);
        assert!(
            ran.err.contains("start neph watch again when it is up"),
            "{}",
            ran.err
        );
        let directions = [&["--listen", "ring"][..], &[]];
        for (is_up, direction) in [true, false]
            .into_iter()
            .flat_map(|up| directions.map(|direction| (up, direction)))
        {
            run_ip("link set one up");
            let arguments = [&["watch", "one", "--format", "ndjson"], direction].concat();
            let mut command = folder.command(arguments);
            let (child, mut printed, _) = start_and_read_line(command.stdout(Stdio::piped()));
            if !is_up {
                run_ip("link set one down");
                next(&mut printed);
            }
            run_ip("link delete one");
            let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
            assert_eq!(ran.status, 1);
            let mut sentence = String::new();
            printed.read_to_string(&mut sentence).expect("text");
            assert!(sentence.contains("one was removed"), "{sentence}");
            let lines = lines(&ran.out);
            assert_eq!(turns(&lines), [("interface_down", "one")]);
            assert_eq!(lines.last().expect("a summary")["kind"], "summary");
            run_ip("link add one type veth peer name one-peer");
        }
    });
}

#[test]
fn an_interface_that_goes_down_is_reported_and_the_others_stay_watched() {
    with_loopback("anydown", || {
        let folder = TestFolder::empty();
        for name in ["one", "two"] {
            run_ip(&format!("link add {name} type veth peer name {name}-peer"));
            run_ip(&format!("link set {name} up"));
        }
        let mut command = folder.command(["watch", "any", "--format", "ndjson"]);
        let (child, mut printed, _) = start_and_read_line(command.stdout(Stdio::piped()));
        let mut wording = |expected: &str| {
            let (at, line) = next(&mut printed);
            assert!(is_time(&at), "{at}");
            assert_eq!(line, expected);
        };
        run_ip("link set one down");
        wording("one went down or was removed; the other interfaces are still watched");
        run_ip("link set one up");
        wording("one is up; it is watched");
        run_ip("link set one down");
        wording("one went down or was removed; the other interfaces are still watched");
        // What was down already is not told again.
        run_ip("link delete one");
        run_ip("link delete two");
        wording("two went down or was removed; the other interfaces are still watched");
        exchange("127.0.0.1", 5);
        send_signal("INT", child.id());
        let ran = RunOutput::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.status, 130);
        let lines = lines(&ran.out);
        let (down, up) = ("interface_down", "interface_up");
        let link_events = [(down, "one"), (up, "one"), (down, "one"), (down, "two")];
        assert_eq!(turns(&lines), link_events);
        assert_eq!(lines_of_kind(&lines, "flow").len(), 1, "{}", ran.out);
    });
}
