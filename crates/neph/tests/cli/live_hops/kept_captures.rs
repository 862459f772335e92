//! Captures of live points that stay without `--save`, as more may be reported about them.

use std::net::UdpSocket;

use neph_sys::netns::with_namespace;

use super::{Wire, hops_command, interrupt, start_recording, stop_with_signal};
use crate::neph::{RunOutput, TestFolder, run_ip};

/// What the command says that tells the captures that stay.
fn run_suggested_command(folder: &TestFolder, text: &str) -> RunOutput {
    let (_, command) = text.split_once("the captures stay: neph ").expect(text);
    let command = command.lines().next().expect("a command");
    folder.neph(command.split(' '))
}

#[test]
fn captures_without_a_result_are_kept() {
    let Some(wire) = Wire::up("strangers") else {
        return;
    };
    let folder = TestFolder::empty();
    let [a, b] = &wire.names;
    run_ip(&format!("-n {b} link set lo up"));
    let points = [
        format!("here=iface:near@{a}"),
        format!("there=iface:lo@{b}"),
    ];
    let arguments = [points[0].as_str(), &points[1], "--proto", "udp"];
    let (child, printed) = start_recording(hops_command(&folder, "exit 1", &arguments));
    wire.exchange(5);
    let opened = with_namespace(&wire.namespaces[1], || UdpSocket::bind("127.0.0.1:0"));
    let socket = opened.expect("entered").expect("a socket");
    socket.send_to(&[1], "127.0.0.1:9").expect("sent");
    let (status, text) = interrupt(child, printed);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("no packet of here is in there"), "{text}");
    let ran = run_suggested_command(&folder, &text);
    let is_read = ran.status == 2 && ran.err.contains("no packet of here is in there");
    assert!(is_read, "{}", ran.err);
}

#[test]
fn a_point_without_packets_does_not_hide_the_other_segments() {
    let Some(wire) = Wire::up("silent") else {
        return;
    };
    let folder = TestFolder::empty();
    let b = &wire.names[1];
    let [near, far] = &wire.ends();
    let silent_point = &format!("silent=iface:lo@{b}");
    run_ip(&format!("-n {b} link set lo up"));
    for (order, printed) in [
        ([near, far, silent_point], "far - silent has no result: "),
        ([silent_point, near, far], "silent - near has no result: "),
    ] {
        let arguments = order.map(String::as_str);
        let arguments = [&arguments[..], &["--proto", "udp", "--format", "csv"]].concat();
        let (child, before) = start_recording(hops_command(&folder, "exit 1", &arguments));
        wire.exchange(5);
        let ran = stop_with_signal(child, before, "INT");
        assert_eq!(ran.status, 130, "{}", ran.err);
        assert!(ran.err.contains(printed), "{}", ran.err);
        let row = "near - far,forward,udp,5,";
        assert!(ran.out.contains(row), "{}", ran.out);
        let output = run_suggested_command(&folder, &ran.err);
        assert_eq!(output.status, 0, "{}", output.err);
        assert!(output.out.contains("near - far"), "{}", output.out);
    }
}
