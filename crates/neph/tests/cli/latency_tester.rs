//! The Latency Tester's users: its settings files run, its results are imported and judged.

use std::fmt::Write;
use std::fs;

use neph_sys::process;
use serde_json::Value;

use crate::neph::TestFolder;
use crate::servers::{Server, certificate, free_port, serve};
use crate::undisturbed::measure_undisturbed;

/// A reflector with a certificate of its own, and the certificate's file.
fn self_signed(test: &str) -> Option<(Server, tempfile::TempDir)> {
    let folder = certificate();
    let port = free_port();
    let mut command = process::command(env!("CARGO_BIN_EXE_neph"));
    command
        .args(["reflect", "--listen", &format!("127.0.0.1:{port}")])
        .args(["--cert", "c.pem", "--key", "k.pem"])
        .current_dir(folder.path());
    Some((serve(test, port, &mut command)?, folder))
}

fn settings(port: u16, extra_lines: &str) -> String {
    format!(
        "runs: 1\nruns_step_duration: 1\nendpoints:\n- description: own\n  destination: \
         \"127.0.0.1:{port}\"\nintervals: [100]\nmsg_sizes: [64]\ntls_enabled: true\n{extra_lines}"
    )
}

#[test]
fn settings_with_tls_run_against_a_self_signed_server_with_a_warning() {
    let test = "settings_with_tls_run_against_a_self_signed_server_with_a_warning";
    let Some((server, _folder)) = self_signed(test) else {
        return;
    };
    let folder = TestFolder::empty();
    fs::write(folder.path("s.yaml"), settings(server.port, "")).expect("a file");
    for arguments in [&["run", "s.yaml"][..], &["run", "s.yaml", "--quiet"]] {
        let ran = folder.neph(arguments.iter().copied());
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert!(
            ran.err.contains("WARNING: any certificate is accepted"),
            "{}",
            ran.err
        );
    }
    let ran = folder.neph(["check", "s.yaml"]);
    assert!(ran.err.contains("WARNING: any certificate"), "{}", ran.err);
}

#[test]
fn the_command_line_decides_which_certificates_a_plan_trusts() {
    let test = "the_command_line_decides_which_certificates_a_plan_trusts";
    let Some((server, folder)) = self_signed(test) else {
        return;
    };
    let test_folder = TestFolder::empty();
    let port = server.port;
    let plan = format!(
        "version = 1\nname = \"tls\"\ninterval = \"50ms\"\nmessages = 4\ntries = 1\n[[endpoint]]\n\
         name = \"own\"\nurl = \"wss://127.0.0.1:{port}\"\n"
    );
    fs::write(test_folder.path("p.toml"), &plan).expect("a file");
    let strict = settings(port, "insecure: false\n");
    fs::write(test_folder.path("s.yaml"), strict).expect("a file");
    let file = folder.path().join("c.pem").display().to_string();
    for name in ["p.toml", "s.yaml"] {
        // Neither the plan nor the public authorities trust it.
        assert_eq!(
            test_folder.neph(["run", name, "--no-report"]).status,
            1,
            "{name}"
        );
        for flags in [vec!["--insecure"], vec!["--ca-file", &file]] {
            let ran = test_folder.neph(["run", name, "--no-report"].into_iter().chain(flags));
            assert_eq!(ran.status, 0, "{name}: {}", ran.err);
            assert!(!ran.err.contains("WARNING"), "{}", ran.err);
        }
    }
    let missing = plan.replace("tries = 1", "tries = 1\nca_file = \"nowhere.pem\"");
    fs::write(test_folder.path("m.toml"), missing).expect("a file");
    let ran = test_folder.neph(["check", "m.toml"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err
            .contains("certificate file nowhere.pem cannot be read"),
        "{}",
        ran.err
    );
    fs::write(test_folder.path("plain.toml"), plan.replace("wss", "ws")).expect("a file");
    let ran = test_folder.neph(["run", "plain.toml", "--insecure"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err.contains("no endpoint of the plan has TLS"),
        "{}",
        ran.err
    );
}

const RUNS: i64 = 12;
/// The runs that took the longer path, as a hash of random ports would choose.
const LONGER: [i64; 6] = [1, 2, 5, 7, 8, 11];

/// A folder of results: an endpoint whose round trips are 20 ms in some runs and 32 ms in others, with
/// 3 ms in the server, and the capture of its acknowledgements beside.
fn results(folder: &TestFolder) {
    let raw = folder.path("lt/raw-data");
    fs::create_dir_all(&raw).expect("a folder");
    for run in 1..=RUNS {
        let run_start = 1_611_336_000_000_000_000 + run * 3_600_000_000_000;
        let path: i64 = if LONGER.contains(&run) { 32 } else { 20 };
        let mut messages = String::from("#client-send-timestamp,server-timestamp,e2e-rtt\n");
        let mut frames =
            String::from("#frame-timestamp,tcp-ack-rtt,tcp-stream-id,retransmission,ip-dst\n");
        for message in 0..40 {
            let sent = run_start + message * 250_000_000;
            // 0 to 0.9 ms of jitter.
            let network = path * 1_000_000 + message * 7 % 10 * 100_000;
            let response = network + 3_000_000;
            let (total, fraction) = (response / 1_000_000, response % 1_000_000);
            let server = sent + network / 2;
            writeln!(messages, "{sent},{server},{total}.{fraction:06}").expect("a string");
            let acked = sent + 100_000 + network;
            let (second, nanos) = (acked / 1_000_000_000, acked % 1_000_000_000);
            let text = format!("0.{network:09}");
            writeln!(
                frames,
                "\"{second}.{nanos:09}\",\"{text}\",\"0\",,\"172.17.0.2\""
            )
            .expect("a string");
        }
        let name = format!("{run}-130.192.31.242_8080.i250.x1024.csv");
        fs::write(raw.join(name), messages).expect("a file");
        fs::write(raw.join(format!("{run}-tcpdump_report.csv")), frames).expect("a file");
    }
    let settings = "runs: 12\nruns_interval: 60\nruns_step_duration: 30\nendpoints:\n\
        - description: 1_Polito\n  destination: \"130.192.31.242:8080\"\nintervals: [250]\n\
        msg_sizes: [1024]\nresponse_size: 512\n";
    fs::write(folder.path("lt/settings.yaml"), settings).expect("a file");
}

#[test]
fn imported_acknowledgements_reveal_two_paths_of_one_endpoint() {
    let folder = TestFolder::empty();
    results(&folder);
    let ran = folder.neph(["import", "lt"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.err.contains("480 TCP acknowledgements"), "{}", ran.err);

    let ran = folder.neph(["show", "last"]);
    for part in ["1_Polito", "ws://130.192.31.242:8080/echo", "512 B"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let ran = folder.neph(["report", "last"]);
    let table = ran
        .out
        .split("TCP acknowledgement")
        .nth(1)
        .expect("a table");
    let row = table.lines().nth(1).expect("a row");
    // Of 480 round trips half are 20.0 to 20.9 ms and half 32.0 to 32.9 ms; p99 is 32.9 ms.
    assert!(row.contains("32.90 ms") && row.contains("480"), "{row}");

    let ran = folder.neph(["diagnose", "last", "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let cause = &document["diagnoses"][0];
    assert_eq!(cause["rule"], "ecmp-imbalance", "{document}");
    let text = cause["cause"].as_str().expect("a sentence");
    for part in [
        "6 connections 20.00 ms",
        "6 connections 32.00 ms",
        "1_Polito",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_congestion_control_that_a_site_locks_is_reported_by_check() {
    let folder = TestFolder::empty();
    let topology = "version = 1\nsite = [{name = \"a\", congestion_control = \"cubic\"}, {name = \"b\"}]\n\
        link = [{a = \"a\", b = \"b\", delay = \"1ms\"}]\n";
    fs::write(folder.path("t.toml"), topology).expect("a file");
    let plan = |congestion: &str| {
        format!(
            "version = 1\nname = \"p\"\ninterval = \"25ms\"\nduration = \"1s\"\n\
             congestion = \"{congestion}\"\n[lab]\ntopology = \"t.toml\"\nprober = \"a\"\n\
             [[lab.reflector]]\nsite = \"b\"\n[[endpoint]]\nname = \"b\"\nurl = \"ws://10.0.0.2:8080\"\n"
        )
    };
    fs::write(folder.path("p.toml"), plan("reno")).expect("a file");
    let ran = folder.neph(["check", "p.toml"]);
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    for part in [
        "p.toml:5:14: congestion control 'reno' is refused at site 'a'",
        "congestion_control = \"cubic\" there",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    fs::write(folder.path("p.toml"), plan("cubic")).expect("a file");
    let ran = folder.neph(["check", "p.toml"]);
    assert!(!ran.err.contains("refused at site"), "{}", ran.err);
}

/// A block of half a second every four seconds, and a ping each 200 ms: 15 of them fit between two blocks.
#[test]
fn pings_go_on_between_blocks() {
    let folder = TestFolder::empty();
    let reflector = crate::pings::reflector();
    let plan = format!(
        "version = 1\nname = \"p\"\nblocks = 2\nblock_interval = \"4s\"\ninterval = \"50ms\"\n\
         messages = 10\n[[ping]]\nname = \"self\"\naddress = \"127.0.0.1\"\ninterval = \"200ms\"\n\
         [[endpoint]]\nname = \"own\"\nurl = \"ws://{}\"\n",
        reflector.address()
    );
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let shown = measure_undisturbed(|| {
        let ran = folder.neph(["run", "p.toml", "--no-report", "--quiet"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        folder.neph(["show", "last", "--format", "json"])
    });
    let shown: Value = serde_json::from_str(&shown.out).expect("JSON");
    let rows = shown["pings_between"]
        .as_array()
        .expect("pings between blocks");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let count = |key: &str| rows[0][key].as_u64().expect("a count");
    assert!((8..=15).contains(&count("sent")), "{rows:?}");
    assert_eq!((count("lost"), count("failed")), (0, 0));
    assert!(count("p50_ns") < 10_000_000, "{rows:?}");
    let text = folder.neph(["show", "last"]).out;
    assert!(text.contains("Pings between blocks"), "{text}");
    let ran = folder.neph(["export", "--pings", "--format", "jsonl", "-o", "-"]);
    let expected = format!("neph export: {} pings of '", count("sent"));
    assert!(
        ran.err.starts_with(&expected),
        "of no experiment: {}",
        ran.err
    );
    let written = ran.out;
    assert_eq!(written.lines().count() as u64, count("sent"), "{written}");
    let first: Value = serde_json::from_str(written.lines().next().expect("a row")).expect("JSON");
    assert_eq!(
        (&first["name"], &first["outcome"]),
        (&"self".into(), &"reply".into())
    );
    assert_eq!(first["round_trip_ns"], rows[0]["pings"][0][1], "{first}");
    // The second block begins on time: four seconds after the first one.
    let started: Vec<u64> = shown["experiments"]
        .as_array()
        .expect("experiments")
        .iter()
        .filter_map(|entry| entry["started_unix_ns"].as_u64())
        .collect();
    if let [first, second] = started[..] {
        assert!((second - first).abs_diff(4_000_000_000) < 1_000_000_000);
    }
}

/// The kernel counts what the peer acknowledged: 20 messages of 1000 bytes and their headers.
#[test]
fn tcp_statistics_are_read_with_each_message_or_at_an_interval_and_exported() {
    let folder = TestFolder::empty();
    let reflector = crate::pings::reflector();
    for (when, minimum) in [("message", 10), ("100ms", 5)] {
        let plan = format!(
            "version = 1\nname = \"p\"\ninterval = \"50ms\"\nmessages = 20\nrequest_size = 1000\n\
             tcp_stats = \"{when}\"\n[[endpoint]]\nname = \"own\"\nurl = \"tcp://{}\"\n",
            reflector.address()
        );
        fs::write(folder.path("p.toml"), plan).expect("a file");
        let ran = folder.neph(["run", "p.toml", "--no-report", "--quiet"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let ran = folder.neph(["export", "--format", "csv", "--samples", "-o", "-"]);
        let values = |series: &str| -> Vec<f64> {
            let text = format!(",{series},");
            let rows = ran.out.lines().filter(|row| row.contains(&text));
            rows.map(|row| row.rsplit(',').next().and_then(|value| value.parse().ok()))
                .map(|value| value.expect("a number"))
                .collect()
        };
        let acknowledged = values("tcp_bytes_acked");
        assert!(acknowledged.len() >= minimum, "{when}: {acknowledged:?}");
        assert!(acknowledged.is_sorted(), "{acknowledged:?}");
        let total = acknowledged.last().copied().unwrap_or_default();
        assert!((18_000.0..24_000.0).contains(&total), "{when}: {total}");
        // A value that stays is kept once: the connection is established all the time.
        assert_eq!(values("tcp_state"), [1.0]);
        assert!(!values("tcp_snd_cwnd_segments").is_empty());
    }
    let plan = "version = 1\nname = \"p\"\ninterval = \"50ms\"\nmessages = 20\ntcp_stats = \"often\"\n\
        [[endpoint]]\nname = \"own\"\nurl = \"tcp://127.0.0.1:1\"\n";
    fs::write(folder.path("p.toml"), plan).expect("a file");
    let ran = folder.neph(["check", "p.toml"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err.contains("write \"message\", or an interval"),
        "{}",
        ran.err
    );
}
