//! How `neph ping` ends where nothing can be measured: what cannot be meant or begun, targets that
//! no answer from, certificates that nobody trusts.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};

use crate::neph::{TestFolder, command};
use crate::pings::{ping_three_times, reflector, server, start, wait_for_end};
use neph_model::ReflectorIdentity;

#[test]
fn a_main_flow_that_cannot_begin_ends_the_command_with_its_sentence() {
    let reflector = reflector();
    let folder = TestFolder::empty();
    let taken = UdpSocket::bind("0.0.0.0:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let nowhere = folder.text("authorities.pem");
    let [udp, tcp, wss] =
        ["udp", "tcp", "wss"].map(|scheme| format!("{scheme}://{}", reflector.address()));
    let bare = reflector.address().to_string();
    let busy = TcpListener::bind("0.0.0.0:0").and_then(|socket| Ok((socket.local_addr()?, socket)));
    let (busy, _listening) = busy.expect("a free port");
    let busy = busy.port().to_string();
    for (arguments, status, part) in [
        (vec![&*udp, "--source-port", &port], 1, "in use"),
        (vec![&*tcp, "--source-port", &busy], 1, "in use"),
        (vec![&*wss, "--ca-file", &nowhere], 2, "authorities.pem"),
        (vec![&*bare, "--ca-file", &nowhere], 2, "authorities.pem"),
        (vec![&*udp, "--site", "nonesuch"], 2, "nonesuch"),
    ] {
        let mut unlimited = command();
        unlimited.arg("ping").args(&arguments);
        unlimited.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = wait_for_end(unlimited.spawn().expect("neph runs"));
        assert_eq!(ran.status, status, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_size_that_no_message_of_the_kind_carries_is_refused_before_anything_is_sent() {
    let port = server("220 ready\r\n");
    let [ws, icmp] = ["ws", "icmp"].map(|scheme| format!("{scheme}://127.0.0.1"));
    let bare = format!("127.0.0.1:{port}");
    for (target, option, size, why) in [
        (
            &ws,
            "--request-size",
            "100 GiB",
            "ws carries at most 64 MiB",
        ),
        (
            &ws,
            "--response-size",
            "100 GiB",
            "ws carries at most 64 MiB",
        ),
        (
            &icmp,
            "--request-size",
            "64 KiB",
            "icmp carries at most 65507 B",
        ),
        (
            &bare,
            "--request-size",
            "100 GiB",
            "tcp carries at most 64 MiB",
        ),
    ] {
        let ran = ping_three_times(target, &[option, size]);
        let expected = format!("neph: {option} {size}: {why}\n");
        assert_eq!((ran.status, ran.err), (2, expected), "{target}");
    }
}

#[test]
fn a_title_claims_nothing_about_a_server_that_never_answered() {
    let closed_port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let closed_port = closed_port.expect("a free port");
    for scheme in ["ws", "http", "tcp"] {
        let target = format!("{scheme}://{closed_port}");
        let ran = ping_three_times(&target, &["--timeout", "200ms"]);
        assert_eq!(ran.status, 1, "{}", ran.err);
        let title = format!("{target} (127.0.0.1), no answer yet, every 60.00 ms");
        assert_eq!(ran.out.lines().next(), Some(title.as_str()));
        let remark = format!("neph: no answer from {target}: Connection refused");
        assert!(ran.err.starts_with(&remark), "{}", ran.err);
    }
}

#[test]
fn an_untrusted_certificate_ends_an_endless_ping_at_once() {
    let secure = start(
        Some(ReflectorIdentity::SelfSigned(vec!["127.0.0.1".to_owned()])),
        None,
    );
    let target = format!("wss://{}", secure.address());
    let mut unlimited = command();
    unlimited.args(["ping", &target]);
    unlimited.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = wait_for_end(unlimited.spawn().expect("neph runs"));
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(
        ran.err.contains("is not trusted") && ran.err.contains("--ca-file"),
        "{}",
        ran.err
    );

    let ran = ping_three_times(&target, &["--timeout", "200ms"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    let title = format!("{target} (127.0.0.1), a server with an untrusted certificate");
    assert!(ran.out.starts_with(&title), "{}", ran.out);
    assert!(
        ran.out.contains("3 messages, 0 replies"),
        "the request is tried: {}",
        ran.out
    );
}

/// User and system time of a process so far, in ticks of 10 ms.
fn cpu_ticks(child: &Child) -> u64 {
    let path = format!("/proc/{}/stat", child.id());
    let text = std::fs::read_to_string(path).expect("it runs");
    let fields: Vec<&str> = text
        .rsplit(") ")
        .next()
        .expect("a line")
        .split(' ')
        .collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    ticks(11) + ticks(12)
}

#[test]
fn a_closed_port_costs_no_cpu() {
    let closed_port = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let target = format!("udp://{}", closed_port.local_addr().expect("an address"));
    drop(closed_port);
    let mut unlimited = command();
    unlimited.args([
        "ping",
        &target,
        "--no-icmp",
        "-i",
        "300ms",
        "--timeout",
        "200ms",
    ]);
    unlimited.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = unlimited.spawn().expect("neph runs");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let mut lines = out.lines().map(|line| line.expect("UTF-8"));
    let mut ticks_at = |seq: u32| {
        let wanted = format!("{seq:>6}  error: ICMP: port unreachable");
        assert!(lines.any(|line| line == wanted), "no line of message {seq}");
        cpu_ticks(&child)
    };
    // Four intervals of 300 ms in which neph only waits: 120 ticks if it never slept.
    let spent = ticks_at(0).abs_diff(ticks_at(4));
    child.kill().expect("it runs");
    child.wait().expect("it is over");
    assert!(spent < 40, "{spent} ticks: it never slept");
}

#[test]
fn an_option_unsuited_to_its_target_is_refused_with_a_reason() {
    let tls = "only targets over TLS have a version of it";
    for (target, option, why) in [
        ("http://127.0.0.1:9", &["--tls-version", "1.2"][..], tls),
        ("udp://127.0.0.1:9", &["--tls-version", "1.3"], tls),
        ("ws://127.0.0.1:9", &["--insecure"], "have a certificate"),
        (
            "tcp://127.0.0.1:9",
            &["--ca-file", "ca.pem"],
            "have a certificate",
        ),
        (
            "udp://127.0.0.1:9",
            &["--new-connection"],
            "have connections",
        ),
        (
            "icmp://127.0.0.1",
            &["--congestion", "reno"],
            "have congestion control",
        ),
        (
            "ws://127.0.0.1:9",
            &["--expect-status", "200"],
            "have an HTTP status",
        ),
        (
            "http://127.0.0.1:9",
            &["--stamp-key", "env:PATH"],
            "only udp:// uses STAMP",
        ),
        (
            "icmp://127.0.0.1",
            &["--source-port", "77"],
            "ICMP has no ports",
        ),
    ] {
        let ran = ping_three_times(target, option);
        assert_eq!(ran.status, 2, "{target} {option:?}: {}", ran.err);
        let is_named = ran.err.starts_with(&format!("neph: {}: ", option[0]));
        assert!(is_named && ran.err.contains(why), "{}", ran.err);
        assert!(
            ran.err.ends_with(&format!("leave it out for {target}\n")),
            "{}",
            ran.err
        );
    }
}

/// A server is not named after the scheme that was typed.
#[test]
fn a_peer_is_not_named_after_the_url_scheme() {
    let closed_port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let target = format!("udp://{}", closed_port.expect("a free port"));
    let udp = ping_three_times(&target, &["--timeout", "200ms"]);
    assert!(udp.out.contains("measured by STAMP"), "{}", udp.out);
    let plain = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let target = format!("ws://127.0.0.1:{plain}");
    let ws = ping_three_times(&target, &["--timeout", "200ms"]);
    let title = ws.out.lines().next().unwrap_or_default();
    assert!(
        title.contains("measured by WebSocket ping and pong"),
        "{title}"
    );
}
