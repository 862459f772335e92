//! A link that fails while both of its ends are recorded.

use std::net::UdpSocket;

use neph_sys::netns::{NetNs, remove, with_namespace};

use super::{Wire, hops_command, start_recording, stop_with_signal};
use crate::neph::{TestFolder, run_ip};

/// Two namespaces as those of a [`Wire`], and a bridge between them in one of its own.
struct BridgedWire {
    wire: Wire,
    bridge_namespace: String,
}

impl BridgedWire {
    fn up(test: &str) -> Option<Self> {
        let wire = Wire::up(test)?;
        let bridge_namespace = format!("hops-{}-{test}-m", std::process::id());
        NetNs::create(&bridge_namespace).expect("another namespace");
        let bridged = Self {
            wire,
            bridge_namespace,
        };
        let ([a, b], m) = (&bridged.wire.names, &bridged.bridge_namespace);
        for line in [
            format!("-n {a} link delete near"),
            format!("-n {m} link add bridge type bridge"),
            format!("-n {m} link add one type veth peer name near netns {a}"),
            format!("-n {m} link add two type veth peer name far netns {b}"),
            format!("-n {m} link set one master bridge up"),
            format!("-n {m} link set two master bridge up"),
            format!("-n {m} link set bridge up"),
            format!("-n {a} address add 10.91.0.1/24 dev near"),
            format!("-n {b} address add 10.91.0.2/24 dev far"),
            format!("-n {a} link set near up"),
            format!("-n {b} link set far up"),
        ] {
            run_ip(&line);
        }
        Some(bridged)
    }
}

impl Drop for BridgedWire {
    fn drop(&mut self) {
        // Whoever made it is root.
        let _ = remove(&self.bridge_namespace);
    }
}

#[test]
fn packets_sent_after_a_link_goes_down_are_lost() {
    const LOST: u64 = 20;
    let Some(bridged) = BridgedWire::up("outage") else {
        return;
    };
    let folder = TestFolder::empty();
    let points = bridged.wire.ends();
    let options = ["--proto", "udp", "--port", "4002", "--format", "json"];
    let arguments = [&points.each_ref().map(String::as_str)[..], &options].concat();
    let (child, stderr) = start_recording(hops_command(&folder, "exit 1", &arguments));
    bridged.wire.exchange(20);
    run_ip(&format!(
        "-n {} link set two down",
        bridged.bridge_namespace
    ));
    let sent = with_namespace(&bridged.wire.namespaces[0], || {
        let socket = UdpSocket::bind("10.91.0.1:4001").expect("a socket");
        for number in 0..LOST {
            let sent = socket.send_to(&number.to_le_bytes(), "10.91.0.2:4002");
            sent.expect("sent");
        }
    });
    sent.expect("entered");
    let ran = stop_with_signal(child, stderr, "INT");
    assert_eq!(ran.status, 130, "{}", ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let rows = document["segments"].as_array().expect("rows");
    let forward = rows.iter().find(|row| row["direction"] == "forward");
    let lost = forward.expect("a row")["lost"].as_u64().expect("a count");
    let unknown = &document["summary"]["loss_unknown"];
    let late = unknown["not_captured_at_end"].as_u64().expect("a count");
    // The last ones may have been on their way when the recording ended.
    assert_eq!(lost + late, LOST, "{document:#}");
    assert!(lost >= LOST / 2, "{document:#}");
    assert_eq!(unknown["not_captured"], late, "{document:#}");
}
