//! `neph ping syn://` without the right to build segments, and its cap on how many go.

use std::net::TcpListener;
use std::process::Command;

use neph_sys::process;

use crate::labs::is_root;
use crate::neph::{RunOutput, command, neph};
use crate::pings::server;

/// neph without any right: root gives its rights away with `setpriv`, anybody else has none.
fn unprivileged_neph() -> Command {
    if !is_root() {
        return command();
    }
    let mut command = process::command("setpriv");
    command.args(["--inh-caps=-all", "--bounding-set=-all", "--"]);
    command.arg(env!("CARGO_BIN_EXE_neph")).env("NO_COLOR", "1");
    command
}

/// Whether each of three lines and the summary tell the answers.
fn assert_wording(ran: &RunOutput, word: &str, sum: &str) {
    let lines = ran.out.lines().filter(|line| line.ends_with(word));
    assert_eq!(lines.count(), 3, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains(sum), "{}", ran.out);
}

#[test]
fn syns_without_privilege_are_connects_and_a_refusal_is_a_reply_too() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let closed_port = closed.local_addr().expect("an address").port();
    drop(closed);
    for (port, word, sum) in [
        (
            server("hello"),
            "open (SYN-ACK)",
            "all 3 answers were SYN-ACK",
        ),
        (closed_port, "closed (RST)", "all 3 answers were RST"),
    ] {
        let target = format!("syn://127.0.0.1:{port}");
        let mut command = unprivileged_neph();
        command.args(["ping", &target, "--no-icmp", "-c", "3", "-i", "60ms"]);
        let ran: RunOutput = command
            .output()
            .expect("neph and util-linux are there")
            .into();
        assert_eq!(ran.status, 0, "{}", ran.err);
        let why = "no permission to build TCP segments (CAP_NET_RAW)";
        assert!(ran.err.contains(why), "{}", ran.err);
        assert!(ran.out.contains("3 messages, 3 replies"), "{}", ran.out);
        assert_wording(&ran, word, sum);
        // Where the right is there, of segments of our own making.
        assert_wording(
            &neph(["ping", &target, "--no-icmp", "-c", "3", "-i", "60ms"]),
            word,
            sum,
        );
    }
}

#[test]
fn more_syns_than_are_allowed_are_one_sentence_with_the_remedy() {
    let ran = neph(["ping", "syn://127.0.0.1:9", "-i", "1ms"]);
    assert_eq!(ran.status, 2);
    let why = "1000 SYNs a second to each target are more than 200";
    assert!(ran.err.contains(why), "{}", ran.err);
    assert!(
        ran.err.contains("allow them with --rate-cap 1000"),
        "{}",
        ran.err
    );
    let ran = neph(["ping", "tcp://127.0.0.1:9", "--rate-cap", "5"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("only syn:// has a cap"), "{}", ran.err);
}
