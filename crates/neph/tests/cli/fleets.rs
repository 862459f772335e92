//! `neph flows` on loopback: what each format writes, what is refused, and how it ends.

use std::fs::OpenOptions;
use std::net::UdpSocket;
use std::process::Stdio;

use neph_model::{ReflectorCaps, ReflectorSpec};
use neph_probe::Reflector;
use serde_json::Value;

use crate::neph::{RunOutput, TIMEOUT, command, eventually, neph, send_signal};
use crate::pings::{answered_messages, reflector, server, wait_for_end};

/// Eight flows, a few messages of each.
fn measure_flows(target: &str, extra_args: &[&str]) -> RunOutput {
    let base_args = ["flows", target, "-n", "8", "-c", "6", "-i", "100ms"];
    neph(base_args.into_iter().chain(extra_args.iter().copied()))
}

#[test]
fn a_summary_counts_every_message_and_names_one_class() {
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    let ran = measure_flows(&target, &["--advise"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    for part in [
        "8 flows, a message from each every 100 ms; source ports ",
        "8 flows, 48 messages, 48 replies, 0 lost (0.0 %)",
        "\n    1  ",
        "100.0 %",
        "path changes:  0 detected; the measurement is too short to detect all: measure longer",
        "no advice: all flows have the same base latency",
        "caution: Selfish routing",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[test]
fn json_holds_each_flow_and_quiet_json_the_summary_alone() {
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    let ran = measure_flows(&target, &["--format", "json", "--advise"]);
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(document["tally"]["replies"], 48);
    assert_eq!(document["sender"]["sent"], 48);
    assert_eq!(document["flows"].as_array().expect("flows").len(), 8);
    assert_eq!(document["changes"].as_array().expect("changes").len(), 0);
    let pair = &document["pairs"][0];
    assert_eq!(pair["classes"].as_array().expect("classes").len(), 1);
    assert_eq!(pair["advice"]["given"], false);
    assert!(document["from_unix_ns"].as_i64().expect("a moment") > 1_700_000_000_000_000_000);
    let quiet = measure_flows(&target, &["--format", "json", "--quiet"]);
    let document: Value = serde_json::from_str(&quiet.out).expect("one document");
    assert!(document["flows"].is_null() && document["pairs"].is_array());
}

#[test]
fn csv_has_a_line_a_message_and_quiet_csv_a_line_a_flow() {
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    let ran = measure_flows(&target, &["--format", "csv"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 49, "{}", ran.out);
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|line| line.split(',').count() == columns),
        "{}",
        ran.out
    );
    assert!(
        lines[1].contains(",reply,") && lines[1].contains(",kernel,"),
        "{}",
        lines[1]
    );
    let quiet = measure_flows(&target, &["--format", "csv", "--quiet"]);
    assert_eq!(quiet.out.lines().count(), 9, "{}", quiet.out);
}

#[test]
fn bins_are_as_long_as_a_shorter_measurement() {
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    let stdout = measure_flows(&target, &[]).out;
    assert!(stdout.contains("(each flow's median in 1 s; "), "{stdout}");
    let document = measure_flows(&target, &["--format", "json"]).out;
    let document: Value = serde_json::from_str(&document).expect("one document");
    assert_eq!(document["pairs"][0]["bin_ns"], 1_000_000_000_i64);
}

#[test]
fn flows_take_turns_at_several_targets_and_are_renewed() {
    let (first_reflector, other) = (reflector(), reflector());
    let targets =
        [&first_reflector, &other].map(|reflector| format!("udp://{}", reflector.address()));
    let ran = neph([
        "flows",
        &targets[0],
        &targets[1],
        "-n",
        "4",
        "-c",
        "8",
        "-i",
        "50ms",
        "--renew",
        "200ms",
        "--format",
        "json",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(document["pairs"].as_array().expect("pairs").len(), 2);
    let flows = document["flows"].as_array().expect("flows");
    let ports: std::collections::BTreeSet<u64> = flows
        .iter()
        .filter_map(|flow| flow["source_port"].as_u64())
        .collect();
    assert!(ports.len() >= 8, "each slot had two flows: {ports:?}");
    assert_eq!(document["tally"]["messages"], 32);
}

#[test]
fn bad_input_gets_a_sentence_and_status_2() {
    for (arguments, part) in [
        (vec!["http://127.0.0.1"], "no fleets of http flows"),
        (
            vec!["udp://127.0.0.1", "tcp://127.0.0.1:1"],
            "one after the other",
        ),
        (
            vec!["127.0.0.1", "-n", "0"],
            "write a number from 1 to 50000",
        ),
        (
            vec!["127.0.0.1", "-n", "50001"],
            "write a number from 1 to 50000",
        ),
        (
            vec!["127.0.0.1", "--quorum", "5"],
            "no more round trips can agree",
        ),
        (
            vec!["127.0.0.1", "--renew", "100ms"],
            "would end before its first message",
        ),
        (
            vec!["127.0.0.1", "-n", "50000", "-i", "10ms"],
            "more than --rate-cap 60000",
        ),
        (
            vec!["syn://127.0.0.1:1", "-n", "5000"],
            "5000 SYNs a second to each target are more than 200",
        ),
        (
            vec!["127.0.0.1", "::1", "-n", "1"],
            "at least one flow each",
        ),
        (vec!["127.0.0.1", "--site", "nonesuch"], "nonesuch"),
        (
            vec!["127.0.0.1", "-c", "1", "--output", "/nonesuch/file"],
            "/nonesuch/file",
        ),
    ] {
        let ran = neph(["flows"].into_iter().chain(arguments.iter().copied()));
        assert_eq!(ran.status, 2, "{arguments:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn nothing_measured_is_status_1_and_every_message_is_lost() {
    let silent_socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let target = format!("udp://{}", silent_socket.local_addr().expect("an address"));
    let ran = measure_flows(&target, &["--timeout", "200ms"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.out.contains("0 replies, 48 lost (100.0 %)"),
        "{}",
        ran.out
    );
}

#[test]
fn ctrl_c_ends_with_the_summary_and_status_130() {
    let reflector = reflector();
    let mut unlimited = command();
    unlimited.args([
        "flows",
        &format!("udp://{}", reflector.address()),
        "-n",
        "8",
        "-i",
        "50ms",
    ]);
    unlimited.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = unlimited.spawn().expect("neph runs");
    eventually("each flow is answered some times", TIMEOUT, || {
        answered_messages(&reflector) >= 80
    });
    send_signal("INT", running.id());
    let ran = wait_for_end(running);
    assert_eq!(ran.status, 130, "{}", ran.err);
    assert!(
        ran.out.contains("8 flows, ") && ran.out.contains("path changes:"),
        "{}",
        ran.out
    );
}

#[test]
fn a_listening_port_answers_a_fleet_of_syns() {
    let port = server("220 ready\r\n");
    let ran = measure_flows(&format!("syn://127.0.0.1:{port}"), &[]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("48 messages, 48 replies"), "{}", ran.out);
}

#[test]
fn transfers_on_the_ports_of_each_class_are_a_table_and_a_list() {
    let reflector = reflector();
    for scheme in ["tcp", "syn"] {
        let target = format!("{scheme}://{}", reflector.address());
        let ran = measure_flows(&target, &["--transfers", "8"]);
        assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
        for part in [
            "transfer on class",
            "\n                1  ",
            "  1.000     8      8       0",
        ] {
            assert!(ran.out.contains(part), "{part}: {}", ran.out);
        }
        let ran = measure_flows(
            &target,
            &["--transfers", "8", "--format", "json", "--quiet"],
        );
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        let document: Value = serde_json::from_str(&ran.out).expect("one document");
        let class = &document["pairs"][0]["transfers"][0];
        assert_eq!((&class["n"], &class["failed"]), (&8.into(), &0.into()));
        assert!(class["median_ns"].as_i64() > Some(0), "{class}");
        assert!(class["low_ns"].as_i64() <= class["high_ns"].as_i64());
    }
}

#[test]
fn transfers_that_cannot_be_are_refused_before_anything_is_measured() {
    let reflector = reflector();
    let tcp = format!("tcp://{}", reflector.address());
    let third_party_server = format!("syn://127.0.0.1:{}", server("220 ready\r\n"));
    for (arguments, part) in [
        (
            vec!["127.0.0.1", "-c", "1"],
            "need not take the path of a UDP flow",
        ),
        (vec![&*tcp], "with --duration or --count"),
        (
            vec![&*third_party_server, "-n", "9", "-c", "1"],
            "it needs neph reflect there",
        ),
    ] {
        let ran = neph(["flows", "--transfers", "3"].into_iter().chain(arguments));
        assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
}

#[test]
fn requests_over_the_rate_cap_are_reported_with_the_remedy() {
    let caps = ReflectorCaps {
        messages_per_second: 10,
        ..ReflectorCaps::default()
    };
    let spec = ReflectorSpec::at(([127, 0, 0, 1], 0).into());
    let reflector = Reflector::start(&ReflectorSpec { caps, ..spec }).expect("a free port");
    let target = format!("udp://{}", reflector.address());
    let ran = measure_flows(&target, &[]);
    let sentence = ran.out.lines().find(|line| line.contains(" refused "));
    let sentence = sentence.unwrap_or_else(|| panic!("{}", ran.out));
    assert!(sentence.starts_with(&target), "{sentence}");
    assert!(
        sentence.contains("from this address (limit 10 per second)"),
        "{sentence}"
    );
    assert!(
        sentence.contains("start neph reflect with a higher --max-rate"),
        "{sentence}"
    );
    let ran = measure_flows(&target, &["--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    let refused = &document["refused"][0];
    assert_eq!(
        (&refused["endpoint"], &refused["connections"]),
        (&target.into(), &0.into())
    );
    assert!(
        refused["messages"].as_u64().expect("a number") >= 10,
        "{document}"
    );
}

#[test]
fn the_effect_of_awake_is_reported() {
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    let request = OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
    let ran = measure_flows(&target, &["--awake", "--format", "json", "--quiet"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    if request.is_ok() {
        assert!(
            ran.err.contains("all cores of this machine are kept awake"),
            "{}",
            ran.err
        );
        assert_eq!(document["sender"]["cpu_idle_disabled"], true);
        // Another user may not read the device, and the request stands all the same.
        let other = ["--awake", "--format", "json", "--quiet", "--user", "nobody"];
        let ran = measure_flows(&target, &other);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let document: Value = serde_json::from_str(&ran.out).expect("one document");
        assert_eq!(document["sender"]["cpu_idle_disabled"], true);
    } else {
        assert!(
            ran.err.contains("--awake: cores may sleep as ever"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn where_nothing_listens_the_port_is_named_and_standard_error_is_not_empty() {
    let free = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("bound");
    drop(free);
    let ran = measure_flows(
        &format!("udp://{address}"),
        &["--format", "json", "--quiet"],
    );
    assert_eq!(ran.status, 1, "{}", ran.err);
    let expected = format!("nothing listens at UDP {} of 127.0.0.1", address.port());
    assert!(ran.err.contains(&expected), "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(document["interrupted"], false);
    assert_eq!(document["sender"]["late_replies"], 0);
    assert!(document["sender"]["late_p99_ns"].is_i64());
    assert!(document["warnings"].is_array());
    assert!(
        document["no_reply_reasons"][0]
            .as_str()
            .expect("why")
            .contains(&expected)
    );
    // Beside the summary too.
    let ran = measure_flows(&format!("udp://{address}"), &["--quiet"]);
    let (before, after) = ran.out.split_once("(100.0 %)\n").expect("a summary");
    assert!(before.contains("0 replies"), "{}", ran.out);
    assert!(after.trim_start().starts_with(&expected), "{}", ran.out);
}

#[test]
fn syns_to_an_open_and_a_closed_port_read_differently() {
    let open = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let [at, shut] = [&open, &closed].map(|listener| listener.local_addr().expect("bound"));
    drop(closed);
    for (address, expected, (refused, word)) in [
        (
            at,
            "48 answers were SYN-ACK: the port is open",
            (0, "syn-ack"),
        ),
        (shut, "48 answers were RST: the port is closed", (48, "rst")),
    ] {
        let target = format!("syn://{address}");
        let ran = measure_flows(&target, &[]);
        assert!(ran.out.contains(expected), "{}{}", ran.out, ran.err);
        let ran = measure_flows(&target, &["--format", "json", "--quiet"]);
        let document: Value = serde_json::from_str(&ran.out).expect("one document");
        assert_eq!(document["sender"]["refused"], refused, "{}", ran.out);
        let ran = measure_flows(&target, &["--format", "csv"]);
        let mut lines = ran.out.lines();
        assert!(lines.next().is_some_and(|first| first.ends_with(",answer")));
        let printed = lines.filter(|line| line.ends_with(&format!(",{word}")));
        assert_eq!(printed.count(), 48, "{}", ran.out);
    }
}
