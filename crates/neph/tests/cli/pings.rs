//! `neph ping` on loopback: who is found behind a bare host, what is shown in each format, and what
//! becomes of a flow that cannot begin.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use neph_model::{ReflectorIdentity, ReflectorSpec, SecretSource};
use neph_probe::{Counted, Reflector};
use neph_sys::clock;
use neph_sys::deadline::wait_until;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::neph::{RunOutput, TIMEOUT, command, neph, send_signal};

/// Messages that it has answered.
pub(crate) fn answered_messages(reflector: &Reflector) -> u64 {
    let counted = reflector.counted().into_iter();
    let answers = counted.filter(|(counted, _)| *counted == Counted::Replies);
    answers.map(|(_, count)| count).sum()
}

pub(crate) fn reflector() -> Reflector {
    start_with_key(None)
}

pub(crate) fn start_with_key(key: Option<&str>) -> Reflector {
    start(None, key)
}

pub(crate) fn start(identity: Option<ReflectorIdentity>, key: Option<&str>) -> Reflector {
    // Read once, when it starts.
    let file = key.map(|secret| {
        let file = NamedTempFile::new().expect("a file that is ours alone");
        std::fs::write(&file, secret).expect("written");
        file
    });
    let stamp_key = file.as_ref().map(|file| file.path().display().to_string());
    let spec = ReflectorSpec {
        identity,
        stamp_key: stamp_key.map(SecretSource::File),
        ..ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    Reflector::start(&spec).expect("loopback has a free port")
}

/// Takes connections, reads something and answers `reply` to each; leaves them open.
pub(crate) fn server(reply: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).unwrap_or(0);
            if read > 0 && buffer.is_ascii() {
                // Whoever went away needs no answer.
                let _ = stream.write_all(reply.as_bytes());
            }
            open.push(stream);
        }
    });
    port
}

/// A few messages, fast, without ICMP.
pub(crate) fn ping_three_times(target: &str, extra_args: &[&str]) -> RunOutput {
    let base_args = ["ping", target, "--no-icmp", "-c", "3", "-i", "60ms"];
    neph(base_args.into_iter().chain(extra_args.iter().copied()))
}

#[test]
fn behind_a_bare_host_and_port_whoever_answers_is_measured_and_named() {
    let reflector = reflector();
    let port = reflector.address().port();
    let http = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let other = server("220 ready\r\n");
    for (target, expected) in [
        (
            format!("127.0.0.1:{port}"),
            format!("ws://127.0.0.1:{port} answers"),
        ),
        // The reflector is not at ::1, which may come first.
        (
            format!("localhost:{port}"),
            format!("ws://localhost:{port}"),
        ),
        (
            format!("127.0.0.1:{http}"),
            format!("http://127.0.0.1:{http} answers"),
        ),
        (
            format!("127.0.0.1:{other}"),
            format!("tcp://127.0.0.1:{other} answers"),
        ),
    ] {
        let ran = ping_three_times(&target, &["--timeout", "500ms"]);
        assert_eq!(ran.status, 0, "{target}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(&expected), "{target}: {}", ran.err);
    }
}

#[test]
fn a_name_with_two_addresses_is_measured_at_the_one_that_answers() {
    let reflector = reflector();
    let ran = ping_three_times(
        &format!("ws://localhost:{}", reflector.address().port()),
        &[],
    );
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("(127.0.0.1), neph reflector"),
        "{}",
        ran.out
    );
}

#[test]
fn a_message_without_a_reply_has_its_line_however_slow_the_flow() {
    let silent_socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let target = format!("udp://{}", silent_socket.local_addr().expect("an address"));
    for interval in ["100ms", "2s"] {
        let arguments = [
            "ping",
            &target,
            "--no-icmp",
            "-c",
            "1",
            "--timeout",
            "200ms",
            "-i",
        ];
        let ran = neph(arguments.into_iter().chain([interval]));
        assert_eq!(ran.status, 1, "{}", ran.err);
        let lines = ran.out.lines().filter(|line| *line == "     0  no reply");
        assert_eq!(lines.count(), 1, "{interval}: {}", ran.out);
    }
}

/// What happens at a server that answers when it is told to.
struct HeldServer {
    target: String,
    /// A request is there.
    requests: Receiver<()>,
    answer: Sender<()>,
}

/// An HTTP server that holds its answers to GET back.
fn held_http() -> HeldServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("an address");
    let ((ask, receiver), (answer, result_receiver)) = (channel(), channel());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                if buffer.starts_with(b"GET") {
                    ask.send(()).expect("the test goes on");
                    result_receiver.recv().expect("the test goes on");
                }
                let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(reply).expect("neph waits");
            }
        }
    });
    HeldServer {
        target: format!("http://{address}"),
        requests: receiver,
        answer,
    }
}

/// A relay to a STAMP reflector that holds the requests back.
fn held_udp(reflector: &Reflector) -> HeldServer {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let upstream = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    upstream.connect(reflector.address()).expect("an address");
    let target = format!("udp://{}", socket.local_addr().expect("an address"));
    let ((ask, receiver), (answer, result_receiver)) = (channel(), channel());
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        let (count, from) = socket.recv_from(&mut buffer).expect("a request");
        ask.send(()).expect("the test goes on");
        result_receiver.recv().expect("the test goes on");
        upstream.send(&buffer[..count]).expect("sent on");
        let count = upstream.recv(&mut buffer).expect("a reply");
        socket.send_to(&buffer[..count], from).expect("sent back");
    });
    HeldServer {
        target,
        requests: receiver,
        answer,
    }
}

#[test]
fn ctrl_c_waits_for_the_reply_that_is_under_way() {
    let reflector = reflector();
    for server in [held_http(), held_udp(&reflector)] {
        let target = server.target.as_str();
        let mut unlimited = command();
        unlimited.args([
            "ping",
            target,
            "--no-icmp",
            "-i",
            "10s",
            "--format",
            "ndjson",
        ]);
        unlimited.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = unlimited.spawn().expect("neph runs");
        server.requests.recv().expect("a request");
        send_signal("INT", child.id());
        // Longer than the sending flow takes to notice.
        clock::nap(Duration::from_millis(200));
        server.answer.send(()).expect("it waits");
        let ran = wait_for_end(child);
        assert_eq!(ran.status, 130, "{target}: {}", ran.err);
        let last = ran.out.lines().last().expect("a summary");
        let summary: Value = serde_json::from_str(last).expect("JSON");
        let tally = &summary["flows"][0]["tally"];
        let counted = (&tally["messages"], &tally["replies"]);
        assert_eq!(counted, (&1.into(), &1.into()), "{target}: {tally}");
    }
}

#[test]
fn quiet_is_only_the_summary_in_every_format() {
    let reflector = reflector();
    let target = format!("ws://{}", reflector.address());
    let quiet = |format: &str| {
        let ran = ping_three_times(&target, &["-q", "--format", format]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{format}");
        ran.out
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");

    let text = quiet("text");
    assert!(text.contains("3 messages, 3 replies"), "{text}");
    assert!(!text.contains("seq    response"), "a heading: {text}");

    let ndjson = quiet("ndjson");
    assert_eq!(ndjson.lines().count(), 1, "{ndjson}");
    assert_eq!(json(&ndjson)["flows"][0]["tally"]["replies"], 3);

    let document = json(&quiet("json"));
    assert_eq!(document["flows"][0]["tally"]["replies"], 3);
    assert!(document.get("messages").is_none());

    let csv = quiet("csv");
    let heading =
        "target,quantity,messages,lost,n,min_ns,mean_ns,p50_ns,p90_ns,p99_ns,max_ns,sd_ns";
    assert_eq!(csv.lines().next(), Some(heading));
    let columns = heading.split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    let response = format!("\n{target},response,3,0,3,");
    assert!(csv.contains(&response), "{csv}");
    // A stamp that the kernel did not give in time joins it with its neighbours.
    assert!(csv.contains(",stage network"), "{csv}");
}

#[test]
fn a_csv_summary_contains_the_loss_of_a_flow_without_replies() {
    let silent_socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let target = format!("udp://{}", silent_socket.local_addr().expect("an address"));
    let ran = ping_three_times(&target, &["-q", "--format", "csv", "--timeout", "200ms"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    let row = format!("{target},response,3,3,,,,,,,,");
    assert_eq!(ran.out.lines().nth(1), Some(row.as_str()), "{}", ran.out);
}

#[test]
fn a_connection_attempt_is_shown_as_one_and_sizes_as_they_are_sent() {
    let other = server("220 ready\r\n");
    let ran = ping_three_times(&format!("tcp://127.0.0.1:{other}"), &[]);
    let heading = "   seq    response         tcp        icmp     lateness      connect";
    assert!(ran.out.lines().any(|line| line == heading), "{}", ran.out);
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    let ran = ping_three_times(&target, &["--response-size", "10kB", "-s", "200"]);
    let sizes = "request 200 B, reply 200 B";
    assert!(ran.out.contains(sizes), "a reply is no larger: {}", ran.out);
    for (kind, reply) in [("ws", 68), ("tcp", 68), ("http", 64)] {
        let ran = ping_three_times(&format!("{kind}://{}", reflector.address()), &[]);
        let sizes = format!("request 64 B, reply {reply} B");
        assert!(ran.out.contains(&sizes), "with room for marks: {}", ran.out);
    }
}

#[test]
fn http_errors_are_reported_and_expected_statuses_measured() {
    let http = server("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let target = format!("http://127.0.0.1:{http}");
    let refused = ping_three_times(&target, &["-q"]);
    assert_eq!(refused.status, 1, "nothing but errors: {}", refused.out);
    let printed = refused.err.contains("answers HEAD with status 404");
    assert!(printed, "{}", refused.err);
    assert!(refused.out.contains("0 replies, "), "{}", refused.out);
    let expected = ping_three_times(&target, &["-q", "--expect-status", "404"]);
    assert_eq!(expected.status, 0, "{}", expected.err);
    assert!(!expected.out.contains(" error"), "{}", expected.out);
}

#[test]
fn a_busy_source_port_after_the_last_message_is_not_reported() {
    let reflector = reflector();
    let free = TcpListener::bind("0.0.0.0:0").and_then(|socket| socket.local_addr());
    let port = free.expect("a free port").port().to_string();
    // The one port that it may use still belongs to the connection of the last message.
    let target = format!("http://{}", reflector.address());
    let ran = ping_three_times(&target, &["--new-connection", "--source-port", &port]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
}

/// Its end, or a failure if it does not come.
pub(crate) fn wait_for_end(mut child: Child) -> RunOutput {
    if !wait_until(TIMEOUT, || child.try_wait().expect("a child").is_some()) {
        child.kill().expect("it runs");
        let output = child.wait_with_output().expect("it is over");
        panic!("it never ended: {output:?}");
    }
    child.wait_with_output().expect("it is over").into()
}

#[test]
fn the_latest_echo_is_in_the_lines_of_its_main_flow() {
    let reflector = reflector();
    let target = format!("ws://{}", reflector.address());
    let ran = neph(["ping", &target, "-c", "4", "-i", "300ms"]);
    if ran.err.contains("ping_group_range") {
        eprintln!("SKIP: ICMP echo is forbidden here");
        assert!(std::env::var_os("CI").is_none(), "CI may send echoes");
        return;
    }
    let line = ran.out.lines().find(|line| line.starts_with("     1  "));
    let cells: Vec<&str> = line.expect("a line").split_whitespace().collect();
    let heading = ran
        .out
        .lines()
        .find(|line| line.starts_with("   seq"))
        .expect("a heading");
    let units = heading
        .split_whitespace()
        .position(|name| name == "icmp")
        .expect("a column");
    assert!(!cells[..=2 * units].contains(&"-"), "{}", ran.out);
}

#[test]
fn one_message_is_counted_as_one_without_a_rate() {
    let reflector = reflector();
    let target = format!("ws://{}", reflector.address());
    let ran = neph(["ping", &target, "--no-icmp", "-c", "1"]);
    assert!(
        ran.out.contains("\n1 message, 1 reply, 0 lost"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("TCP at the end: window"), "{}", ran.out);
    assert!(!ran.out.contains("delivery"), "{}", ran.out);
    let ran = neph(["ping", &target, "-c", "0"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("at least 1 is needed"), "{}", ran.err);
}
