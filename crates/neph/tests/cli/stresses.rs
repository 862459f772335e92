//! `neph stress` at the command line.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use neph_sys::clock;
use serde_json::Value;

use crate::neph::{command, neph, send_signal, start_and_read_line};
use crate::watches::with_loopback;

#[test]
fn a_load_reports_the_cpu_time_of_each_thread() {
    let ran = neph([
        "stress", "cpu", "--target", "25%", "--cores", "1", "-w", "4s", "--format", "json",
    ]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let [entry] = document.as_array().expect("a list").as_slice() else {
        panic!("{document}")
    };
    assert_eq!(entry["target_percent"], 25.0);
    assert!(
        entry["lasted_ns"].as_i64() >= Some(4_000_000_000),
        "{entry}"
    );
    let worked = entry["achieved_percent"].as_f64().expect("a number");
    // It never works more than is asked, but for a last piece, which is as long as this machine
    // stands still meanwhile; less on one that others use too.
    assert!(worked > 0.0 && worked < 40.0, "{worked}");
    assert!(entry["hashes_per_second"].as_f64() > Some(0.0));
    // What it says and how it ends are one.
    let is_within = (worked - 25.0).abs() <= 3.0;
    assert_eq!(ran.status, i32::from(!is_within), "{}", ran.err);
    assert_eq!(ran.err.contains("was requested"), !is_within, "{}", ran.err);
}

#[test]
fn invalid_cpu_targets_and_cores_are_usage_errors() {
    for (target, cpus) in [("0%", "0"), ("120%", "0"), ("50%", "0,1000"), ("half", "0")] {
        let ran = neph([
            "stress", "cpu", "--target", target, "--cpus", cpus, "-w", "24h",
        ]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
        let why = if cpus == "0" {
            "from 1% to 100%"
        } else {
            "may be used"
        };
        assert!(ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn a_load_reports_once_that_it_is_running() {
    let reflecting = Reflecting::start();
    let to = |kind: &str| format!("{kind} {} -w 1s --announce", reflecting.address);
    for load_text in [
        to("flow"),
        to("stream"),
        "cpu --target 2% -w 1s --announce".to_owned(),
    ] {
        let ran = neph(["stress"].into_iter().chain(load_text.split(' ')));
        let printed = ran
            .err
            .lines()
            .filter(|line| *line == "neph stress: running");
        assert_eq!(printed.count(), 1, "{load_text}: {}", ran.err);
    }
    let stopped_address = reflecting.address.clone();
    drop(reflecting);
    let ran = neph([
        "stress",
        "flow",
        &stopped_address,
        "-w",
        "200ms",
        "--announce",
    ]);
    assert!(!ran.err.contains("neph stress: running"), "{}", ran.err);
}

/// A reflector in the background on a port of its own; ended with this.
struct Reflecting {
    process: Child,
    address: String,
}

impl Reflecting {
    fn start() -> Self {
        let mut reflect = command();
        reflect.args(["reflect", "--listen", "127.0.0.1:0"]);
        let (process, _, line) = start_and_read_line(&mut reflect);
        let address = line.split_whitespace().find(|word| word.contains("127."));
        let address = address.expect("an address").to_owned();
        Self { process, address }
    }
}

impl Drop for Reflecting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What `neph stress` tells of traffic to `address`, in rows.
fn traffic(address: &str, args: &str) -> (i32, Vec<Value>) {
    let args = args.split(' ').map(|word| match word {
        "TARGET" => address,
        word => word,
    });
    let ran = neph(
        ["stress"]
            .into_iter()
            .chain(args)
            .chain(["--format", "json"]),
    );
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    (ran.status, document.as_array().expect("a list").clone())
}

fn number(row: &Value, name: &str) -> u64 {
    row[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {row}"))
}

#[test]
fn a_flow_load_stays_below_its_rate_and_loses_no_byte() {
    let reflecting = Reflecting::start();
    let (status, rows) = traffic(
        &reflecting.address,
        "flow TARGET --rate 8Mbit/s --flows 2 -w 2s",
    );
    assert_eq!((status, rows.len()), (0, 2), "{rows:?}");
    for row in &rows {
        let (sent, lasted) = (number(row, "sent_bytes"), number(row, "lasted_ns"));
        assert_eq!(sent, number(row, "received_bytes"), "{row}");
        assert!(sent > 0 && lasted >= 2_000_000_000, "{row}");
        // Half of the rate each; one message more, as the last one may be due at the end.
        let limit = 4_000_000 / 8 * lasted / 1_000_000_000 + 64 * 1024;
        assert!(sent <= limit, "{row}");
    }
}

#[test]
fn requests_and_replies_take_turns_and_both_count() {
    let reflecting = Reflecting::start();
    let args = "flow TARGET --reply 10000 --request 500 --rate max -w 500ms";
    let (status, rows) = traffic(&reflecting.address, args);
    assert_eq!((status, rows.len()), (0, 1), "{rows:?}");
    let answered = number(&rows[0], "answered");
    assert!(answered > 0, "{rows:?}");
    assert_eq!(number(&rows[0], "sent_bytes"), answered * 500);
    assert_eq!(number(&rows[0], "reverse_bytes"), answered * 10_000);
    let [back, sent] = ["reverse_bit_s", "received_bit_s"].map(|name| number(&rows[0], name));
    assert!((back / 20).abs_diff(sent) <= 1, "{rows:?}");
}

#[test]
fn a_stream_has_its_rate_and_reports_returned_packets() {
    let reflecting = Reflecting::start();
    let (status, rows) = traffic(&reflecting.address, "stream TARGET --rate 1450kbit/s -w 2s");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    let frames = number(row, "frames");
    // A machine that stands still leaves frames out.
    assert!((1..=50).contains(&frames), "{row}");
    assert_eq!(frames + number(row, "frames_skipped"), 50, "{row}");
    assert!(status == 0 || frames < 50, "{row}");
    let bytes = number(row, "sent_bytes");
    assert!(frames < 50 || bytes >= 1_450_000 / 8 * 2, "{row}");
    let packets = ["sent_packets", "received_packets", "reverse_packets"];
    let [sent, received, back] = packets.map(|name| number(row, name));
    assert!(sent >= received && received >= back && back > 0, "{row}");
}

#[test]
fn a_stream_that_misses_its_rate_ends_in_time_with_an_error() {
    let reflecting = Reflecting::start();
    let args = [
        "stress",
        "stream",
        &reflecting.address,
        "--rate",
        "100Gbit/s",
    ];
    let ran = neph(args.into_iter().chain(["-w", "500ms", "--format", "json"]));
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.err.contains("was sent; frames skipped: "),
        "{}",
        ran.err
    );
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let frames = ["frames", "frames_skipped"].map(|name| number(&document[0], name));
    assert_eq!(frames, [0, 13], "{document}");
}

#[test]
fn traffic_to_a_closed_port_ends_with_an_error() {
    let stopped_address = Reflecting::start().address.clone();
    for kind in ["flow", "stream"] {
        let ran = neph(["stress", kind, &stopped_address, "-w", "200ms"]);
        assert_eq!(ran.status, 1, "{kind}: {}", ran.err);
        assert!(ran.err.contains(&stopped_address), "{kind}: {}", ran.err);
    }
    let ran = neph(["stress", "flow", "127.0.0.1", "--capacity", "50Mbit/s"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(ran.err.contains("needs --rate max"), "{}", ran.err);
    let ran = neph(["stress", "flow", "127.0.0.1", "--rate", "0bit/s"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
}

#[test]
fn a_reflector_that_stops_answering_is_reported_as_a_fault() {
    for args in [
        "flow TARGET --rate max --capacity 10Gbit/s",
        "flow TARGET --rate max --reply 1000",
        "flow TARGET --rate 1Mbit/s",
        "stream TARGET",
    ] {
        let reflecting = Reflecting::start();
        let load_text = format!("stress {args} -w 3s").replace("TARGET", &reflecting.address);
        let mut load = command();
        load.args(load_text.split(' ')).args(["--format", "json"]);
        load.stdout(Stdio::piped()).stderr(Stdio::piped());
        let load = load.spawn().expect("neph runs");
        clock::nap(Duration::from_secs(1));
        send_signal("STOP", reflecting.process.id());
        let ended = load.wait_with_output().expect("it ends");
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{load_text}: {printed}");
        assert!(
            printed.contains("stopped answering after "),
            "{load_text}: {printed}"
        );
        let has_unknown_rate = printed.contains("unknown: not all own flows");
        assert_eq!(
            has_unknown_rate,
            load_text.contains("--capacity"),
            "{printed}"
        );
        let document: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
        assert!(document[0]["fault"].is_string(), "{document}");
        // What was to be sent in three seconds was; waiting for the rest is not among them.
        let lasted = number(&document[0], "lasted_ns");
        assert!(
            (3_000_000_000..4_000_000_000).contains(&lasted),
            "{document}"
        );
    }
}

#[test]
fn too_few_cores_for_the_threads_are_reported_once() {
    let too_many_threads = ["stress", "cpu", "--target", "100%", "--cores", "256"];
    let ran = neph(too_many_threads.into_iter().chain(["-w", "1s"]));
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert_eq!(ran.err.matches("was requested").count(), 1, "{}", ran.err);
    let forward = thread::available_parallelism().map_or(1, usize::from);
    let expected = format!("; --cores {forward} has room\n");
    let first = ran.err.lines().next().expect("a line");
    assert!(
        first.starts_with("neph stress: 256 threads share the "),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(&expected), "{}", ran.err);
    assert!(
        ran.err.contains("was requested: there are too few CPUs"),
        "{}",
        ran.err
    );
    // As many as there are, and more that work less, have room.
    let too_few_cores = [
        "stress", "cpu", "--target", "1%", "--cores", "3", "-w", "50ms",
    ];
    assert!(!neph(too_few_cores).err.contains("share the"));
}

#[test]
fn a_server_that_is_no_reflector_is_reported_without_a_table() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .expect("room");
        // Until it goes, which may be by a reset: closed at once, its hello would meet one.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let ran = neph(["stress", "flow", &address, "-w", "1s"]);
    server.join().expect("it ends");
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("is no neph reflect"), "{}", ran.err);
}

#[test]
fn too_many_threads_are_refused_before_any_starts() {
    let ran = neph([
        "stress", "cpu", "--target", "1%", "--cores", "2000", "-w", "24h",
    ]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("from 1 to 1024"), "{}", ran.err);
}

#[test]
fn a_flow_to_a_closed_port_suggests_to_start_a_reflector() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let ran = neph(["stress", "flow", &address, "-w", "1s"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    let expected =
        "Connection refused (os error 111): start neph reflect there, or name the port of one";
    assert!(ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn where_no_route_leads_to_a_reflector_a_flow_names_the_route() {
    with_loopback("noroute", || {
        let ran = neph(["stress", "flow", "10.73.0.3", "-w", "1s"]);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
        let expected = "no route leads there; see 'ip route get 10.73.0.3'";
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert!(!ran.err.contains("firewall"), "{}", ran.err);
    });
}
