//! `neph flows --transfers` over a link with two paths: what a slow path costs an application.

use std::process::Command;

use neph_model::Span;
use serde_json::Value;

use crate::stage::{PORT, TwoSites, privileged};

/// Round trips of 20 and 23.6 ms: the source's 18 % more.
const LINK: &str = "
delay = \"10ms\"
[[link.path]]
name = \"fast\"
weight = 50
[[link.path]]
name = \"slow\"
weight = 50
a_to_b = { delay = \"13.6ms\" }
";

#[test]
fn transfers_on_the_slow_paths_ports_take_18_percent_longer() {
    if !privileged("transfers_on_the_slow_paths_ports_take_18_percent_longer") {
        return;
    }
    let lab = TwoSites::up("transfers", LINK);
    let _reflector = lab.reflector(Span::ZERO);
    let output = Command::new(env!("CARGO_BIN_EXE_neph"))
        .args(["flows", &format!("tcp://10.79.0.2:{PORT}")])
        .args(["-n", "32", "-i", "200ms", "-c", "15", "--transfers", "20"])
        .args([
            "--format",
            "json",
            "--quiet",
            "--site",
            &lab.namespace("client"),
        ])
        .output()
        .expect("neph runs");
    let told: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let transfers = &told["pairs"][0]["transfers"];
    let [fast, slow] = [&transfers[0], &transfers[1]];
    for (class, lowest) in [(fast, 40_000_000), (slow, 47_200_000)] {
        assert_eq!((&class["n"], &class["failed"]), (&20.into(), &0.into()));
        let median = class["median_ns"].as_i64().expect("a median");
        // Two round trips; what is more is this machine's own.
        assert!(
            median >= lowest && median < lowest + 3_000_000,
            "{transfers}"
        );
    }
    let ratio = slow["ratio"].as_f64().expect("a ratio");
    assert!((1.14..1.22).contains(&ratio), "{transfers}");
}
