//! `neph rr` at the command line, over loopback and over links of the lab.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::labs::privileged;
use crate::neph::{command, eventually, neph, send_signal};
use crate::throughputs::{ServerBehindLink, ThroughputServer, document, number};

#[test]
fn each_kind_is_measured_in_each_format() {
    let host = ThroughputServer::start(&[]);
    for (option, test) in [
        ("--udp", "udp_rr"),
        ("--tcp", "tcp_rr"),
        ("--connect", "tcp_crr"),
    ] {
        let ran = neph(["rr", &host.address, option, "-w", "2s", "--format", "json"]);
        let shown = document(&ran);
        assert_eq!(
            (&shown["schema"], &shown["test"]),
            (&2.into(), &test.into())
        );
        assert_eq!(
            (&shown["lost"], &shown["fault"]),
            (&0.into(), &Value::Null),
            "{test}"
        );
        let (rtt, count) = (&shown["rtt"], number(&shown["transactions"]));
        assert!(count > 1_000.0, "{shown}");
        let order = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"].map(|key| number(&rtt[key]));
        assert!(order.is_sorted(), "{rtt}");
        let buckets = shown["histogram"].as_array().expect("a list");
        let counted: f64 = buckets.iter().map(|bucket| number(&bucket["count"])).sum();
        assert!((counted - count).abs() < 0.5, "{counted} {count}");
        let seconds = shown["seconds"].as_array().expect("a list");
        let counted: f64 = seconds
            .iter()
            .map(|second| number(&second["transactions"]))
            .sum();
        assert!(
            (counted - count).abs() < 0.5 && seconds.len() == 2,
            "{counted} {count}"
        );
        assert!(shown["server_end"]["thread_percent"].is_number());
    }
    let text = neph(["rr", &host.address, "-w", "1s"]);
    assert_eq!(text.status, 0, "{}", text.err);
    assert!(text.out.contains("\nUDP_RR: "), "{}", text.out);
    let csv = neph(["rr", &host.address, "-w", "1s", "--format", "csv"]);
    assert_eq!(csv.out.lines().count(), 2, "{}", csv.out);
    let lines = neph([
        "rr",
        &host.address,
        "-w",
        "1s",
        "--busy-poll",
        "--format",
        "ndjson",
    ]);
    let kinds: Vec<Value> = lines
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone())
        .collect();
    assert_eq!(kinds, ["second", "summary"], "{}", lines.err);
}

#[test]
fn invalid_or_refused_transaction_requests_are_reported() {
    let serving = ThroughputServer::start(&["--max-duration", "5s", "--max-streams", "2"]);
    let address = serving.address.as_str();
    for (args, status, why) in [
        ("-w 6s", 1, "this server allows at most 5"),
        ("-w 1s -n 3", 1, "this server allows at most 2"),
        ("-w 1ms", 2, "write 100ms to 24h"),
        ("--request 15", 2, "--request 15 B: write 16 to 65507 bytes"),
        ("--reply 15", 2, "--reply 15 B: write 16 to 65507 bytes"),
        ("--connect --request 1", 2, "write 16 to 1048576 bytes"),
        ("--tcp --reply 2MiB", 2, "write 1 to 1048576 bytes"),
        ("--timeout 2min", 2, "write 1ms to 60s"),
    ] {
        let ran = neph(["rr", address].into_iter().chain(args.split(' ')));
        assert_eq!(ran.status, status, "{args}: {}", ran.err);
        assert!(ran.err.contains(why), "{args}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{args}: {}", ran.err);
    }
    for args in ["--udp --tcp", "--tcp --timeout 2s", "--connect --busy-poll"] {
        let ran = neph(["rr", address].into_iter().chain(args.split(' ')));
        assert_eq!(ran.status, 2, "{args}: {}", ran.err);
    }
    let address_after_drop = serving.address.clone();
    drop(serving);
    let ran = neph(["rr", &address_after_drop]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err.contains("is neph throughput serve there?"),
        "{}",
        ran.err
    );
}

#[test]
fn ctrl_c_prints_the_result_and_frees_the_transaction_server() {
    let serving = ThroughputServer::start(&[]);
    let mut client = command();
    client.args(["rr", &serving.address, "-w", "5min", "--connect"]);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = client.spawn().expect("neph runs");
    let mut out = client.stdout.take().expect("it is piped");
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    // The heading, and a second.
    eventually("a second is shown", Duration::from_secs(20), || {
        let count = out.read(&mut buffer).expect("it can be read");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        text.lines().count() >= 2
    });
    send_signal("INT", client.id());
    out.read_to_string(&mut text).expect("it ends");
    assert_eq!(client.wait().expect("it ends").code(), Some(130));
    assert!(text.contains("\nTCP_CRR: "), "{text}");
    let next = neph(["rr", &serving.address, "-w", "200ms"]);
    assert_eq!(next.status, 0, "{}", next.err);
}

#[test]
fn an_injected_delay_appears_in_the_median_of_each_kind() {
    if !privileged("an_injected_delay_appears_in_the_median_of_each_kind") {
        return;
    }
    // 5 ms each way: a round trip of 10 ms, and one more to open a connection.
    let linked = ServerBehindLink::up("delay = \"5ms\"", 'v');
    for (options, round_trips) in [("--udp", 1.0), ("--tcp", 1.0), ("--connect", 2.0)] {
        let shown = linked.measured("rr", &format!("{options} -w 3s"));
        let median = number(&shown["rtt"]["p50_ns"]) / 1e6;
        let minimum = round_trips * 10.0;
        assert!(
            (minimum..minimum + 1.5).contains(&median),
            "{options}: {median} ms"
        );
        assert_eq!(shown["lost"], 0, "{options}");
        let rate = number(&shown["transactions_per_s"]);
        assert!(
            (rate * median / 1e3 - 1.0).abs() < 0.1,
            "{options}: {rate} at {median} ms"
        );
    }
}

#[test]
fn an_injected_loss_is_counted_with_its_waiting_time() {
    if !privileged("an_injected_loss_is_counted_with_its_waiting_time") {
        return;
    }
    let linked = ServerBehindLink::up("delay = \"1ms\"\nloss = \"2%\"", 'w');
    let shown = linked.measured("rr", "-n 4 -w 8s --timeout 20ms");
    let (count, lost) = (number(&shown["transactions"]), number(&shown["lost"]));
    // A request and a reply are lost with 2 % each.
    let (total, share) = (count + lost, 1.0 - 0.98 * 0.98);
    let deviation = (total * share * (1.0 - share)).sqrt();
    assert!(total > 3_000.0, "{total}");
    assert!(
        (lost - total * share).abs() < 4.0 * deviation,
        "{lost} of {total}"
    );
    // Half of them on the way to the server: the share of requests among losses is 0.02 of 0.0396.
    let requests = number(&shown["lost_requests"]);
    let half = (lost * 0.25).sqrt();
    assert!(
        (requests - lost * 0.505).abs() < 4.0 * half,
        "{requests} of {lost}"
    );
    let waited = number(&shown["lost_wait_ns"]) / lost / 1e6;
    assert!((20.0..27.0).contains(&waited), "{waited} ms for each");
    assert_eq!(
        (&shown["late"], &shown["duplicates"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        shown["rtt"]["p99_ns"],
        Value::Null,
        "more than 1 % were lost"
    );
}

#[test]
fn a_timeout_below_the_rtt_makes_replies_late_and_not_duplicate() {
    if !privileged("a_timeout_below_the_rtt_makes_replies_late_and_not_duplicate") {
        return;
    }
    let linked = ServerBehindLink::up("delay = \"30ms\"", 'x');
    let shown = linked.measured("rr", "-w 3s --timeout 25ms");
    let (lost, late) = (number(&shown["lost"]), number(&shown["late"]));
    assert_eq!(
        (&shown["transactions"], &shown["duplicates"]),
        (&0.into(), &0.into())
    );
    // The last two or three are under way at the end.
    assert!(
        lost > 70.0 && (lost - 4.0..lost).contains(&late),
        "{late} of {lost}"
    );
    assert_eq!(shown["rtt"]["p50_ns"], Value::Null);
}
