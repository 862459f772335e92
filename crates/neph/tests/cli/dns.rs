//! DNS targets on the command line and in a plan.

use std::fs;
use std::net::UdpSocket;
use std::thread;

use serde_json::Value;

use crate::neph::TestFolder;
use crate::pings::ping_three_times;

/// Responds NXDOMAIN to every query; its port.
fn server() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = socket.local_addr().expect("bound").port();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, peer)) = socket.recv_from(&mut buffer) {
            buffer[2..4].copy_from_slice(&[0x81, 0x83]);
            let _ = socket.send_to(&buffer[..count], peer);
        }
    });
    port
}

#[test]
fn replies_are_counted_by_response_code_and_a_name_that_does_not_exist_is_a_reply() {
    let target = format!("dns://127.0.0.1:{}/example.org?type=mx", server());
    let text = ping_three_times(&target, &[]);
    assert_eq!(text.status, 0, "{}{}", text.out, text.err);
    for expected in [
        "3 messages, 3 replies, 0 lost",
        "  3 x DNS NXDOMAIN\n",
        "DNS queries over UDP",
    ] {
        assert!(text.out.contains(expected), "{expected}: {}", text.out);
    }
    let json = ping_three_times(&target, &["--format", "json"]);
    let summary: Value = serde_json::from_str(&json.out).expect("JSON");
    let flow = &summary["flows"][0];
    assert_eq!(flow["answers"]["dns-nxdomain"], 3, "{}", json.out);
}

#[test]
fn a_mistake_in_the_question_is_a_sentence_and_no_measurement() {
    for (question, why) in [
        ("", "it has no name to ask for"),
        (
            "/example.org?type=NOPE",
            "DNS record type 'NOPE' is not known; use one of A, AAAA",
        ),
    ] {
        let ran = ping_three_times(&format!("dns://127.0.0.1{question}"), &[]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn a_plan_measures_it_and_the_store_has_the_response_code_of_each_message() {
    let folder = TestFolder::empty();
    let plan = format!(
        "version = 1\nname = \"dns\"\nblocks = 1\ninterval = \"20ms\"\nmessages = 5\n\
         [[endpoint]]\nname = \"resolver\"\nurl = \"dns://127.0.0.1:{}/example.org\"\n",
        server()
    );
    fs::write(folder.path("p.toml"), plan).expect("a folder of ours");
    let ran = folder.neph(["run", "p.toml"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let csv = folder.neph(["export", "--format", "csv", "-o", "-"]);
    let counted = csv.out.matches("dns-nxdomain").count();
    assert_eq!(counted, 5, "{}{}", csv.out, csv.err);
}
