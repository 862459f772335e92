//! What `neph ping` prints where messages meet no connection, no reply or fewer marks: in lines, in the
//! summary and in JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::thread;

use neph_model::ReflectorSpec;
use neph_probe::Reflector;
use neph_sys::process;
use serde_json::Value;

use crate::neph::{command, neph};
use crate::pings::{ping_three_times, reflector, server};
use crate::servers::{certificate, free_port, serve};

const OK: &str = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
const NOT_FOUND: &str = "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// Answers one request on each connection and closes it, as HTTP/1.0 does.
fn closing_server(reply: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            if stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                // Whoever went away needs no answer.
                let _ = stream.write_all(reply.as_bytes());
            }
        }
    });
    port
}

/// The line of this message.
fn line(out: &str, seq: u64) -> &str {
    let begins = format!("{seq:>6}  ");
    let mut lines = out.lines();
    lines
        .find(|line| line.starts_with(&begins))
        .expect("a line for each message")
}

/// The summary's document.
fn summary(target: &str, extra_args: &[&str]) -> Value {
    let ran = ping_three_times(target, &[&["-q", "--format", "json"], extra_args].concat());
    serde_json::from_str(&ran.out).expect("a document")
}

#[test]
fn a_line_ends_with_the_time_spent_on_a_new_connection() {
    let ran = ping_three_times(&format!("http://127.0.0.1:{}", closing_server(OK)), &[]);
    let heading = "   seq    response         tcp        icmp     lateness         send";
    assert!(ran.out.contains(heading), "{}", ran.out);
    assert!(!line(&ran.out, 0).contains("connect"), "{}", ran.out);
    for seq in [1, 2] {
        let line = line(&ran.out, seq);
        let (_, waits) = line.split_once("  connect ").expect(line);
        assert!(!waits.contains("handshake"), "{line}");
    }
}

#[test]
fn a_line_ends_with_the_tls_handshake_that_its_message_waited_for() {
    let folder = certificate();
    let port = free_port();
    let at = port.to_string();
    let mut command = process::command("openssl");
    command.args(["s_server", "-www", "-accept", &at]);
    command.args(["-cert", "c.pem", "-key", "k.pem"]);
    let test = "a_line_ends_with_the_tls_handshake_that_its_message_waited_for";
    let Some(server) = serve(test, port, command.current_dir(folder.path())) else {
        return;
    };
    let target = format!("https://127.0.0.1:{}", server.port);
    let ran = ping_three_times(&target, &["--insecure"]);
    let (_, waits) = line(&ran.out, 2).split_once("  connect ").expect(&ran.out);
    assert!(waits.contains(", handshake "), "{}", ran.out);
}

#[test]
fn a_percentile_among_unsent_messages_is_marked() {
    let spec = ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 0)));
    let reflector = Reflector::start(&spec).expect("loopback has a free port");
    let target = format!("ws://{}", reflector.address());
    let mut child = command()
        .args(["ping", &target, "--no-icmp", "-c", "20", "-i", "60ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("neph runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().transpose().expect("UTF-8");
    while !next().expect("seven lines").starts_with("     6  ") {}
    drop(reflector);
    let later_lines: Vec<String> = std::iter::from_fn(next).collect();
    child.wait().expect("it is over");
    let later_lines = later_lines.join("\n");
    assert!(later_lines.contains("  not sent: RST"), "{later_lines}");
    assert!(!later_lines.contains("before a reply"), "{later_lines}");
    assert!(later_lines.contains(", 0 lost (0.00 %)"), "{later_lines}");
    let row = |name: &str| {
        let mut rows = later_lines.lines();
        rows.find(|row| row.starts_with(name)).expect("a row")
    };
    assert!(
        row("response time").contains("   not sent"),
        "{later_lines}"
    );
    // What was not sent has no service time to miss.
    assert!(!row("service time").contains("sent  "), "{later_lines}");
}

#[test]
fn the_ledger_of_a_connection_attempt_ends_with_connect() {
    let target = format!("tcp://127.0.0.1:{}", server("220 ready\r\n"));
    let document = summary(&target, &[]);
    let stages = document["flows"][0]["stages"].as_array().expect("stages");
    let names: Vec<&Value> = stages.iter().map(|stage| &stage["stage"]).collect();
    assert_eq!(names, ["schedule lateness", "connect"]);
    let ran = ping_three_times(&target, &[]);
    assert!(!ran.out.contains("merged stages"), "{}", ran.out);
    let needs = "slow start after idle: needs requests over TCP (a connection attempt sends none)";
    assert!(ran.out.contains(needs), "{}", ran.out);
}

#[test]
fn merged_stages_have_the_reason_that_is_true_of_them() {
    let reflector = reflector();
    let address = reflector.address();
    for (target, option, why) in [
        (
            format!("udp://{address}"),
            &["-s", "44"][..],
            "network + peer send; peer kernel + peer application: merged stages, an upper bound of \
             each of them; a standard STAMP packet has two of the peer's four timestamps",
        ),
        (
            format!("tcp://{address}"),
            &["--new-connection"],
            "network + peer send: merged stages, an upper bound of each of them; the timestamp of a \
             reply's departure comes with the next reply on its connection",
        ),
    ] {
        let ran = ping_three_times(&target, option);
        assert!(ran.out.contains(why), "{target}: {}", ran.out);
    }
}

#[test]
fn without_a_reply_no_rule_blames_this_host() {
    for (target, expected) in [
        (
            format!("http://127.0.0.1:{}", closing_server(NOT_FOUND)),
            "http-404",
        ),
        (format!("ws://127.0.0.1:{}", server(OK)), "http-200"),
    ] {
        let document = summary(&target, &[]);
        assert_eq!(document["flows"][0]["answers"][expected], 3);
        let not_evaluated = document["not_evaluated"].as_array().expect("rules");
        let needs = |rule: &str| {
            let entry = not_evaluated.iter().find(|entry| entry["rule"] == rule);
            entry.expect("it could not look")["needs"].clone()
        };
        assert!(
            !document["not_evaluated"].to_string().contains("Linux"),
            "{target}"
        );
        assert_eq!(needs("random-loss"), serde_json::json!(["a reply"]));
    }
}

#[test]
fn a_refused_websocket_has_a_line_of_causes() {
    let ran = ping_three_times(&format!("ws://127.0.0.1:{}", server(OK)), &[]);
    let (_, summary) = ran.out.split_once("\n--- ").expect("a summary");
    let expected = "3 not sent\n  3 x WebSocket refused: HTTP status 200\n";
    assert!(summary.contains(expected), "{}", ran.out);
    let line = line(&ran.out, 1);
    assert!(line.ends_with("not sent: WebSocket refused: HTTP status 200"));
}

#[test]
fn a_plain_http_flow_whose_statuses_are_expected_has_no_line_of_them() {
    let target = format!("http://127.0.0.1:{}", server(OK));
    let ran = neph(["ping", &target, "--no-icmp", "-c", "1"]);
    assert!(!ran.out.contains(" x HTTP"), "{}", ran.out);
}
